//! What a node that waits says.

use eggroll_core::sync::locked;
use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Slices that are named.
const NAMED: usize = 8;

/// Something that a person may want to know while a node waits or begins.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The coordinator waits for slices.
    Slices {
        /// The generation.
        generation: u64,
        /// Those that are missing.
        missing: Vec<usize>,
        /// How long no slice has come.
        since: Duration,
        /// Workers heard of in the last minute, without those that are ignored.
        workers: usize,
        /// Workers that are ignored, see [`NatsConfig::strikes`](super::NatsConfig::strikes).
        ignored: Vec<String>,
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
            Self::Slices { generation, missing, since, workers, ignored } => {
                let plural = |count: usize| if count == 1 { "" } else { "s" };
                let named: Vec<_> = missing.iter().take(NAMED).map(usize::to_string).collect();
                write!(f, "waiting for slice{} {}", plural(missing.len()), named.join(", "))?;
                if missing.len() > NAMED {
                    write!(f, " and {} more", missing.len() - NAMED)?;
                }
                write!(f, " of generation {generation} since {} s; ", since.as_secs())?;
                write!(f, "{workers} worker{} heard of in the last minute", plural(*workers))?;
                if !ignored.is_empty() {
                    let named: Vec<_> = ignored.iter().take(NAMED).map(String::as_str).collect();
                    let more = ignored.len().saturating_sub(NAMED);
                    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                    write!(f, "; ignored for what they sent: {}{more}", named.join(", "))?;
                }
                Ok(())
            }
            Self::Server { what, reason, since } => write!(f, "{what}: failing since {} s: {reason}", since.as_secs()),
            Self::Recorded { first, last } => write!(
                f,
                "the server has the fitness of generations {first} to {last} ({}) from before this process started, and it is not \
                 evaluated again: if score or data have changed since, give the run another version or name, or remove it",
                last - first + 1
            ),
        }
    }
}

/// Whoever listens.
type Listener = Box<dyn FnMut(&Notice) + Send>;

/// Who is told.
pub(super) struct Notices {
    every: Duration,
    tell: Mutex<Listener>,
}

impl Notices {
    /// Standard error, not more often than `every` for what lasts.
    pub fn new(every: Duration) -> Self {
        Self { every, tell: Mutex::new(Box::new(|notice| crate::print_note!("eggroll: {notice}"))) }
    }

    pub fn set(&mut self, tell: impl FnMut(&Notice) + Send + 'static) {
        self.tell = Mutex::new(Box::new(tell));
    }

    pub fn tell(&self, notice: &Notice) {
        locked(&self.tell)(notice);
    }

    /// Something that lasts from now on.
    pub fn begin(&self) -> Lasting<'_> {
        Lasting { notices: self, start: Instant::now(), told: 0 }
    }
}

/// Something that lasts: told after each period.
pub(super) struct Lasting<'a> {
    notices: &'a Notices,
    start: Instant,
    told: u128,
}

impl Lasting<'_> {
    /// Tells, if another period is over.
    pub fn tell(&mut self, notice: impl FnOnce(Duration) -> Notice) {
        let since = self.start.elapsed();
        let periods = since.as_nanos() / self.notices.every.as_nanos().max(1);
        if periods > self.told {
            self.told = periods;
            self.notices.tell(&notice(since));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn words() {
        let since = Duration::from_secs(60);
        let slices =
            |missing, workers| Notice::Slices { generation: 12, missing, since, workers, ignored: vec![] }.to_string();
        assert_eq!(
            slices(vec![3, 7], 2),
            "waiting for slices 3, 7 of generation 12 since 60 s; 2 workers heard of in the last minute"
        );
        assert_eq!(
            slices(vec![3], 1),
            "waiting for slice 3 of generation 12 since 60 s; 1 worker heard of in the last minute"
        );
        assert!(slices((0..48).collect(), 0).contains("6, 7 and 40 more of"));
        let ignored = vec!["w1".to_owned(), "w2".to_owned()];
        let deserted = Notice::Slices { generation: 1, missing: vec![0], since, workers: 0, ignored }.to_string();
        assert!(deserted.ends_with("0 workers heard of in the last minute; ignored for what they sent: w1, w2"));
    }

    #[test]
    fn what_lasts_is_told_once_in_a_period() {
        let (sender, told) = mpsc::channel();
        let mut notices = Notices::new(Duration::from_millis(40));
        notices.set(move |notice| sender.send(notice.clone()).expect("is heard"));
        let mut lasting = notices.begin();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(100) {
            lasting.tell(|since| Notice::Server { what: "w".into(), reason: "r".into(), since });
        }
        let times: Vec<_> = told
            .try_iter()
            .map(|notice| match notice {
                Notice::Server { since, .. } => since.as_millis() / 40,
                other => panic!("{other}"),
            })
            .collect();
        assert_eq!(times, [1, 2]);
    }
}
