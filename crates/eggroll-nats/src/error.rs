//! Errors of a run over NATS, with the values in them.

use std::time::Duration;

/// Errors of a coordinator or a worker. Loops return them as [`eggroll_run::Error::Engine`]: [`NatsError::in_run`] finds them there.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum NatsError {
    /// An impossible setting.
    #[error("{what} must be {rule}, not {value}")]
    Setting {
        /// Which one.
        what: &'static str,
        /// The valid values.
        rule: &'static str,
        /// The value.
        value: String,
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
    #[error("{what} failed for {patience:?}, at last because of: {reason}")]
    Patience {
        /// The operation.
        what: String,
        /// How long.
        patience: Duration,
        /// The last failure.
        reason: String,
    },
    /// A worker without a coordinator.
    #[error("no coordinator of the run {run:?} has answered for {patience:?}; generation {generation} is due")]
    NoCoordinator {
        /// The run's name.
        run: String,
        /// How long.
        patience: Duration,
        /// The generation that this worker is at.
        generation: u64,
    },
    /// Streams of a run with another configuration, or that computes otherwise.
    #[error(
        "the run {run:?} on this server is {found}, but this program's is {expected}. Use the same configuration, \
         model, data, version and kind of device and instruction set, or another run name"
    )]
    OtherRun {
        /// Its name.
        run: String,
        /// This program's.
        expected: String,
        /// The server's.
        found: String,
    },
    /// Settings of a running strategy that differ between nodes.
    #[error("generation {generation}: sigma or the learning rate differs between this node and the coordinator")]
    Settings {
        /// The generation.
        generation: u64,
    },
    /// Scores that do not fit the population.
    #[error("the score returned {found}, where {expected} are due")]
    Score {
        /// What it returned.
        found: String,
        /// What is due.
        expected: String,
    },
    /// Results that are too large for the server.
    #[error(
        "the scores of {members} members take {bytes} bytes, and the server takes messages of {limit}: lower slice_members"
    )]
    SliceBytes {
        /// Members of a slice.
        members: usize,
        /// Bytes of their scores.
        bytes: usize,
        /// Bytes that the server allows.
        limit: usize,
    },
    /// A slice that fails everywhere.
    #[error("slice {slice} of generation {generation} failed {failures} times at workers, and here: {error}")]
    SliceFailed {
        /// The generation.
        generation: u64,
        /// The slice.
        slice: usize,
        /// How often workers have failed.
        failures: u32,
        /// The error here, and the last worker's.
        error: String,
    },
    /// A worker whose scores are wrong.
    #[error("worker {node} returned wrong scores of slice {slice} of generation {generation}: {difference}")]
    WrongScores {
        /// The worker.
        node: String,
        /// The generation.
        generation: u64,
        /// The slice.
        slice: usize,
        /// The first score that differs.
        difference: String,
    },
    /// A worker whose parameters differ from the coordinator's.
    #[error("generation {generation}: the parameters have digest {found} here and {expected} at the coordinator")]
    Diverged {
        /// The generation before which they differ.
        generation: u64,
        /// The coordinator's.
        expected: String,
        /// This worker's.
        found: String,
    },
    /// A generation that the log leaves out.
    #[error(
        "generation {due} is due, but the log on the server continues with generation {found} and has no checkpoint \
         as late. It has lost or dropped fitness: start this node again"
    )]
    Gap {
        /// The generation that is due.
        due: u64,
        /// The generation that is there.
        found: u64,
    },
    /// A damaged record of the log.
    #[error("record {place} of the log on the server is damaged or of another run")]
    Damaged {
        /// Its place in the stream.
        place: u64,
    },
    /// Records that the server has acknowledged and lost.
    #[error(
        "generation {generation}: the log on the server ends at record {found}, but the server has acknowledged \
         record {expected}. The server has lost fitness: start this node again"
    )]
    LogLost {
        /// The generation that this node is at.
        generation: u64,
        /// The last record that the server had acknowledged.
        expected: u64,
        /// The last record that it has.
        found: u64,
    },
    /// Another coordinator of the same run.
    #[error("generation {generation}: another coordinator of this run has written to its log")]
    SecondCoordinator {
        /// The generation that was to be written.
        generation: u64,
    },
    /// A checkpoint on the server that cannot be used.
    #[error("checkpoint of generation {generation} on the server: {reason}")]
    Checkpoint {
        /// Its generation.
        generation: u64,
        /// Why not.
        reason: String,
    },
    /// A node that was told to [stop](field@crate::NatsConfig::stop).
    #[error("stopped before generation {generation} was complete")]
    Stopped {
        /// The generation.
        generation: u64,
    },
    /// A file, or the program's own code.
    #[error(transparent)]
    Run(#[from] Box<eggroll_run::Error>),
}

eggroll_core::debug_is_message!(NatsError);

impl NatsError {
    /// The error of this crate that ended a loop, if one did.
    pub fn in_run(error: &eggroll_run::Error) -> Option<&Self> {
        match error {
            eggroll_run::Error::Engine(error) => error.downcast_ref(),
            eggroll_run::Error::Two { first, .. } => Self::in_run(first),
            _ => None,
        }
    }
}

impl From<eggroll_run::Error> for NatsError {
    fn from(error: eggroll_run::Error) -> Self {
        Self::Run(Box::new(error))
    }
}

impl From<NatsError> for eggroll_run::Error {
    fn from(error: NatsError) -> Self {
        match error {
            NatsError::Run(error) => *error,
            error => Self::Engine(error.into()),
        }
    }
}
