//! A saved state that cannot be loaded.

/// Why [`try_load_record`](crate::EvolutionStrategy::try_load_record) loads nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A state of the optimizer that Burn cannot read.
    #[error("the state of the optimizer cannot be loaded: {0}")]
    Optimizer(String),
    /// Settings of a running strategy that it cannot have.
    #[error("the settings of the running strategy cannot be loaded: {0}")]
    Settings(String),
    /// A state of the learning-rate schedule that Burn cannot read.
    #[error("the state of the learning-rate schedule cannot be loaded: {0}")]
    Schedule(String),
}
