//! Ends runs that can no longer learn: without a finite fitness, or with parameters that are not finite.

use crate::checkpoint::check_finite;
use crate::error::{Error, RunError};
use burn::module::Module;
use eggroll_train::EvolutionStrategy;

/// Default number of consecutive generations without a finite fitness after which a run ends.
pub(crate) const PATIENCE: u64 = 10;

/// Watches the fitness of a loop.
#[derive(Debug)]
pub(crate) struct Guard {
    /// 0 for any number.
    patience: u64,
    /// Generations in a row without a finite fitness.
    streak: u64,
}

impl Guard {
    pub fn new(patience: u64) -> Self {
        Self { patience, streak: 0 }
    }

    /// Checks the generation that the strategy was told last. Parameters are checked only in the first generation without a finite fitness,
    /// which parameters that are not finite would cause.
    pub fn check<M: Module>(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error> {
        let report = strategy.report().expect("tell made a report");
        // Scores may be those of parts, of which some are finite.
        if !report.fitness_mean.is_nan() {
            self.streak = 0;
            return Ok(());
        }
        self.streak += 1;
        if self.streak == 1 {
            check_finite(strategy, model)?;
        }
        if self.patience > 0 && self.streak >= self.patience {
            let (first, generations) = (strategy.generation() - self.streak, self.streak);
            return Err(RunError::NonFiniteFitness { first, generations }.into());
        }
        Ok(())
    }
}
