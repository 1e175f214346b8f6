//! A training loop as one of several replicas.

use super::exchange::{Exchange, OfProgram, RunStart, digests};
use super::ranks::Ranks;
use crate::checkpoint::load_under;
use crate::digest::portable_digest;
use crate::error::Error;
use crate::steps::Steps;
use burn::module::Module;
use eggroll_train::{Alone, Communicator, DistributionError, EvolutionStrategy, Fitness, Population};
use std::path::PathBuf;

/// Makes a training loop one of several replicas.
///
/// All replicas begin alike (data, generation, configuration, parameters, kind of device), which is checked. Each evaluates a slice of every
/// population; all make the same update. Rank 0 alone writes logs and checkpoints, validates, and decides when to stop. Replicas that
/// continue from a checkpoint all read it: their file system is shared. A rank that fails tells the others, and all stop.
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
    exchange: Box<dyn Exchange>,
}

impl Distribution {
    /// A replica on the ranks of `communicator`.
    pub fn new(communicator: impl Communicator + 'static) -> Self {
        Self::of(Ranks::new(communicator))
    }

    /// A replica of an engine other than a communicator, such as `eggroll-nats`.
    pub fn of(exchange: impl Exchange + 'static) -> Self {
        Self { exchange: Box::new(exchange) }
    }

    /// Whether this replica writes logs and checkpoints: rank 0.
    pub fn leads(&self) -> bool {
        self.exchange.leads()
    }

    /// Rank 0 does `work`, for example preparing a folder, while the others wait.
    ///
    /// # Errors
    ///
    /// The error of `work`; on other ranks [`DistributionError::Failed`](super::DistributionError::Failed).
    pub fn lead<E: From<Error>>(&mut self, work: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        if self.leads()
            && let Err(error) = work()
        {
            self.exchange.fail();
            return Err(error);
        }
        Ok(self.exchange.wait()?)
    }

    /// Refuses replicas that do not begin alike.
    pub(crate) fn begin<M: Module>(
        &mut self,
        strategy: &mut EvolutionStrategy,
        model: &mut M,
        of_program: OfProgram<'_>,
    ) -> Result<(), Error> {
        self.exchange.begin(&RunStart::of(strategy, model, of_program, &|| digests(strategy, model)))?;
        self.catch_up(strategy, model).map(drop)
    }

    /// Continues from a later checkpoint of the other replicas, if there is one; says whether there was.
    fn catch_up<M: Module>(&mut self, strategy: &mut EvolutionStrategy, model: &mut M) -> Result<bool, Error> {
        let folder = self.exchange.later_checkpoint(strategy.generation())?;
        if let Some(folder) = &folder {
            (*strategy, *model) = load_under(folder.path(), strategy, model)?;
        }
        Ok(folder.is_some())
    }

    /// Ends a run: no rank ends before all are done, and none waits for a failed one.
    pub(crate) fn end<R>(&mut self, result: Result<R, Error>) -> Result<R, Error> {
        match &result {
            Ok(_) => self.exchange.end()?,
            // All know of it.
            Err(Error::Distribution(_)) => {}
            Err(_) => self.exchange.fail(),
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

    fn ask_whether_to_stop<M: Module>(&mut self) -> Result<(), Error>
    where
        S: Steps<M>,
    {
        self.stopped = self.distribution.exchange.any_stops(self.steps.stopped())?;
        Ok(())
    }
}

impl<M: Module, S: Steps<M>> Steps<M> for Replica<'_, S> {
    fn begin(&mut self) -> Result<(), Error> {
        self.ask_whether_to_stop::<M>()
    }

    fn stopped(&self) -> bool {
        self.stopped
    }

    fn wants_checkpoint(&mut self, generation: u64) -> Result<bool, Error> {
        let exchange = &mut self.distribution.exchange;
        Ok(exchange.leads() && exchange.wants_checkpoint(generation)?)
    }

    fn catch_up(&mut self, strategy: &mut EvolutionStrategy, model: &mut M) -> Result<(), Error> {
        if self.distribution.catch_up(strategy, model)? {
            self.ask_whether_to_stop::<M>()?;
        }
        Ok(())
    }

    fn ask(&mut self, strategy: &mut EvolutionStrategy, model: &M) -> Result<Population, Error> {
        self.steps.ask(strategy, model)
    }

    fn evaluate(&mut self, model: &M, population: &Population) -> Result<Option<Fitness>, Error> {
        let steps = &mut *self.steps;
        let mut score = |slice: &Population| Ok(steps.evaluate(model, slice)?.expect("only replicas are left behind"));
        let fitness = self.distribution.exchange.evaluate(population, &|| portable_digest(model), &mut score)?;
        if fitness.is_none() {
            self.ask_whether_to_stop::<M>()?;
        }
        Ok(fitness)
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
        let compared = self.distribution.exchange.after(strategy.generation(), &|| portable_digest(model));
        self.diverged = matches!(compared, Err(Error::Distribution(DistributionError::Diverged { .. })));
        compared?;
        self.steps.after(strategy, model)?;
        self.ask_whether_to_stop::<M>()
    }

    fn save(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<Option<PathBuf>, Error> {
        if !self.distribution.exchange.leads() || self.diverged {
            return Ok(None);
        }
        let saved = self.steps.save(strategy, model)?;
        if let Some(folder) = &saved {
            self.distribution.exchange.saved(strategy.generation(), folder)?;
        }
        Ok(saved)
    }
}
