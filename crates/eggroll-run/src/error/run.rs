//! Settings of a run, and its folder.

use eggroll_core::messages::listed;
use std::path::PathBuf;
#[cfg(feature = "learner")]
use std::sync::Arc;

/// Why a run is refused.
#[derive(Clone, thiserror::Error)]
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
    /// No checkpoint to continue from.
    #[error("keep_checkpoints must be at least 1, not 0: a run continues from its latest checkpoint")]
    KeepNone,
    /// A folder, or a checkpoint, of another run.
    #[error("{path} belongs to another run: its `{field}` is {found}, this run's is {expected}")]
    OtherRun {
        /// The file of the run that is there.
        path: PathBuf,
        /// The first field that differs.
        field: String,
        /// Its value there.
        found: String,
        /// Its value in this run.
        expected: String,
    },
    /// A path that no run's folder can have: `.`, `..`, `/` and the like.
    #[error("{path:?} cannot be the folder of a run: name a folder, as \"runs/first\"")]
    FolderName {
        /// The path.
        path: PathBuf,
    },
    /// A file, or a folder with other contents.
    #[error("{path:?} exists and is not a run (it has none of {files}): name another folder")]
    NotARun {
        /// The path.
        path: PathBuf,
        /// Files of which a run has one.
        files: String,
    },
    /// A folder or a file that another process, or another run of this one, writes.
    #[error("{path} is in use by {}: wait until it has ended, or name another folder", holder(.process))]
    InUse {
        /// The folder or the file.
        path: PathBuf,
        /// The process, if it is known.
        process: Option<u32>,
    },
    /// Parameters that are NaN or infinite: they are not saved.
    #[error(
        "after generation {generation}, {count} values of \"{parameter}\" are NaN or infinite: earlier checkpoints are unchanged; \
         a lower learning rate or sigma may help"
    )]
    NonFiniteParameters {
        /// The generation that left them, from 0.
        generation: u64,
        /// The first such parameter.
        parameter: String,
        /// How many of its values are not finite.
        count: usize,
    },
    /// Generations in a row without one finite fitness value.
    #[error(
        "no fitness was finite in {generations} generations, from generation {first} on, so nothing is learned. \
         Check the scores, or lower sigma and the learning rate"
    )]
    NonFiniteFitness {
        /// The first of these generations.
        first: u64,
        /// How many there were.
        generations: u64,
    },
    /// A metric that is not registered.
    #[error("no metric is named {name:?}; there are {}", listed(known))]
    UnknownMetric {
        /// The name.
        name: String,
        /// Names of metrics of that kind.
        known: Vec<String>,
    },
    /// Two metrics with one column in the logs, or a metric in a reserved column.
    #[error(
        "the metric {name:?} shares the column `{column}` of the logs with {other}: choose a name that \
         differs by more than case, blanks and hyphens"
    )]
    MetricColumn {
        /// The metric.
        name: String,
        /// The column.
        column: String,
        /// What has the column.
        other: String,
    },
    /// A row of a log with two numbers of one name.
    #[error("a row has two values named {0:?}: give every number a different name, not \"generation\" or \"split\"")]
    LogColumn(String),
    /// A failure inside burn-train.
    #[cfg(feature = "learner")]
    #[error("{0}")]
    Training(Arc<burn::train::TrainingError>),
}

eggroll_core::debug_is_message!(RunError);

fn holder(process: &Option<u32>) -> String {
    match process {
        Some(process) if *process == std::process::id() => format!("process {process}, which is this one"),
        Some(process) => format!("process {process}"),
        None => "another process".to_owned(),
    }
}
