//! A saved state that cannot be loaded.

/// Why [`try_load_record`](crate::EvolutionStrategy::try_load_record) loads nothing.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
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
    /// Spreads of another strategy.
    #[error("the spreads of parameters that noise is relative to cannot be loaded: {0}")]
    Spreads(String),
    /// Master weights of other parameters, or that are not numbers.
    #[error("the f32 master weights cannot be loaded: {0}")]
    Masters(String),
    /// The state of other transforms.
    #[error("the state of the transforms cannot be loaded: {0}")]
    Transforms(String),
    /// Row checks of another model.
    #[error("the record has row checks of {found} parameters, but the model has {parameters} parameters")]
    Rows {
        /// Parameters in the record.
        found: usize,
        /// Parameters of the model.
        parameters: usize,
    },
    /// An anchor that the strategy does not have.
    #[error(
        "the record decays towards other parameters: its anchor has the digest {expected}, this strategy's has \
         {found}. Initialize the strategy with the model that the run began with, or give that model to \
         try_with_anchor"
    )]
    Anchor {
        /// Digest in the record, `none` without anchor.
        expected: String,
        /// Digest of the strategy's anchor.
        found: String,
    },
}

eggroll_core::debug_is_message!(RecordError);
