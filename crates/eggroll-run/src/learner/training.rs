//! The learner: a run from its configuration, begun or continued.

use super::best_checkpoints::Kept;
use super::claim::{Claim, REPLAY_LOG, checkpoints};
use super::config::{EarlyStoppingConfig, EsTrainingConfig, MetricTarget};
use super::follower::Follower;
use super::json::JsonMetrics;
use super::logs::Logs;
use super::machinery::{Machinery, TrainingParts, parts};
use super::metric_names::MetricNames;
use super::metrics::{GenerationItem, ScalarMetric, Scalars, TextMetric, built_in, names};
use super::rows::check_names;
use super::run::{Pending, Registered, Run};
use super::run_page::RunPage;
use super::screen::{self, Display};
use super::task::{EsTask, continues_from_log};
use crate::checkpoint::Checkpoints;
use crate::distribution::{Distribution, OfProgram, Replica};
use crate::error::{Error, RunError, SavedError};
use crate::folder::RunFolder;
use crate::print_note;
use crate::replay::{replay_evaluated, replay_from, replay_range};
use crate::steps::{LoopPlan, drive};
use burn::module::Module;
use burn::train::checkpoint::{CheckpointingStrategy, MetricCheckpointingStrategy};
use burn::train::logger::MetricLogger;
use burn::train::metric::store::{Aggregate, Direction, Split};
use burn::train::metric::{Adaptor, ItemLazy, Metric, Numeric};
use burn::train::{
    EarlyStoppingStrategy, Interrupter, Interruption, LearnerEvent, MetricEarlyStoppingStrategy, StoppingCondition,
};
use eggroll_core::ParameterKind;
use eggroll_train::EvolutionStrategy;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// All its generations are done.
    Finished,
    /// Early stopping decided so, at the end of this epoch.
    Early {
        /// The epoch, from 1.
        epoch: u64,
    },
    /// The interrupter was told to stop.
    Interrupted(Interruption),
    /// Another replica decided so.
    OtherReplica,
}

/// The result of a run.
pub struct EsResult<M> {
    /// The trained model.
    pub model: M,
    /// The strategy after the last generation.
    pub strategy: EvolutionStrategy,
    /// How the run ended.
    pub stop: StopReason,
    /// Warnings of diagnostics, once for each subject.
    pub warnings: Vec<String>,
}

type Register<V> = Box<dyn FnOnce(TrainingParts<V>) -> TrainingParts<V>>;

/// A run of an evolution strategy inside burn-train's machinery, in its own folder.
///
/// The folder holds
/// - `training.json`: the [configuration](EsTrainingConfig);
/// - `log.jsonl`: metrics by generation and validation;
/// - `report.html`: [a page of the run](crate::report);
/// - `checkpoints`, to continue from;
/// - `kept`: checkpoints that a strategy has chosen;
/// - `run.replay`: all fitness, if [configured](EsTrainingConfig::replay_log).
///
/// A run whose folder holds checkpoints continues from the latest one, and equals, bit for bit, a run that was never stopped. Its folder must be empty or a
/// run's when it begins; while it runs, no other process can write into it.
///
/// # Example
///
/// ```
/// use burn::optim::AdamConfig;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::{Linear, LinearConfig};
/// use eggroll_run::{EsTraining, EsTrainingConfig, StopReason};
/// use eggroll_train::{EvolutionStrategyConfig, Population};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let device = Device::flex();
/// let x = Tensor::<2>::ones([4, 2], &device);
/// let strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new());
/// let config = EsTrainingConfig::new(strategy, 20).with_validate_every(10);
///
/// let outcome = EsTraining::new(folder.path(), config).launch(
///     LinearConfig::new(2, 1).init(&device),
///     &mut |model: &Linear, population: &Population| {
///         Ok(population.evaluate(|members| members.mean(model.forward_shared(x.clone()))))
///     },
/// )?;
/// assert_eq!(outcome.stop, StopReason::Finished);
/// assert!(folder.path().join("training.json").exists());
/// # Ok(())
/// # }
/// ```
pub struct EsTraining<V: ItemLazy + 'static = Scalars> {
    folder: RunFolder,
    config: EsTrainingConfig,
    display: Display,
    interrupter: Interrupter,
    registered: Registered,
    /// The user's registrations with burn-train, in order.
    register: Vec<Register<V>>,
    checkpointing: Option<Box<dyn CheckpointingStrategy>>,
    distribution: Distribution,
    /// Logs next to `log.jsonl`.
    logs: Logs,
}

