//! The steps of every training loop: generations, a replay log and checkpoints.

use crate::error::{Error, RunError};
use crate::guard::Guard;
use crate::replay::ReplayLog;
use burn::module::Module;
use eggroll_train::{EvolutionStrategy, Fitness, Population};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;

/// The steps of each generation of a loop.
pub(crate) trait Steps<M: Module> {
    /// Called once, before the first generation.
    fn begin(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Whether the loop is to end before the next generation.
    fn stopped(&self) -> bool;

    /// Whether other replicas can join only from a checkpoint of this generation, which is then saved.
    fn wants_checkpoint(&mut self, _generation: u64) -> Result<bool, Error> {
        Ok(false)
    }

    /// Continues from a later checkpoint, if other replicas have left this one behind.
    fn catch_up(&mut self, _strategy: &mut EvolutionStrategy, _model: &mut M) -> Result<(), Error> {
        Ok(())
    }

    /// Asks for the population of the coming generation.
    fn ask(&mut self, strategy: &mut EvolutionStrategy, _model: &M) -> Result<Population, Error> {
        Ok(strategy.ask())
    }

    /// Scores the population; `None` if other replicas have left this one behind, or need a checkpoint first.
    fn evaluate(&mut self, model: &M, population: &Population) -> Result<Option<Fitness>, Error>;

    /// Makes the generation's step.
    fn tell(
        &mut self,
        strategy: &mut EvolutionStrategy,
        model: &mut M,
        population: Population,
        fitness: Fitness,
    ) -> Result<(), Error> {
        strategy.tell(model, population, fitness)?;
        Ok(())
    }

    /// Sees the updated model.
    fn after(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error>;

    /// Saves a checkpoint; its folder, if there is one.
    fn save(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<Option<PathBuf>, Error>;
}

/// How long a loop runs, and how often it saves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopPlan {
    /// Total number of generations.
    pub until: u64,
    /// Generations between two checkpoints; 0 for none but the last.
    pub every: u64,
    /// Generations in a row without a finite fitness after which the loop ends; 0 for any number.
    pub patience: u64,
    /// Whether there is a checkpoint of the loop's first generation.
    pub is_saved: bool,
}

/// Runs generations until all have been told or the steps stop, with checkpoints on the way. A last checkpoint has the last complete
/// generation, also before an error is returned, and before a panic of `evaluate` or `after` is passed on. Fitness is in the replay log,
/// and flushed, before a checkpoint is saved that continues from it.
pub(crate) fn drive<M: Module>(
    strategy: &mut EvolutionStrategy,
    mut model: M,
    plan: LoopPlan,
    mut log: Option<ReplayLog>,
    steps: &mut impl Steps<M>,
) -> Result<M, Error> {
    let LoopPlan { until, every, patience, is_saved } = plan;
    let mut saved = is_saved.then(|| strategy.generation());
    let mut guard = Guard::new(patience);
    steps.begin()?;
    loop {
        if steps.wants_checkpoint(strategy.generation())? {
            save(steps, log.as_mut(), strategy, &model)?;
            saved = Some(strategy.generation());
        }
        if strategy.generation() >= until || steps.stopped() {
            break;
        }
        steps.catch_up(strategy, &mut model)?;
        if strategy.generation() >= until || steps.stopped() {
            break;
        }
        let evaluated = caught(|| {
            let population = steps.ask(strategy, &model)?;
            let fitness = steps.evaluate(&model, &population)?;
            Ok((population, fitness))
        });
        let (population, fitness) = match evaluated {
            Ok((population, Some(fitness))) => (population, fitness),
            Ok((_, None)) => continue,
            Err(failure) => return failure.end(|| save(steps, log.as_mut(), strategy, &model)),
        };
        let logged = log.is_some().then(|| fitness.clone());
        if let Err(error) = steps.tell(strategy, &mut model, population, fitness) {
            // Nothing has changed.
            return LoopFailure::Error(error).end(|| save(steps, log.as_mut(), strategy, &model));
        }
        let seen = caught(|| steps.after(strategy, &model).and_then(|()| guard.check(strategy, &model)));
        // After `after`: a run that is killed in it repeats the generation and `after`.
        let appended = match (&mut log, &logged) {
            (Some(log), Some(fitness)) => log.append(strategy, fitness),
            _ => Ok(()),
        };
        if let Err(failure) = seen.and(appended.map_err(LoopFailure::Error)) {
            return failure.end(|| save(steps, log.as_mut(), strategy, &model));
        }
        if every > 0 && strategy.generation().is_multiple_of(every) {
            save(steps, log.as_mut(), strategy, &model)?;
            saved = Some(strategy.generation());
        }
    }
    if saved != Some(strategy.generation()) {
        save(steps, log.as_mut(), strategy, &model)?;
    }
    Ok(model)
}

/// Reasons to end a loop early.
enum LoopFailure {
    Error(Error),
    /// The payload of a panic.
    Panic(Box<dyn Any + Send>),
}

/// Runs the user's code. After a panic, state that it has changed is used only for a checkpoint, whose model and strategy it
/// cannot change.
fn caught<R>(run: impl FnOnce() -> Result<R, Error>) -> Result<R, LoopFailure> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(LoopFailure::Error),
        Err(payload) => Err(LoopFailure::Panic(payload)),
    }
}

impl LoopFailure {
    /// Saves, then returns the error, with a saving error if there is one, or resumes unwinding.
    fn end<R>(self, save: impl FnOnce() -> Result<(), Error>) -> Result<R, Error> {
        match self {
            // Saving would fail the same way.
            Self::Error(error @ Error::Run(RunError::NonFiniteParameters { .. })) => Err(error),
            Self::Error(error) => Err(error.and(save())),
            Self::Panic(payload) => {
                if let Err(error) = save() {
                    crate::print_note!("the last complete generation could not be saved: {error}");
                }
                resume_unwind(payload)
            }
        }
    }
}

fn save<M: Module>(
    steps: &mut impl Steps<M>,
    log: Option<&mut ReplayLog>,
    strategy: &EvolutionStrategy,
    model: &M,
) -> Result<(), Error> {
    log.map_or(Ok(()), ReplayLog::sync)?;
    steps.save(strategy, model).map(drop)
}
