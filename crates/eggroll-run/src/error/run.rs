//! Settings of a run, and its folder.

use std::path::PathBuf;
#[cfg(feature = "learner")]
use std::sync::Arc;

/// Why a run is refused.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A configuration of a run that cannot be read.
    #[error("{path}: {reason}")]
    Configuration {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        reason: String,
    },
    /// A program's settings, in the configuration of a run, that it cannot read.
    #[error("the settings of the run are not this program's: {0}")]
    Settings(String),
    /// An interval of no generations.
    #[error("{0} must be at least 1 generation, not 0")]
    Interval(&'static str),
    /// A folder that holds another run.
    #[error("{path} belongs to another run: `{field}` differs")]
    OtherRun {
        /// The configuration of the run that is there.
        path: PathBuf,
        /// A field in which the configurations differ.
        field: String,
    },
    /// A metric that has not been registered.
    #[error("no metric is named {name:?}; there are {known:?}")]
    UnknownMetric {
        /// The name.
        name: String,
        /// Names of metrics of that kind.
        known: Vec<String>,
    },
    /// A failure inside burn-train.
    #[cfg(feature = "learner")]
    #[error("{0}")]
    Training(Arc<burn::train::TrainingError>),
}