impl<V: ItemLazy + 'static> EsTraining<V> {
    /// A run of `config` in `folder`: a path, or a [`RunFolder`] that the program has begun or continued.
    pub fn new(folder: impl Into<RunFolder>, config: EsTrainingConfig) -> Self {
        Self {
            folder: folder.into(),
            config,
            display: Display::default(),
            interrupter: Interrupter::new(),
            registered: Registered::default(),
            register: Vec::new(),
            checkpointing: None,
            distribution: Distribution::default(),
            logs: Logs::default(),
        }
    }

    /// Sets what the run shows.
    pub fn with_display(mut self, display: Display) -> Self {
        self.display = display;
        self
    }

    /// Adds a metric of training: a [`ScalarMetric`] of a number that [`after_generation`](EsTask::after_generation) returns, or a metric of
    /// burn-train that needs no item, such as `IterationSpeedMetric`. Its name in small letters, joined by underscores, is its column in all
    /// logs. [`launch`](Self::launch) refuses a column that another metric, or the learner itself, has.
    pub fn metric_train<Me: Metric + Numeric + 'static>(mut self, metric: Me) -> Self
    where
        GenerationItem: Adaptor<Me::Input>,
    {
        self.registered.train.push(metric.name().to_string());
        self.with(|parts| parts.metric_train_numeric(metric))
    }

    /// Adds a metric of the output of [`validate`](EsTask::validate): a [`ScalarMetric`], or any metric of burn-train that
    /// fits.
    pub fn metric_valid<Me: Metric + Numeric + 'static>(mut self, metric: Me) -> Self
    where
        V: Adaptor<Me::Input>,
    {
        self.registered.valid.push(metric.name().to_string());
        self.with(|parts| parts.metric_valid_numeric(metric))
    }

    /// Adds a metric logger, such as burn-train's `FileMetricLogger`, next to `log.jsonl`.
    pub fn with_metric_logger(self, logger: impl MetricLogger + 'static) -> Self {
        self.with(|parts| parts.with_metric_logger(logger))
    }

    /// Writes the metrics as a table too. `log.csv` has a row for each reported generation and one for each validation, and a column for
    /// each metric. A run that continues drops the rows after its checkpoint, as in `log.jsonl`.
    #[cfg(feature = "csv")]
    pub fn with_csv(mut self) -> Self {
        self.logs.csv = true;
        self
    }

    /// Writes the metrics for TensorBoard too, into the folder `tensorboard`: scalars over generations, of the runs `train` and `valid`. A run
    /// that continues adds files which tell TensorBoard to drop what came after the checkpoint.
    #[cfg(feature = "tensorboard")]
    pub fn with_tensorboard(mut self) -> Self {
        self.logs.tensorboard = true;
        self
    }

    /// Sets an early stopping strategy in place of the configuration's. Epochs of a run that continues are shown to it again.
    pub fn with_early_stopping<S: EarlyStoppingStrategy + Clone + Send + Sync + 'static>(self, strategy: S) -> Self {
        self.with(|parts| parts.early_stopping(strategy))
    }

    /// Sets a checkpointing strategy in place of the configuration's. Its checkpoints, saved at the end of epochs, are in the folder
    /// `kept` until it deletes them.
    pub fn with_checkpointing(mut self, strategy: impl CheckpointingStrategy + 'static) -> Self {
        self.checkpointing = Some(Box::new(strategy));
        self
    }

    /// Makes the run one of several replicas in the same folder. Only rank 0 writes into it, shows anything, validates, and calls
    /// the task's [`after_generation`](EsTask::after_generation) and [`save`](EsTask::save). The others load its checkpoints, and
    /// evaluate. Any rank's interrupter stops all.
    pub fn with_distribution(mut self, distribution: Distribution) -> Self {
        self.distribution = distribution;
        self
    }

    /// The configuration of the run.
    pub fn config(&self) -> &EsTrainingConfig {
        &self.config
    }

    /// Sets the handle that interrupts the run.
    pub fn with_interrupter(mut self, interrupter: Interrupter) -> Self {
        self.interrupter = interrupter;
        self
    }

    /// The handle that interrupts the run, from another thread or from the task: after the current generation a checkpoint is
    /// saved.
    pub fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }

    fn with(mut self, register: impl FnOnce(TrainingParts<V>) -> TrainingParts<V> + 'static) -> Self {
        self.register.push(Box::new(register));
        self
    }

    /// Runs until all generations are done, early stopping decides or the interrupter is told to stop. `model` holds the initial
    /// weights; if the run continues, only its shape matters.
    ///
    /// # Errors
    ///
    /// - [`RunError::OtherRun`] if the folder holds checkpoints of another configuration or other data. Only generations, intervals of reports
    ///   and checkpoints, early stopping, and memory limits may change; a line on standard error and in the log says so
    /// - [`RunError::NotARun`] if the folder holds anything but a run, [`RunError::InUse`] if another process writes it
    /// - [`RunError::NonFiniteFitness`] and [`RunError::NonFiniteParameters`]; earlier checkpoints are unchanged
    /// - [`RunError::Interval`] and [`RunError::UnknownMetric`] for an invalid configuration
    /// - [`RunError::MetricColumn`] for two metrics that the logs cannot tell apart, or a metric with a name of the learner's
    /// - [`Error::User`] with what the task returned, after a checkpoint; a panic of the task is passed on after a checkpoint too
    /// - [`RunError::Training`] with a failure of burn-train's metrics, after a checkpoint
    /// - [`Error::Distribution`] with what replicas found, or with the rank that has failed
    /// - errors of the strategy, the checkpoints and the logs; [`Error::Two`] if the cleanup after an error fails too
    pub fn launch<M: Module, T: EsTask<M, Output = V>>(mut self, model: M, task: &mut T) -> Result<EsResult<M>, Error> {
        let mut distribution = std::mem::take(&mut self.distribution);
        let result = match (check_names(&self.registered.train, &self.registered.valid), distribution.leads()) {
            (Err(error), _) => Err(error.into()),
            (Ok(()), true) => self.lead(model, task, &mut distribution),
            (Ok(()), false) => self.follow(model, task, &mut distribution),
        };
        distribution.end(result)
    }

    /// The strategy and the model to continue with, the same on all replicas.
    fn load<M: Module, T: EsTask<M, Output = V>>(
        &self,
        model: M,
        task: &mut T,
        checkpoints: &Checkpoints,
        distribution: &mut Distribution,
    ) -> Result<(EvolutionStrategy, M), Error> {
        let (strategy, model) = match task.load(checkpoints, model.clone())? {
            Some(loaded) => loaded,
            None => (self.config.strategy.try_init(&model)?, model),
        };
        let (mut strategy, mut model) = match continues_from_log(&self.config, task) {
            true => replay_rest(&self.folder.file(REPLAY_LOG), strategy, model, task)?,
            false => (strategy, model),
        };
        let of_program = OfProgram { data: self.config.data.as_deref(), settings: &self.config.settings };
        distribution.begin(&mut strategy, &mut model, of_program)?;
        task.begin(&strategy, &model).map_err(Error::User)?;
        Ok((strategy, model))
    }

    fn plan(&self, every: u64, is_saved: bool) -> LoopPlan {
        LoopPlan { until: self.config.generations, every, patience: self.config.patience, is_saved }
    }

    /// Runs as a replica that writes nothing.
    fn follow<M: Module, T: EsTask<M, Output = V>>(
        self,
        model: M,
        task: &mut T,
        distribution: &mut Distribution,
    ) -> Result<EsResult<M>, Error> {
        self.config.validate()?;
        let (mut strategy, model) = self.load(model, task, &checkpoints(&self.folder, &self.config), distribution)?;
        let plan = self.plan(0, false);
        let mut steps = Follower { task, interrupter: self.interrupter };
        let model = drive(&mut strategy, model, plan, None, &mut Replica::new(&mut steps, distribution))?;
        let finished = strategy.generation() >= self.config.generations;
        let stop = if finished { StopReason::Finished } else { StopReason::OtherReplica };
        Ok(EsResult { model, strategy, stop, warnings: Vec::new() })
    }

    fn lead<M: Module, T: EsTask<M, Output = V>>(
        mut self,
        model: M,
        task: &mut T,
        distribution: &mut Distribution,
    ) -> Result<EsResult<M>, Error> {
        self.config.validate()?;
        let (folder, config) = (self.folder.clone(), self.config.clone());
        let claim = Claim::new(&folder, &config, continues_from_log(&config, task))?;
        let (mut strategy, model) = self.load(model, task, &claim.checkpoints, distribution)?;
        let claim = claim.save()?;
        let log = claim.replay_log(&strategy, &model)?;
        let is_saved = claim.checkpoints.has(strategy.generation())?;
        let (until, plan) = (config.generations, self.plan(config.checkpoint_every, is_saved));
        let page = RunPage::new(folder.path(), &strategy, &model);
        let mut run = self.start(&strategy, claim, page, task)?;
        let result = drive(&mut strategy, model, plan, log, &mut Replica::new(&mut run, distribution));
        let (model, (ending, early, warnings)) = match (result, run.finish()) {
            (Ok(model), Ok(finished)) => (model, finished),
            (Ok(_), Err(error)) => return Err(error),
            (Err(error), finished) => return Err(error.and(finished)),
        };
        if let Some(error) = ending.error {
            return Err(RunError::Training(error).into());
        }
        let stop = match (early, ending.interruption) {
            _ if strategy.generation() >= until => StopReason::Finished,
            (Some(epoch), _) => StopReason::Early { epoch },
            (None, Some(interruption)) => StopReason::Interrupted(interruption),
            (None, None) => StopReason::OtherReplica,
        };
        Ok(EsResult { model, strategy, stop, warnings })
    }

    /// Registers everything with burn-train and starts it.
    fn start<'a, T>(
        &mut self,
        strategy: &EvolutionStrategy,
        claim: Claim,
        page: RunPage,
        task: &'a mut T,
    ) -> Result<Run<'a, T, V>, Error> {
        let config = self.config.clone();
        let has = |kind| strategy.parameters().trained(kind).next().is_some();
        let (floats, integers) = (has(ParameterKind::Float), has(ParameterKind::Integer));
        let epoch = config.epoch(strategy.generation());
        let path = self.folder.file("log.jsonl");
        let mut log = JsonMetrics::open(&path, strategy.generation(), epoch - 1)?;
        let (file, failure) = (log.file(), log.failure());
        claim.changes.iter().for_each(|change| print_note!("changed: {change}"));
        log.note(&claim.changes)?;

        let mut parts =
            parts::<V>(self.folder.path()).with_interrupter(self.interrupter.clone()).with_metric_logger(log);
        parts = self.logs.register(parts, &self.folder, strategy.generation(), &failure)?;
        let built_in = built_in(floats, integers, config.diagnostics);
        let names: BTreeSet<String> = built_in.iter().map(|metric| metric.name().to_string()).collect();
        for metric in built_in {
            self.registered.train.push(metric.name().to_string());
            parts = parts.metric_train_numeric(metric);
        }
        parts = parts.metric_train(TextMetric::new(names::GENERATION));
        if config.diagnostics {
            parts = parts.metric_train(TextMetric::new(names::WARNINGS));
        }
        if let Some(early_stopping) = &config.early_stopping {
            parts = parts.early_stopping(self.early_stopping(early_stopping)?);
        }
        let parts = self.register.drain(..).fold(parts, |parts, register| register(parts));
        let kept = match (self.checkpointing.take(), &config.keep_best) {
            (Some(strategy), _) => Some(strategy),
            (None, Some(best)) => Some(self.keep_best(best)?),
            (None, None) => None,
        };

        let names = MetricNames { valid: self.registered.valid.iter().cloned().collect(), built_in: names };
        let (parts, screen) =
            screen::take(self.display, parts, &config, strategy.generation(), &self.interrupter, names);
        let mut machinery = Machinery::start(parts);
        let [total_epochs, starting_epoch] = [config.generations.div_ceil(config.validate_every), epoch];
        let [total_epochs, starting_epoch] = [total_epochs, starting_epoch].map(|epoch| epoch as usize);
        machinery.train(LearnerEvent::Start { total_epochs, starting_epoch, label: None });
        let mut run = Run {
            task,
            machinery,
            checkpoints: claim.checkpoints,
            log: file,
            kept: kept.map(|strategy| Kept::new(self.folder.path(), strategy)).transpose()?,
            failure,
            registered: std::mem::take(&mut self.registered),
            floats,
            integers,
            config,
            epoch: None,
            early: None,
            warnings: Vec::new(),
            pending: Pending::default(),
            reported: (Instant::now(), strategy.generation()),
            page,
            begins: true,
            screen,
        };
        run.replay(epoch - 1);
        Ok(run)
    }

    fn early_stopping(&self, config: &EarlyStoppingConfig) -> Result<MetricEarlyStoppingStrategy, Error> {
        let (metric, direction, split) = self.find(&config.metric)?;
        let condition = StoppingCondition::NoImprovementSince { n_epochs: config.patience };
        let strategy = MetricEarlyStoppingStrategy::new(&metric, Aggregate::Mean, direction, split, condition);
        Ok(strategy.with_warmup_epochs(config.warmup))
    }

    fn keep_best(&self, choice: &MetricTarget) -> Result<Box<dyn CheckpointingStrategy>, Error> {
        let (metric, direction, split) = self.find(choice)?;
        Ok(Box::new(MetricCheckpointingStrategy::new(&metric, Aggregate::Mean, direction, split)))
    }

    /// A metric of this name: burn-train's strategies need nothing else.
    fn find(&self, choice: &MetricTarget) -> Result<(ScalarMetric, Direction, Split), Error> {
        let (known, split) = match choice.validation {
            true => (&self.registered.valid, Split::Valid),
            false => (&self.registered.train, Split::Train),
        };
        Registered::check(known, &choice.name)?;
        let direction = if choice.highest { Direction::Highest } else { Direction::Lowest };
        Ok((ScalarMetric::new(&choice.name), direction, split))
    }
}

/// Replays the generations of a log after the strategy's, if it is a log of this strategy.
fn replay_rest<M: Module, T: EsTask<M>>(
    path: &Path,
    strategy: EvolutionStrategy,
    model: M,
    task: &mut T,
) -> Result<(EvolutionStrategy, M), Error> {
    if !path.exists() || !replay_range(path)?.contains(&strategy.generation()) {
        return Ok((strategy, model));
    }
    match replay_from(path, strategy.clone(), model.clone(), None) {
        Err(Error::Saved(SavedError::ReplayCredit { .. })) => {
            replay_evaluated(path, strategy, model, None, |model, population| task.evaluate_again(model, population))
        }
        replayed => replayed,
    }
}
