//! The f32 copies of half-precision parameters that a strategy keeps.

use super::EvolutionStrategy;
use eggroll_core::NonFiniteError;

impl EvolutionStrategy {
    /// SHA-256 of the [master weights](crate::EvolutionStrategyConfig::with_master_weights), as hexadecimal digits; `None` if there are none.
    /// Reads them.
    pub fn master_digest(&self) -> Option<String> {
        self.chain.masters.as_ref().and_then(|masters| masters.digest())
    }

    /// Checks that the [master weights](crate::EvolutionStrategyConfig::with_master_weights), if there are any, are finite; no record
    /// loads otherwise. Reads one value for each parameter.
    ///
    /// # Errors
    ///
    /// [`NonFiniteError`] of the first parameter with NaN or infinity.
    pub fn check_finite_masters(&self) -> Result<(), NonFiniteError> {
        self.chain.masters.as_ref().map_or(Ok(()), |masters| masters.check_finite(&self.table))
    }
}
