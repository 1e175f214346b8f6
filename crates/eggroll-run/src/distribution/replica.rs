//! A training loop that is one of several replicas.

use crate::digest::portable_digest;
use crate::error::Error;
use crate::steps::Steps;
use burn::module::Module;
use burn::tensor::Device;
use eggroll_core::{InstructionSet, ParameterKind};
use eggroll_train::{
    Alone, Communicator, DistributionError, EvolutionStrategy, EvolutionStrategyConfig, Fitness, Population,
    gather_fitness, own_members,
};

/// How a training loop is one replica of several: its communicator, and how often replicas are compared.
///
/// All replicas begin alike (data, generation, configuration, parameters, kind of device), which is checked; each evaluates a slice of every
/// population; all make the same update; rank 0 alone writes logs and checkpoints, validates, and looks whether to stop. Replicas
/// that continue from a checkpoint all read it: their file system is shared. A rank that fails says so to the others, and all stop.
///
/// # Example
///
/// Two replicas on two threads, and one process: the same parameters.
///
/// ```
/// use burn::module::Module;
/// use burn::optim::AdamConfig;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::LinearConfig;
/// use eggroll_run::distribution::{Distribution, on_devices};
/// use eggroll_run::{TrainingLoop, parameter_digest};
/// use eggroll_train::EvolutionStrategyConfig;
/// use std::ops::ControlFlow;
///
/// let model = LinearConfig::new(2, 1).init(&Device::flex());
/// let train = |mut distribution: Distribution, device: &Device| {
///     let model = model.clone().to_device(device);
///     let x = Tensor::<2>::ones([4, 2], device);
///     let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new());
///     let model = TrainingLoop::new(10).run_distributed(
///         &mut distribution,
///         &mut config.try_init(&model)?,
///         model,
///         |model, population| Ok(population.evaluate(|members| members.mean(model.forward_shared(x.clone())))),
///         |_model, _report| Ok(ControlFlow::Continue(())),
///     )?;
///     Ok::<_, eggroll_run::Error>(parameter_digest(&model))
/// };
/// let devices = [Device::flex(), Device::flex()];
/// let digests = on_devices(&devices, |replica, device| train(Distribution::new(replica), device));
/// let alone = train(Distribution::default(), &devices[0]).unwrap();
/// assert!(digests.into_iter().all(|digest| digest.unwrap() == alone));
/// ```
pub struct Distribution {
    communicator: Box<dyn Communicator>,
    digest_every: u64,
}

impl Distribution {
    /// A replica of those that `communicator` connects.
    pub fn new(communicator: impl Communicator + 'static) -> Self {
        Self { communicator: Box::new(communicator), digest_every: 100 }
    }

    /// Sets after how many generations the digests of all parameters are compared, again and again; 0 for never. Each comparison reads all
    /// parameters. 100 unless set.
    pub fn with_digest_every(mut self, generations: u64) -> Self {
        self.digest_every = generations;
        self
    }

    /// Which replica this is.
    pub fn rank(&self) -> usize {
        self.communicator.rank()
    }

    /// Whether this replica writes logs and checkpoints: rank 0.
    pub fn leads(&self) -> bool {
        self.rank() == 0
    }

    /// Rank 0 does `work`, as preparing a folder, while the others wait.
    ///
    /// # Errors
    ///
    /// The error of `work`; on other ranks [`DistributionError::Failed`].
    pub fn lead<E: From<DistributionError>>(&mut self, work: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        if self.leads()
            && let Err(error) = work()
        {
            self.communicator.fail();
            return Err(error);
        }
        self.communicator.all_gather_words(&[])?;
        Ok(())
    }

    fn is_alone(&self) -> bool {
        self.communicator.size() == 1
    }

    /// Refuses replicas that do not begin alike.
    pub(crate) fn begin<M: Module>(
        &mut self,
        strategy: &EvolutionStrategy,
        model: &M,
        data: Option<&str>,
    ) -> Result<(), Error> {
        if self.is_alone() {
            return Ok(());
        }
        self.same("digest of its data", data.unwrap_or("none"))?;
        self.same("configuration", &configuration(strategy.config()))?;
        self.same("generation", &strategy.generation().to_string())?;
        // By their configuration all have them or none.
        if let Some(spreads) = strategy.parameters().spreads() {
            self.same("set of spreads that noise is relative to", &format!("{spreads:?}"))?;
        }
        if let Some(anchor) = strategy.anchor_digest() {
            self.same("anchor of the decay", anchor)?;
        }
        if let Some(masters) = strategy.master_digest() {
            self.same("set of f32 master weights", &masters)?;
        }
        if trains_floats(strategy) {
            let devices = self.communicator.all_gather_text(&arithmetic(model.devices().iter()))?;
            if let Some((rank, found)) = first_difference(&devices) {
                let (found, expected) = (found.clone(), devices[0].clone());
                return Err(DistributionError::MixedDevices { rank, found, expected }.into());
            }
        }
        Ok(self.same("set of parameters", &portable_digest(model))?)
    }

