//! Everything that can go wrong in training, with the values in it.

use burn::store::RecordError;
use eggroll_core::{NoiseSourceError, NoiserError, TableError};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Antithetic pairs need an even, positive population.
    #[error("the population must be even and at least 2, not {0}")]
    Population(usize),
    /// A noise scale that is not positive and finite.
    #[error("sigma must be positive and finite, not {0}")]
    Sigma(f64),
    /// A decay that is not in (0, 1].
    #[error("the decay of sigma must be in (0, 1], not {0}")]
    SigmaDecay(f64),
    /// A fitness group that does not divide the population.
    #[error("fitness groups of {group} do not divide a population of {population}")]
    Group {
        /// Size of a group.
        group: usize,
        /// Members of a generation.
        population: usize,
    },
    /// A chunk of members that holds no pair.
    #[error("a chunk must hold at least one pair of members, not {0} members")]
    Chunk(usize),
    /// A learning-rate schedule that burn refuses.
    #[error("the learning-rate schedule is invalid: {0}")]
    Schedule(String),
    /// The noiser's settings.
    #[error(transparent)]
    Noiser(#[from] NoiserError),
    /// The model's parameters.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The noise source.
    #[error(transparent)]
    NoiseSource(#[from] NoiseSourceError),
    /// A fitness of the wrong length.
    #[error("{found} fitness values for a population of {population}")]
    FitnessLength {
        /// Values given.
        found: usize,
        /// Members of the generation.
        population: usize,
    },
    /// A population that the strategy did not ask for last.
    #[error("tell got the population of generation {found}, but generation {expected} is due")]
    Generation {
        /// Generation of the population given.
        found: u64,
        /// Generation that is due.
        expected: u64,
    },
    /// A model with other parameters than the one the strategy was made for.
    #[error("the model is not the one that the strategy was made for: {0}")]
    OtherModel(String),
    /// Parameters that no forward of the evaluation perturbed.
    #[error(
        "never perturbed in evaluate: {0:?}. Use eggroll's modules for them, call forward on the thread that \
         evaluates, or freeze them by name"
    )]
    NeverPerturbed(Vec<String>),
    /// More generations than noise addresses.
    #[error("noise generation {0} is beyond 2^32")]
    NoiseGeneration(u64),
    /// A file or folder.
    #[error("{path}: {source}")]
    Io {
        /// What was read or written.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A checkpoint that cannot be used.
    #[error("checkpoint {path}: {reason}")]
    Checkpoint {
        /// The checkpoint.
        path: PathBuf,
        /// Why it cannot be used.
        reason: String,
    },
    /// A trace of no generations.
    #[error("a trace holds at least 1 generation, not {0}")]
    TraceGenerations(u64),
    /// A second trace at a time.
    #[error("a trace is running already: finish it first")]
    TraceRunning,
    /// A trace that has ended before.
    #[error("the trace has ended already")]
    TraceNotRunning,
    /// A process that has another subscriber.
    #[error("a trace needs to be the process's tracing subscriber, and there is another one: it sees the same spans")]
    Subscriber,
    /// A text that cannot be used as asked.
    #[error("{path}: a text of {len} bytes cannot be used: {reason}")]
    Text {
        /// The file.
        path: PathBuf,
        /// Bytes of it, or of the part in question.
        len: usize,
        /// Why it cannot be used.
        reason: String,
    },
    /// A share for validation that leaves nothing for it, or nothing for training.
    #[error("the share for validation must be between 0 and 1, not {0}")]
    ValidationShare(f64),
    /// Streams over a text that read nothing.
    #[error("streams over a text must read something, not {streams} sequences of {steps} bytes")]
    Streams {
        /// Streams side by side.
        streams: usize,
        /// Bytes of a generation.
        steps: usize,
    },
    /// A temperature that samples cannot have.
    #[error("a temperature must be at least 0 and finite, not {0}")]
    Temperature(f64),
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
    #[error("{path} is that of another run: `{field}` differs")]
    OtherRun {
        /// The configuration of the run that is there.
        path: PathBuf,
        /// A field in which the configurations differ.
        field: String,
    },
    /// A number or a choice of a metric that has not been registered.
    #[error("no metric is named {name:?}; there are {known:?}")]
    UnknownMetric {
        /// The name.
        name: String,
        /// Names of metrics of that kind.
        known: Vec<String>,
    },
    /// A failure inside burn-train.
    #[error("{0}")]
    Training(Arc<burn::train::TrainingError>),
    /// A failure of the user's own code in the training loop.
    #[error(transparent)]
    User(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    pub(crate) fn record(path: impl Into<PathBuf>) -> impl FnOnce(RecordError) -> Self {
        let path = path.into();
        move |error| Self::Checkpoint { path, reason: error.to_string() }
    }
}
