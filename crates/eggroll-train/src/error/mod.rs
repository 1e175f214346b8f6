//! Everything that can go wrong between a configuration and an update, by subject, with the values in it.

mod config;
mod distribution;
mod memory;
mod record;
mod tell;

pub use config::ConfigError;
pub(crate) use config::MOST_MEMBERS;
pub use distribution::DistributionError;
pub use memory::MemoryError;
pub use record::RecordError;
pub use tell::TellError;

use eggroll_core::{NoiseSourceError, NoiserError, NonFiniteError, SpreadError, TableError};

/// Errors of this crate: one variant for each subject.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting that no strategy can have, or that does not fit the model.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The noiser's settings.
    #[error(transparent)]
    Noiser(#[from] NoiserError),
    /// The model's parameters.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A parameter that is NaN or infinite before the first generation.
    #[error(transparent)]
    NonFinite(#[from] NonFiniteError),
    /// A parameter that noise cannot be relative to.
    #[error(transparent)]
    Spread(#[from] SpreadError),
    /// The noise source.
    #[error(transparent)]
    NoiseSource(#[from] NoiseSourceError),
    /// More memory than may be used.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A state that was saved, and cannot be loaded.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A generation whose parts do not belong together.
    #[error(transparent)]
    Tell(#[from] TellError),
    /// Settings of rollouts, as `eggroll-rl` refuses them.
    #[error(transparent)]
    Rollouts(Box<dyn std::error::Error + Send + Sync>),
    /// Replicas of a distributed run.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
}

eggroll_core::debug_is_message!(Error);