    fn same(&mut self, what: &'static str, text: &str) -> Result<(), DistributionError> {
        let texts = self.communicator.all_gather_text(text)?;
        match first_difference(&texts) {
            None => Ok(()),
            Some((rank, found)) => {
                Err(DistributionError::Start { rank, what, found: found.clone(), expected: texts[0].clone() })
            }
        }
    }

    /// Compares replicas, if it is time.
    fn check<M: Module>(&mut self, generation: u64, model: &M) -> Result<(), DistributionError> {
        let due = self.digest_every > 0 && generation.is_multiple_of(self.digest_every);
        if !due || self.is_alone() {
            return Ok(());
        }
        self.communicator.check_digest(generation, &portable_digest(model))
    }

    /// Whether a rank wants to stop.
    fn any_stops(&mut self, this: bool) -> Result<bool, DistributionError> {
        let wishes = self.communicator.all_gather_words(&[u32::from(this)])?;
        Ok(wishes.iter().any(|wish| wish.first().is_some_and(|stops| *stops != 0)))
    }

    /// Ends a run: no rank before all are done, and none that waits for one that has failed.
    pub(crate) fn end<R>(&mut self, result: Result<R, Error>) -> Result<R, Error> {
        match &result {
            Ok(_) => drop(self.communicator.all_gather_words(&[])?),
            // All know of it.
            Err(Error::Distribution(_)) => {}
            Err(_) => self.communicator.fail(),
        }
        result
    }
}

/// One process.
impl Default for Distribution {
    fn default() -> Self {
        Self::new(Alone)
    }
}

/// The first text that differs from that of rank 0.
fn first_difference(texts: &[String]) -> Option<(usize, &String)> {
    texts.iter().enumerate().find(|(_, text)| **text != texts[0])
}

/// The configuration but for what each process may choose.
fn configuration(config: &EvolutionStrategyConfig) -> String {
    serde_json::to_string(&config.of_updates()).unwrap_or_default()
}

pub(super) fn trains_floats(strategy: &EvolutionStrategy) -> bool {
    strategy.parameters().trained(ParameterKind::Float).next().is_some()
}

/// What the rounding of floats depends on: the kind of device, and on hosts the instruction set.
pub(super) fn arithmetic<'a>(devices: impl Iterator<Item = &'a Device>) -> String {
    let kinds = devices.map(|device| {
        let name = format!("{:?}", device.as_dispatch());
        name.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
    });
    let mut kinds: Vec<String> = kinds.collect();
    kinds.sort();
    kinds.dedup();
    format!("{} ({:?})", kinds.join(", "), InstructionSet::detected().of_floats())
}

/// The steps of a loop whose generations are shared by replicas.
pub(crate) struct Replica<'a, S> {
    steps: &'a mut S,
    distribution: &'a mut Distribution,
    stopped: bool,
    /// Whether this replica's parameters may be wrong: they are not saved.
    diverged: bool,
}

impl<'a, S> Replica<'a, S> {
    pub fn new(steps: &'a mut S, distribution: &'a mut Distribution) -> Self {
        Self { steps, distribution, stopped: false, diverged: false }
    }
}

impl<M: Module, S: Steps<M>> Steps<M> for Replica<'_, S> {
    fn begin(&mut self) -> Result<(), Error> {
        self.stopped = self.distribution.any_stops(self.steps.stopped())?;
        Ok(())
    }

    fn stopped(&self) -> bool {
        self.stopped
    }

    fn ask(&mut self, strategy: &mut EvolutionStrategy, model: &M) -> Result<Population, Error> {
        self.steps.ask(strategy, model)
    }

    fn evaluate(&mut self, model: &M, population: &Population) -> Result<Fitness, Error> {
        let communicator = &mut *self.distribution.communicator;
        let slice = population.slice(own_members(population, communicator));
        let fitness = self.steps.evaluate(model, &slice)?;
        Ok(gather_fitness(population, communicator, fitness)?)
    }

    fn tell(
        &mut self,
        strategy: &mut EvolutionStrategy,
        model: &mut M,
        population: Population,
        fitness: Fitness,
    ) -> Result<(), Error> {
        self.steps.tell(strategy, model, population, fitness)
    }

    fn after(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error> {
        let compared = self.distribution.check(strategy.generation(), model);
        self.diverged = matches!(compared, Err(DistributionError::Diverged { .. }));
        compared?;
        self.steps.after(strategy, model)?;
        self.stopped = self.distribution.any_stops(self.steps.stopped())?;
        Ok(())
    }

    fn save(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error> {
        match self.distribution.leads() && !self.diverged {
            true => self.steps.save(strategy, model),
            false => Ok(()),
        }
    }
}
