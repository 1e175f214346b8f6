//! The steps of a replica that writes nothing.

use super::task::EsTask;
use crate::error::Error;
use crate::steps::Steps;
use burn::module::Module;
use burn::train::Interrupter;
use eggroll_train::{EvolutionStrategy, Fitness, Population};
use std::path::PathBuf;

/// Evaluates only; rank 0 does everything else.
pub(super) struct Follower<'a, T> {
    pub task: &'a mut T,
    pub interrupter: Interrupter,
}

impl<M: Module, T: EsTask<M>> Steps<M> for Follower<'_, T> {
    fn stopped(&self) -> bool {
        self.interrupter.should_stop()
    }

    fn ask(&mut self, strategy: &mut EvolutionStrategy, model: &M) -> Result<Population, Error> {
        self.task.before_generation(strategy, model).map_err(Error::User)?;
        Ok(strategy.ask())
    }

    fn evaluate(&mut self, model: &M, population: &Population) -> Result<Option<Fitness>, Error> {
        self.task.evaluate(model, population).map(Some).map_err(Error::User)
    }

    fn after(&mut self, _strategy: &EvolutionStrategy, _model: &M) -> Result<(), Error> {
        Ok(())
    }

    fn save(&mut self, _strategy: &EvolutionStrategy, _model: &M) -> Result<Option<PathBuf>, Error> {
        Ok(None)
    }
}
