//! A plain training loop: ask, evaluate, tell, with checkpoints.

use crate::checkpoint::Checkpoints;
use crate::distribution::{Distribution, Replica};
use crate::error::Error;
use crate::fitness::Fitness;
use crate::population::Population;
use crate::replay::ReplayLog;
use crate::strategy::{EvolutionStrategy, GenerationReport};
use burn::module::Module;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// What user code in the loop may fail with.
pub type UserError = Box<dyn std::error::Error + Send + Sync>;

/// A training loop over generations, without a configuration file, metrics or a display: those are the learner's,
/// [`EsTraining`](crate::EsTraining).
///
/// # Example
///
/// ```
/// use burn::optim::AdamConfig;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::LinearConfig;
/// use eggroll_train::{EvolutionStrategyConfig, TrainingLoop};
/// use std::ops::ControlFlow;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::flex();
/// let model = LinearConfig::new(2, 1).init(&device);
/// let x = Tensor::<2>::ones([4, 2], &device);
/// let mut strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).try_init(&model)?;
///
/// let model = TrainingLoop::new(10).run(
///     &mut strategy,
///     model,
///     |model, population| Ok(population.evaluate(|members| members.mean(model.forward_shared(x.clone())))),
///     |_model, _report| Ok(ControlFlow::Continue(())),
/// )?;
/// assert_eq!(strategy.generation(), 10);
/// # let _ = model;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TrainingLoop {
    generations: u64,
    checkpoints: Option<(Checkpoints, u64)>,
    replay_log: Option<PathBuf>,
}

impl TrainingLoop {
    /// A loop until the strategy has been told `generations` generations in all.
    pub fn new(generations: u64) -> Self {
        Self { generations, checkpoints: None, replay_log: None }
    }

    /// Saves a checkpoint every `every` generations and at the end, however the loop ends but by a panic.
    pub fn with_checkpoints(mut self, checkpoints: Checkpoints, every: u64) -> Self {
        self.checkpoints = Some((checkpoints, every.max(1)));
        self
    }

    /// Logs all fitness in a file, which [`replay`](crate::replay()) makes the model of any generation from. A log that is there goes on
    /// where the strategy stands ([`ReplayLog::open`]).
    pub fn with_replay_log(mut self, path: impl Into<PathBuf>) -> Self {
        self.replay_log = Some(path.into());
        self
    }

    /// Runs the loop and returns the model. `evaluate` scores a population; `after` sees the updated model after every
    /// generation and may break the loop.
    ///
    /// # Errors
    ///
    /// Errors of the strategy, the checkpoints or the replay log; [`Error::User`] with what `evaluate` or `after` returned. A
    /// checkpoint of the last complete generation is saved before an error of `evaluate` or `after` is returned.
    pub fn run<M: Module>(
        &self,
        strategy: &mut EvolutionStrategy,
        model: M,
        evaluate: impl FnMut(&M, &Population) -> Result<Fitness, UserError>,
        after: impl FnMut(&M, &GenerationReport) -> Result<ControlFlow<()>, UserError>,
    ) -> Result<M, Error> {
        self.run_distributed(&mut Distribution::default(), strategy, model, evaluate, after)
    }

    /// [`run`](Self::run) as one of several replicas: `evaluate` gets a slice of every population. Only rank 0 calls `after` and saves
    /// checkpoints; if it breaks the loop, all end.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run); [`Error::Distribution`] with what the replicas found, or with the rank that has failed.
    pub fn run_distributed<M: Module>(
        &self,
        distribution: &mut Distribution,
        strategy: &mut EvolutionStrategy,
        model: M,
        evaluate: impl FnMut(&M, &Population) -> Result<Fitness, UserError>,
        after: impl FnMut(&M, &GenerationReport) -> Result<ControlFlow<()>, UserError>,
    ) -> Result<M, Error> {
        let (checkpoints, every) = match &self.checkpoints {
            Some((checkpoints, every)) => (Some(checkpoints), *every),
            None => (None, 0),
        };
        let (leads, replay_log) = (distribution.leads(), self.replay_log.as_ref());
        let mut steps = Plain { evaluate, after: leads.then_some(after), checkpoints, stopped: false };
        let result = distribution.begin(strategy, &model).and_then(|()| {
            let log = replay_log.filter(|_| leads).map(|path| ReplayLog::open(path, strategy, &model)).transpose()?;
            drive(strategy, model, self.generations, every, log, &mut Replica::new(&mut steps, distribution))
        });
        distribution.end(result)
    }
}

