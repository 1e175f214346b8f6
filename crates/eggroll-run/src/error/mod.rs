//! Everything that can go wrong in a run, by subject, with the values in it.

mod run;
mod saved;
#[cfg(feature = "text")]
mod text;
#[cfg(feature = "profile")]
mod trace;

pub use run::RunError;
pub use saved::SavedError;
#[cfg(feature = "text")]
pub use text::TextError;
#[cfg(feature = "profile")]
pub use trace::TraceError;

use burn::store::RecordError;
use eggroll_core::NoiserError;
use eggroll_train::{ConfigError, DistributionError, MemoryError, TellError};
use std::io;
use std::path::PathBuf;

/// An error of user code in the loop.
pub type UserError = Box<dyn std::error::Error + Send + Sync>;

/// Errors of this crate: one variant for each subject.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The strategy.
    #[error(transparent)]
    Train(#[from] eggroll_train::Error),
    /// A file or folder.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A checkpoint or a replay log.
    #[error(transparent)]
    Saved(#[from] SavedError),
    /// Settings of the run, or its folder.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Replicas of a distributed run.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
    /// An engine of another crate that connects replicas, such as `eggroll-nats`.
    #[error(transparent)]
    Engine(UserError),
    /// A trace.
    #[cfg(feature = "profile")]
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A text, or how it is read.
    #[cfg(feature = "text")]
    #[error(transparent)]
    Text(#[from] TextError),
    /// A failure of the user's own code in the training loop.
    #[error(transparent)]
    User(UserError),
    /// A failure, and a second one in the cleanup after it, such as a checkpoint.
    #[error("{first}; then: {then}")]
    Two {
        /// The first failure.
        #[source]
        first: Box<Error>,
        /// The second failure.
        then: Box<Error>,
    },
}

eggroll_core::debug_is_message!(Error);

/// The errors in [`eggroll_train::Error`], so that `?` takes them too.
macro_rules! of_training {
    ($($error:ty),*) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::Train(error.into())
            }
        })*
    };
}

of_training!(ConfigError, MemoryError, NoiserError, TellError);

impl Error {
    /// This failure, together with a second one if there is one.
    pub(crate) fn and<R>(self, then: Result<R, Self>) -> Self {
        match then {
            Ok(_) => self,
            Err(then) => Self::Two { first: Box::new(self), then: Box::new(then) },
        }
    }

    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    pub(crate) fn record(path: impl Into<PathBuf>) -> impl FnOnce(RecordError) -> Self {
        let path = path.into();
        move |error| SavedError::Checkpoint { path, reason: error.to_string() }.into()
    }
}
