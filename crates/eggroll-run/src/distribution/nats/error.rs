//! Errors of a run over NATS, with the values in them.

use crate::error::Error;
use eggroll_train::RunningSettings;
use std::path::PathBuf;
use std::time::Duration;

/// Errors of a coordinator or a worker.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum NatsError {
    /// A setting that cannot be.
    #[error("{what} must be {rule}, not {value}")]
    Setting {
        /// Which one.
        what: &'static str,
        /// The valid values.
        rule: &'static str,
        /// The value.
        value: String,
    },
    /// A file with a key or token that cannot be used.
    #[error("{}: {reason}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why not, without what is in it.
        reason: String,
    },
    /// No random numbers for a key.
    #[error("the system gives no random numbers for a key: {0}")]
    Random(String),
    /// Variables of the environment that contradict each other.
    #[error("{0}")]
    Environment(String),
    /// A secret that everybody between here and the server could read.
    #[error(
        "the {what} would be sent to {host} without encryption: use tls://, require_tls or a file of credentials, or allow it with \
         allow_plain"
    )]
    Plain {
        /// The kind of secret.
        what: &'static str,
        /// Where to.
        host: String,
    },
    /// A strategy in which one worker that lies decides.
    #[error(
        "workers are not trusted, but under shaping {found} a single score can decide: use centered_rank or pair_sign"
    )]
    Shaping {
        /// The strategy's shaping.
        found: String,
    },
    /// A slice that fails everywhere.
    #[error("slice {slice} of generation {generation} failed {failures} times at workers, and here: {error}")]
    SliceFailed {
        /// The generation.
        generation: u64,
        /// The slice.
        slice: usize,
        /// How often workers have failed.
        failures: usize,
        /// The error here, and the last worker's message.
        error: String,
    },
    /// Settings of a running strategy, which workers do not hear of.
    #[error(
        "generation {generation}: sigma or the learning rate was set while the strategy runs ({settings:?}), and workers do not \
         receive it: use schedules in the configuration"
    )]
    Settings {
        /// The generation.
        generation: u64,
        /// The settings.
        settings: RunningSettings,
    },
    /// Streams that were made by a coordinator with another key.
    #[error(
        "the run {run:?} on this server was made with the key {found}, and this node's is of {expected}: use the files that this \
         run's coordinator made, or remove the run from the server"
    )]
    OtherKey {
        /// Its name.
        run: String,
        /// Fingerprint of this node's.
        expected: String,
        /// The server's.
        found: String,
    },
    /// A server that refuses the connection.
    #[error("{servers}: {reason}")]
    Connection {
        /// The servers.
        servers: String,
        /// Why not.
        reason: String,
    },
    /// An operation that failed for longer than a node waits.
    #[error("{what}: failed for {patience:?}, at last because of: {reason}")]
    Patience {
        /// The operation.
        what: String,
        /// How long.
        patience: Duration,
        /// The last failure.
        reason: String,
    },
    /// Streams or a checkpoint of a run with another configuration, or that computes otherwise.
    #[error(
        "the run {run:?} on this server is {found}, and this program's is {expected}: another configuration, model or program, or \
         floats on another kind of device or instruction set"
    )]
    OtherRun {
        /// Its name.
        run: String,
        /// This program's.
        expected: String,
        /// The server's.
        found: String,
    },
    /// Results that the server would not take.
    #[error("the fitness of a slice of {members} members takes {bytes} bytes, and a message has at most {limit}")]
    SliceBytes {
        /// Members of a slice.
        members: usize,
        /// Bytes of their result.
        bytes: usize,
        /// Bytes that the server allows.
        limit: usize,
    },
    /// A score that returned something else than the configuration says.
    #[error("the score returned {found}, and {expected} are due")]
    Score {
        /// The returned value.
        found: String,
        /// The value of the configuration.
        expected: String,
    },
    /// A replica whose parameters are not the coordinator's.
    #[error("generation {generation}: the digest of the parameters is {found} here and {expected} at the coordinator")]
    Diverged {
        /// The generation before which they differ.
        generation: u64,
        /// The coordinator's.
        expected: String,
        /// This replica's.
        found: String,
    },
    /// Fitness that is no longer on the server, without a checkpoint behind it.
    #[error(
        "the fitness of generation {due} is due, the server has it from generation {first} on, and no checkpoint there is as late"
    )]
    Gap {
        /// The generation that is due.
        due: u64,
        /// The first that is there.
        first: u64,
    },
    /// Fitness that the server has lost: this replica is ahead of the run.
    #[error(
        "generation {generation} is evaluated again, whose fitness this replica has had: the server has lost it; start this worker \
         again"
    )]
    Lost {
        /// The generation that is evaluated.
        generation: u64,
    },
    /// A second coordinator of the same run, or a server that has lost fitness.
    #[error(
        "generation {generation}: the stream of fitness does not end with what this coordinator has published: there is another \
         coordinator of this run, or the server has lost it"
    )]
    SecondCoordinator {
        /// The generation that was to be published.
        generation: u64,
    },
    /// A checkpoint on the server that cannot be used.
    #[error("checkpoint {name:?} on the server: {reason}")]
    Checkpoint {
        /// Its name.
        name: String,
        /// Why not.
        reason: String,
    },
    /// The strategy, a file, or the program's own code.
    #[error(transparent)]
    Training(#[from] Error),
}

eggroll_core::debug_is_message!(NatsError);

impl From<eggroll_train::Error> for NatsError {
    fn from(error: eggroll_train::Error) -> Self {
        Self::Training(error.into())
    }
}
