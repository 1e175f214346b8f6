//! What every training loop does: generation after generation, with a replay log and checkpoints.

use crate::error::Error;
use crate::replay::ReplayLog;
use burn::module::Module;
use eggroll_train::{EvolutionStrategy, Fitness, Population};

/// What user code in the loop may fail with.
pub type UserError = Box<dyn std::error::Error + Send + Sync>;

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
        Ok(strategy.tell(model, population, fitness)?)
    }

    /// Sees the updated model.
    fn after(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error>;

    /// Saves a checkpoint.
    fn save(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error>;
}

/// Runs generations until `until` have been told or the steps stop, with a checkpoint every `every` generations (0: none) and one
/// of the last complete generation in the end, before an error of `evaluate` or `after` is returned too. Fitness is in the replay log,
/// and flushed, before a checkpoint is saved that continues from it.
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
