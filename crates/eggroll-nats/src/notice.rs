//! Notices of a waiting node.

use eggroll_core::sync::locked;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Information for the user while a node waits or begins.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The coordinator waits for slices.
    Slices {
        /// The generation.
        generation: u64,
        /// How many are missing.
        missing: usize,
        /// How long no slice has come.
        since: Duration,
        /// Slices that workers have in hand.
        in_hand: usize,
        /// Workers that have nothing to do.
        idle: usize,
    },
    /// A slice has failed at a worker.
    Failed {
        /// The worker.
        node: String,
        /// The generation.
        generation: u64,
        /// The slice.
        slice: usize,
        /// The worker's error.
        error: String,
    },
    /// A worker waits for a coordinator.
    Coordinator {
        /// How long nobody has answered.
        since: Duration,
    },
    /// The server refuses something, or does not answer.
    Server {
        /// What is tried.
        what: String,
        /// The last failure.
        reason: String,
        /// How long it has been tried.
        since: Duration,
    },
    /// The log on the server could not be read further, and was dropped: the coordinator has its generations evaluated
    /// again.
    LogDropped {
        /// The generation that is due.
        generation: u64,
        /// Why.
        reason: String,
    },
    /// The server has fitness from before this coordinator started, which is not evaluated again.
    Recorded {
        /// The first generation.
        first: u64,
        /// The last one.
        last: u64,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slices { generation, missing, since, in_hand, idle } => write!(
                f,
                "generation {generation}: {missing} slices missing, the last result came {} s ago; workers have {in_hand} in hand, {idle} \
                 workers are idle",
                since.as_secs()
            ),
            Self::Failed { node, generation, slice, error } => {
                write!(f, "slice {slice} of generation {generation} failed at {node}: {error}")
            }
            Self::Coordinator { since } => write!(f, "no coordinator has answered for {} s", since.as_secs()),
            Self::Server { what, reason, since } => write!(f, "{what} has failed for {} s: {reason}", since.as_secs()),
            Self::LogDropped { generation, reason } => {
                write!(f, "the log is dropped and generation {generation} evaluated again: {reason}")
            }
            Self::Recorded { first, last } => write!(
                f,
                "the server has the fitness of generations {first} to {last} from before this process started; it is \
                 used unchanged. If score or data have changed, give the run another version or name, or remove it"
            ),
        }
    }
}

type Tell = Box<dyn FnMut(&Notice) + Send>;

/// The receiver of notices.
#[derive(Clone)]
pub struct Notify(Arc<Mutex<Tell>>);

impl Notify {
    /// Calls `tell`.
    pub fn new(tell: impl FnMut(&Notice) + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Box::new(tell))))
    }

    pub(crate) fn tell(&self, notice: &Notice) {
        locked(&self.0)(notice);
    }
}

/// Standard error.
impl Default for Notify {
    fn default() -> Self {
        Self::new(|notice| eggroll_run::print_note!("eggroll: {notice}"))
    }
}

/// A lasting condition, reported after each period.
pub struct Lasting {
    every: Duration,
    start: Instant,
    told: u128,
}

impl Lasting {
    pub fn new(every: Duration) -> Self {
        Self { every, start: Instant::now(), told: 0 }
    }

    pub fn since(&self) -> Duration {
        self.start.elapsed()
    }

    /// Whether another period is over, once for each.
    pub fn is_due(&mut self) -> bool {
        let periods = self.since().as_nanos() / self.every.as_nanos().max(1);
        let is_due = periods > self.told;
        self.told = self.told.max(periods);
        is_due
    }
}
