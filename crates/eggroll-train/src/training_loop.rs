//! A plain training loop: ask, evaluate, tell, with progress bar, log and checkpoints.

use crate::checkpoint::Checkpoints;
use crate::error::Error;
use crate::fitness::Fitness;
use crate::log::JsonLines;
use crate::population::Population;
use crate::strategy::{EvolutionStrategy, GenerationReport};
use burn::module::Module;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// What user code in the loop may fail with.
pub type UserError = Box<dyn std::error::Error + Send + Sync>;

/// A training loop over generations.
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
    progress: bool,
    log: Option<(PathBuf, u64)>,
    checkpoints: Option<(Checkpoints, u64)>,
}

#[derive(Serialize)]
struct LogLine<'a> {
    #[serde(flatten)]
    report: &'a GenerationReport,
    evaluations: u64,
}

impl TrainingLoop {
    /// A loop until the strategy has been told `generations` generations in all.
    pub fn new(generations: u64) -> Self {
        Self { generations, progress: false, log: None, checkpoints: None }
    }

    /// Shows a progress bar on standard error, if that is a terminal.
    pub fn with_progress(mut self, progress: bool) -> Self {
        self.progress = progress;
        self
    }

    /// Writes the report of every `every`-th generation, and of the last one, to a JSON-lines file.
    pub fn with_log(mut self, path: impl Into<PathBuf>, every: u64) -> Self {
        self.log = Some((path.into(), every.max(1)));
        self
    }

    /// Saves a checkpoint every `every` generations and at the end, however the loop ends but by a panic.
    pub fn with_checkpoints(mut self, checkpoints: Checkpoints, every: u64) -> Self {
        self.checkpoints = Some((checkpoints, every.max(1)));
        self
    }

    /// Runs the loop and returns the model. `evaluate` scores a population; `after` sees the updated model after every
    /// generation and may break the loop.
    ///
    /// # Errors
    ///
    /// Errors of the strategy, the log or the checkpoints; [`Error::User`] with what `evaluate` or `after` returned. A
    /// checkpoint of the last complete generation is saved before an error of `evaluate` or `after` is returned.
    pub fn run<M: Module>(
        &self,
        strategy: &mut EvolutionStrategy,
        mut model: M,
        mut evaluate: impl FnMut(&M, &Population) -> Result<Fitness, UserError>,
        mut after: impl FnMut(&M, &GenerationReport) -> Result<ControlFlow<()>, UserError>,
    ) -> Result<M, Error> {
        let bar = self.bar(strategy.generation());
        let mut log = match &self.log {
            None => None,
            Some((path, every)) => Some((JsonLines::open(path, strategy.generation())?, *every)),
        };
        while strategy.generation() < self.generations {
            let population = strategy.ask();
            let fitness = match evaluate(&model, &population) {
                Ok(fitness) => fitness,
                Err(error) => return self.fail(strategy, &model, error),
            };
            model = strategy.tell(model, population, fitness)?;
            let report = *strategy.report().expect("tell made a report");
            let done = strategy.generation();
            bar.set_position(done);
            bar.set_message(format!("fitness {:.5}", report.fitness_mean));
            if let Some((log, every)) = &mut log
                && (report.generation.is_multiple_of(*every) || done == self.generations)
            {
                let evaluations = done * strategy.config().population as u64;
                log.write(&LogLine { report: &report, evaluations })?;
            }
            let flow = match bar.suspend(|| after(&model, &report)) {
                Ok(flow) => flow,
                Err(error) => return self.fail(strategy, &model, error),
            };
            if flow.is_break() {
                break;
            }
            if let Some((checkpoints, every)) = &self.checkpoints
                && done.is_multiple_of(*every)
                && done < self.generations
            {
                checkpoints.save(strategy, &model)?;
            }
        }
        bar.finish_and_clear();
        self.save(strategy, &model)?;
        Ok(model)
    }

    fn save<M: Module>(&self, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error> {
        match &self.checkpoints {
            Some((checkpoints, _)) => checkpoints.save(strategy, model).map(drop),
            None => Ok(()),
        }
    }

    fn fail<M: Module>(&self, strategy: &EvolutionStrategy, model: &M, error: UserError) -> Result<M, Error> {
        self.save(strategy, model)?;
        Err(Error::User(error))
    }

    fn bar(&self, position: u64) -> ProgressBar {
        if !self.progress {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {per_sec} eta {eta} {msg}");
        let bar = ProgressBar::new(self.generations).with_position(position);
        bar.with_style(style.expect("a valid template"))
    }
}
