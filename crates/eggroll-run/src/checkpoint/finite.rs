//! Refuses to save parameters that are NaN or infinite.

use crate::error::{Error, RunError};
use burn::module::Module;
use eggroll_train::EvolutionStrategy;

/// Refuses a model with trained parameters that are NaN or infinite, and a strategy with such master weights; constants may be infinite. Reads
/// one value for each parameter.
///
/// # Errors
///
/// [`RunError::NonFiniteParameters`] with the first of them and the strategy's last generation.
pub(crate) fn check_finite<M: Module>(strategy: &EvolutionStrategy, model: &M) -> Result<(), Error> {
    strategy.parameters().check_finite(model).and_then(|()| strategy.check_finite_masters()).map_err(|error| {
        let (parameter, count) = (error.path, error.count);
        RunError::NonFiniteParameters { generation: strategy.generation().saturating_sub(1), parameter, count }.into()
    })
}