/// What is done in each generation of a loop.
pub(crate) trait Steps<M: Module> {
    /// Called once, before the first generation.
    fn begin(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Whether the loop is to end before the next generation.
    fn stopped(&self) -> bool;

    /// Asks for the population of the coming generation.
    fn ask(&mut self, strategy: &EvolutionStrategy) -> Population {
        strategy.ask()
    }

    /// Scores the population.
    fn evaluate(&mut self, model: &M, population: &Population) -> Result<Fitness, Error>;

    /// Makes the generation's step.
    fn tell(
        &mut self,
        strategy: &mut EvolutionStrategy,
        model: M,
        population: Population,
        fitness: Fitness,
    ) -> Result<M, Error> {
        strategy.tell(model, population, fitness)
    }

    /// Sees the updated model.
    fn after(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error>;

    /// Saves a checkpoint.
    fn save(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error>;
}

/// Runs generations until `until` have been told or the steps stop, with a checkpoint every `every` generations (0: none) and one
/// of the last complete generation in the end, before an error of `evaluate` or `after` is returned too. Fitness is in the replay log,
/// and flushed, before a checkpoint is saved that goes on from it.
pub(crate) fn drive<M: Module>(
    strategy: &mut EvolutionStrategy,
    mut model: M,
    until: u64,
    every: u64,
    mut log: Option<ReplayLog>,
    steps: &mut impl Steps<M>,
) -> Result<M, Error> {
    let mut saved = None;
    steps.begin()?;
    while strategy.generation() < until && !steps.stopped() {
        let population = steps.ask(strategy);
        let fitness = match steps.evaluate(&model, &population) {
            Ok(fitness) => fitness,
            Err(error) => return save(steps, log.as_ref(), strategy, &model).and(Err(error)),
        };
        let logged = log.is_some().then(|| fitness.clone());
        model = steps.tell(strategy, model, population, fitness)?;
        if let (Some(log), Some(fitness)) = (&mut log, &logged) {
            log.append(strategy, fitness)?;
        }
        if let Err(error) = steps.after(strategy, &model) {
            return save(steps, log.as_ref(), strategy, &model).and(Err(error));
        }
        if every > 0 && strategy.generation().is_multiple_of(every) {
            save(steps, log.as_ref(), strategy, &model)?;
            saved = Some(strategy.generation());
        }
    }
    if saved != Some(strategy.generation()) {
        save(steps, log.as_ref(), strategy, &model)?;
    }
    Ok(model)
}

fn save<M: Module>(
    steps: &mut impl Steps<M>,
    log: Option<&ReplayLog>,
    strategy: &EvolutionStrategy,
    model: &M,
) -> Result<(), Error> {
    log.map_or(Ok(()), ReplayLog::sync)?;
    steps.save(strategy, model)
}

/// The steps of a [`TrainingLoop`].
struct Plain<'a, E, A> {
    evaluate: E,
    /// Of rank 0.
    after: Option<A>,
    checkpoints: Option<&'a Checkpoints>,
    stopped: bool,
}

impl<M: Module, E, A> Steps<M> for Plain<'_, E, A>
where
    E: FnMut(&M, &Population) -> Result<Fitness, UserError>,
    A: FnMut(&M, &GenerationReport) -> Result<ControlFlow<()>, UserError>,
{
    fn stopped(&self) -> bool {
        self.stopped
    }

    fn evaluate(&mut self, model: &M, population: &Population) -> Result<Fitness, Error> {
        (self.evaluate)(model, population).map_err(Error::User)
    }

    fn after(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error> {
        let report = strategy.report().expect("tell made a report");
        if let Some(after) = &mut self.after {
            self.stopped = after(model, report).map_err(Error::User)?.is_break();
        }
        Ok(())
    }

    fn save(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error> {
        self.checkpoints.map_or(Ok(()), |checkpoints| checkpoints.save(strategy, model).map(drop))
    }
}
