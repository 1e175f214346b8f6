//! The program's part of a run.

use super::config::EsTrainingConfig;
use super::metrics::Scalars;
use crate::checkpoint::Checkpoints;
use crate::error::{Error, UserError};
use burn::module::Module;
use burn::train::metric::ItemLazy;
use eggroll_train::{EvolutionStrategy, Fitness, GenerationReport, Population};
use std::path::PathBuf;
use std::time::Duration;

/// Scores members, and the program's other steps in a run. All methods but [`evaluate`](Self::evaluate) have defaults. A
/// closure `|model: &M, population: &Population| Ok(fitness)` is a task too.
///
/// In a run of several replicas ([`with_distribution`](super::EsTraining::with_distribution)) each has a task; `evaluate` gets a slice
/// of the population. All ranks call `load`, `begin`, `before_generation` and `evaluate`: put there everything that must be the same
/// on all. Only rank 0 calls the other methods.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_nn::Linear;
/// use eggroll_run::{EsTask, Scalars, UserError};
/// use eggroll_train::{Fitness, GenerationReport, Population};
///
/// struct Regression {
///     x: Tensor<2>,
///     y: Tensor<2>,
/// }
///
/// impl EsTask<Linear> for Regression {
///     type Output = Scalars;
///
///     fn evaluate(&mut self, model: &Linear, population: &Population) -> Result<Fitness, UserError> {
///         Ok(population.evaluate(|members| {
///             let error = model.forward_shared(self.x.clone()) - members.repeat(self.y.clone());
///             -members.mean(error.square())
///         }))
///     }
///
///     fn validate(&mut self, model: &Linear, _report: &GenerationReport) -> Result<Vec<Scalars>, UserError> {
///         let error = model.forward(self.x.clone()) - self.y.clone();
///         Ok(vec![Scalars::from([("Error", error.square().mean().into_scalar())])])
///     }
/// }
/// # let _ = Regression { x: Tensor::zeros([1, 1], &Device::flex()), y: Tensor::zeros([1, 1], &Device::flex()) };
/// ```
pub trait EsTask<M: Module> {
    /// The output of a validation batch for burn-train's metrics: [`Scalars`], or one of Burn's outputs such as
    /// [`ClassificationOutput`](burn::train::ClassificationOutput).
    type Output: ItemLazy + 'static;

    /// Scores the members of a generation.
    ///
    /// # Errors
    ///
    /// Any error ends the run, after a checkpoint; so do the other methods' errors.
    fn evaluate(&mut self, model: &M, population: &Population) -> Result<Fitness, UserError>;

    /// Validates the mean parameters, every [`validate_every`](super::EsTrainingConfig::validate_every) generations; the report is
    /// the last generation's.
    fn validate(&mut self, _model: &M, _report: &GenerationReport) -> Result<Vec<Self::Output>, UserError> {
        Ok(Vec::new())
    }

    /// Called once, with the model of the first generation or of the checkpoint that the run continues.
    fn begin(&mut self, _strategy: &EvolutionStrategy, _model: &M) -> Result<(), UserError> {
        Ok(())
    }

    /// Called before every generation, on every rank: the place to
    /// [set sigma](EvolutionStrategy::set_sigma) or the [learning rate](EvolutionStrategy::set_learning_rate), on all ranks alike.
    fn before_generation(&mut self, _strategy: &mut EvolutionStrategy, _model: &M) -> Result<(), UserError> {
        Ok(())
    }

    /// Called after every generation. If metrics of this generation are reported, the returned scalars go to
    /// the metrics of their names ([`metric_train`](super::EsTraining::metric_train)).
    fn after_generation(&mut self, _generation: &Generation<'_, M>) -> Result<Scalars, UserError> {
        Ok(Scalars::default())
    }

    /// Whether the state of a run is only its model and its strategy, without state of members or of the task. A run with a [replay
    /// log](super::EsTrainingConfig::replay_log) then continues after its last logged generation, even if its last checkpoint is older.
    fn continues_from_replay_log(&self) -> bool {
        false
    }

    /// Evaluates a generation whose scores are logged, for estimates by part, which depend on the inputs of layers. Called before
    /// [`begin`](Self::begin). If all members get the same data, it may evaluate only the first pair,
    /// [`slice(0..2)`](Population::slice).
    fn evaluate_again(&mut self, model: &M, population: &Population) -> Result<Fitness, UserError> {
        self.evaluate(model, population)
    }

    /// Saves a checkpoint; use [`save_with_state`](Checkpoints::save_with_state) if members keep a state.
    ///
    /// # Errors
    ///
    /// As [`Checkpoints::save`].
    fn save(&self, checkpoints: &Checkpoints, strategy: &EvolutionStrategy, model: &M) -> Result<PathBuf, Error> {
        checkpoints.save(strategy, model)
    }

    /// Loads the latest checkpoint, if there is one; use [`load_latest_with_state`](Checkpoints::load_latest_with_state) if members
    /// keep a state.
    ///
    /// # Errors
    ///
    /// As [`Checkpoints::load_latest`].
    fn load(&mut self, checkpoints: &Checkpoints, model: M) -> Result<Option<(EvolutionStrategy, M)>, Error> {
        checkpoints.load_latest(model)
    }
}

impl<M: Module, F: FnMut(&M, &Population) -> Result<Fitness, UserError>> EsTask<M> for F {
    type Output = Scalars;

    fn evaluate(&mut self, model: &M, population: &Population) -> Result<Fitness, UserError> {
        self(model, population)
    }
}

/// Whether a run continues from its replay log alone.
pub(super) fn continues_from_log<M: Module>(config: &EsTrainingConfig, task: &impl EsTask<M>) -> bool {
    config.replay_log && task.continues_from_replay_log()
}

/// A generation that is done.
#[derive(Debug)]
pub struct Generation<'a, M> {
    /// The updated model.
    pub model: &'a M,
    /// The report of the generation.
    pub report: &'a GenerationReport,
    /// The members' scores.
    pub fitness: &'a Fitness,
    /// The times of its parts.
    pub times: Times,
}

/// Time of the parts of a generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// `ask`, with the drawing of held noise.
    pub ask: Duration,
    /// The task's [`evaluate`](EsTask::evaluate).
    pub evaluate: Duration,
    /// `tell`: estimate and update.
    pub tell: Duration,
}
