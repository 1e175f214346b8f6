//! Runs end where nothing is learned any more: without a finite fitness, or a finite parameter.

use crate::checkpoint::check_finite;
use crate::error::{Error, RunError};
use burn::module::Module;
use eggroll_train::EvolutionStrategy;

/// Generations in a row without a finite fitness after which a run ends, unless set.
pub(crate) const PATIENCE: u64 = 10;

/// What a loop has seen of its fitness.
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

    /// Looks at the generation that the strategy was told last. The first one without a finite fitness shows parameters that are not finite
    /// either, without a look at those of each generation.
    pub fn check<M: Module>(&mut self, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error> {
        let report = strategy.report().expect("tell made a report");
        if report.non_finite < strategy.config().population_size {
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
