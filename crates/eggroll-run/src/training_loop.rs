//! A plain training loop: ask, evaluate, tell, with checkpoints.

use crate::checkpoint::Checkpoints;
use crate::distribution::{Distribution, OfProgram, Replica};
use crate::error::{Error, UserError};
use crate::guard::PATIENCE;
use crate::replay::ReplayLog;
use crate::steps::{LoopPlan, Steps, drive};
use burn::module::Module;
use eggroll_train::{EvolutionStrategy, Fitness, GenerationReport, Population};
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// A training loop over generations, without a configuration file, metrics or a display; the learner,
/// [`EsTraining`](crate::EsTraining), has these.
///
/// # Example
///
/// ```
/// use burn::optim::AdamConfig;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::LinearConfig;
/// use eggroll_run::TrainingLoop;
/// use eggroll_train::EvolutionStrategyConfig;
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
    data: Option<String>,
    patience: u64,
}

impl TrainingLoop {
    /// A loop until the strategy has been told `generations` generations in all.
    pub fn new(generations: u64) -> Self {
        Self { generations, checkpoints: None, replay_log: None, data: None, patience: PATIENCE }
    }

    /// Saves a checkpoint every `every` generations and at the end, also if the loop ends by an error or, where panics unwind, by a panic of
    /// `evaluate` or `after`.
    pub fn with_checkpoints(mut self, checkpoints: Checkpoints, every: u64) -> Self {
        self.checkpoints = Some((checkpoints, every.max(1)));
        self
    }

    /// Logs all fitness to a file from which [`replay`](crate::replay()) can rebuild the model of any generation. An existing log is continued
    /// where the strategy stands ([`ReplayLog::open`]).
    pub fn with_replay_log(mut self, path: impl Into<PathBuf>) -> Self {
        self.replay_log = Some(path.into());
        self
    }

    /// Sets the digest of the training data ([`data_digest`](crate::data_digest)): replicas with other data are refused when they
    /// begin, and checkpoints store it.
    pub fn with_data(mut self, digest: impl Into<String>) -> Self {
        self.data = Some(digest.into());
        self
    }

    /// Sets the number of consecutive generations without a finite fitness value after which the loop ends with an error; 0 for never, 10
    /// by default.
    pub fn with_patience(mut self, generations: u64) -> Self {
        self.patience = generations;
        self
    }

    /// Runs the loop and returns the model. `evaluate` scores a population; `after` sees the updated model after every
    /// generation and may break the loop.
    ///
    /// # Errors
    ///
    /// - errors of the strategy, the checkpoints or the replay log;
    /// - [`Error::User`] with the error of `evaluate` or `after`;
    /// - [`RunError::NonFiniteFitness`](crate::RunError::NonFiniteFitness) and
    ///   [`RunError::NonFiniteParameters`](crate::RunError::NonFiniteParameters);
    /// - [`RunError::InUse`](crate::RunError::InUse) if another process writes the checkpoints or the replay log.
    ///
    /// A checkpoint of the last complete generation is saved before an error of `evaluate` or `after` is returned. If that fails too,
    /// [`Error::Two`] has both.
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
    /// As [`run`](Self::run); [`Error::Distribution`] with the difference between replicas, or with the failed rank.
    pub fn run_distributed<M: Module>(
        &self,
        distribution: &mut Distribution,
        strategy: &mut EvolutionStrategy,
        mut model: M,
        evaluate: impl FnMut(&M, &Population) -> Result<Fitness, UserError>,
        after: impl FnMut(&M, &GenerationReport) -> Result<ControlFlow<()>, UserError>,
    ) -> Result<M, Error> {
        let (leads, data) = (distribution.leads(), self.data.as_deref());
        let result =
            distribution.begin(strategy, &mut model, OfProgram { data, settings: &Value::Null }).and_then(|()| {
                let checkpoints = match &self.checkpoints {
                    Some((checkpoints, _)) if leads => {
                        let checkpoints = checkpoints.clone().locked()?;
                        Some(match data {
                            Some(data) => checkpoints.with_data(data),
                            None => checkpoints,
                        })
                    }
                    _ => None,
                };
                let every = self.checkpoints.as_ref().map_or(0, |(_, every)| *every);
                let log = self.replay_log.as_ref().filter(|_| leads);
                let log = log.map(|path| ReplayLog::open(path, strategy, &model)).transpose()?;
                let plan = LoopPlan { until: self.generations, every, patience: self.patience, is_saved: false };
                let mut steps = PlainLoop { evaluate, after: leads.then_some(after), checkpoints, stopped: false };
                drive(strategy, model, plan, log, &mut Replica::new(&mut steps, distribution))
            });
        distribution.end(result)
    }
}

/// The steps of a [`TrainingLoop`].
struct PlainLoop<E, A> {
    evaluate: E,
    /// Of rank 0.
    after: Option<A>,
    checkpoints: Option<Checkpoints>,
    stopped: bool,
}

impl<M: Module, E, A> Steps<M> for PlainLoop<E, A>
where
    E: FnMut(&M, &Population) -> Result<Fitness, UserError>,
    A: FnMut(&M, &GenerationReport) -> Result<ControlFlow<()>, UserError>,
{
    fn stopped(&self) -> bool {
        self.stopped
    }

    fn evaluate(&mut self, model: &M, population: &Population) -> Result<Option<Fitness>, Error> {
        (self.evaluate)(model, population).map(Some).map_err(Error::User)
    }

    fn after(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error> {
        let report = strategy.report().expect("tell made a report");
        if let Some(after) = &mut self.after {
            self.stopped = after(model, report).map_err(Error::User)?.is_break();
        }
        Ok(())
    }

    fn save(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<Option<PathBuf>, Error> {
        self.checkpoints.as_ref().map(|checkpoints| checkpoints.save(strategy, model)).transpose()
    }
}
