//! Settings of a run over NATS.

use crate::error::NatsError;
use crate::notice::{Notice, Notify};
use async_nats::ConnectOptions;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Settings of a node. [`run`](Self::run), [`slice_members`](Self::slice_members) and [`version`](Self::version) must be the same on all
/// nodes: other values mean another run.
///
/// # Example
///
/// ```
/// use eggroll_nats::{NatsConfig, NatsError};
///
/// let config = NatsConfig { slice_members: 128, ..NatsConfig::new("nats://localhost:4222", "mnist-1") };
/// assert!(config.validate().is_ok());
/// let odd = NatsConfig { slice_members: 7, ..config };
/// assert!(matches!(odd.validate(), Err(NatsError::Setting { what: "slice_members", .. })));
/// ```
#[derive(Clone)]
pub struct NatsConfig {
    /// Addresses of the servers, separated by commas: `nats://host:4222`, or `tls://host:4222`.
    pub servers: String,
    /// How this node connects: its credentials file, key (nkey) or password, certificates, TLS.
    pub options: ConnectOptions,
    /// The run's name: up to 64 letters, digits, `-` and `_`. Streams are named after it: a second use of a name continues its run.
    pub run: String,
    /// This node's unique name, with the characters of [`run`](Self::run). Subjects end with it, so the server's permissions can restrict a
    /// worker to its own.
    pub node: String,
    /// Members of a slice, even.
    pub slice_members: usize,
    /// Version of the score and its data, in any words: `"loss 2, data 4f1c…"`. Nothing else compares functions and the content of
    /// files. Fitness of another version belongs to another run.
    pub version: String,
    /// Share of slices, drawn at random, that two workers evaluate: see [`with_audit`](Self::with_audit).
    pub audit: f64,
    /// Generations between two comparisons of the digests of all parameters.
    pub digest_every: u64,
    /// How long a worker may be silent before the server offers its slice to another.
    pub ack_wait: Duration,
    /// How long to wait for a result before missing slices are offered again.
    pub offer_again_after: Duration,
    /// How long a node repeats a failing operation, for example while a server restarts, and how long a worker waits for a silent
    /// coordinator.
    pub patience: Duration,
    /// How often a waiting node reports what it waits for.
    pub notice_every: Duration,
    /// Whether the coordinator puts its checkpoints on the server, where workers that join late find them.
    pub offer_checkpoints: bool,
    /// Copies of the streams in a cluster of servers, 1 to 5.
    pub replicas: usize,
    /// Ends this node with [`NatsError::Stopped`] when it is set, for example by a signal. A worker ends after its slice, a coordinator at once,
    /// with a checkpoint of the last complete generation. The run can continue.
    pub stop: Arc<AtomicBool>,
    /// Receives notices of what this node waits for: standard error, unless [`with_notices`](Self::with_notices) is
    /// called.
    pub notify: Notify,
}

impl NatsConfig {
    /// A run with settings for slices of seconds, on a server that asks for no credentials.
    pub fn new(servers: impl Into<String>, run: impl Into<String>) -> Self {
        Self {
            servers: servers.into(),
            options: ConnectOptions::new(),
            run: run.into(),
            node: format!("node-{}-{:016x}", std::process::id(), RandomState::new().build_hasher().finish()),
            slice_members: 64,
            version: String::new(),
            audit: 0.0,
            digest_every: 10,
            ack_wait: Duration::from_secs(30),
            offer_again_after: Duration::from_secs(60),
            patience: Duration::from_secs(300),
            notice_every: Duration::from_secs(60),
            offer_checkpoints: true,
            replicas: 1,
            notify: Notify::default(),
            stop: Arc::default(),
        }
    }

    /// Has a share of slices, drawn at random, evaluated by two workers. If their scores differ, the coordinator evaluates the slice itself, and the run
    /// ends with [`NatsError::WrongScores`], which names the worker with wrong scores.
    pub fn with_audit(mut self, share: f64) -> Self {
        self.audit = share;
        self
    }

    /// Sends notices of what this node waits for to `tell`, in place of standard error.
    pub fn with_notices(mut self, tell: impl FnMut(&Notice) + Send + 'static) -> Self {
        self.notify = Notify::new(tell);
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`NatsError::Setting`] with the first that is impossible.
    pub fn validate(&self) -> Result<(), NatsError> {
        is_token("run", &self.run)?;
        is_token("node", &self.node)?;
        let pairs = self.slice_members >= 2 && self.slice_members.is_multiple_of(2);
        let span = |time: &Duration| format!("{time:?}");
        const TIME: &str = "longer than nothing";
        let rules: [(&'static str, bool, &'static str, String); 9] = [
            ("slice_members", pairs, "even and at least 2", self.slice_members.to_string()),
            ("version", self.version.len() <= 4096, "at most 4096 bytes", format!("{} bytes", self.version.len())),
            ("audit", (0.0..=1.0).contains(&self.audit), "from 0 to 1", self.audit.to_string()),
            ("digest_every", self.digest_every > 0, "at least 1", self.digest_every.to_string()),
            ("replicas", (1..=5).contains(&self.replicas), "1 to 5", self.replicas.to_string()),
            ("ack_wait", self.ack_wait.as_millis() >= 100, "at least 100 ms", span(&self.ack_wait)),
            ("offer_again_after", !self.offer_again_after.is_zero(), TIME, span(&self.offer_again_after)),
            ("patience", !self.patience.is_zero(), TIME, span(&self.patience)),
            ("notice_every", !self.notice_every.is_zero(), TIME, span(&self.notice_every)),
        ];
        match rules.into_iter().find(|(_, valid, ..)| !valid) {
            Some((what, _, rule, value)) => Err(NatsError::Setting { what, rule, value }),
            None => Ok(()),
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The addresses without the part before an `@`.
    pub(crate) fn shown_servers(&self) -> String {
        let shown = |server: &str| match server.rsplit_once('@') {
            Some((_, host)) => format!("…@{host}"),
            None => server.trim().to_owned(),
        };
        self.servers.split(',').map(shown).collect::<Vec<_>>().join(",")
    }
}

/// Without secrets.
impl fmt::Debug for NatsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NatsConfig({} on {} as {})", self.run, self.shown_servers(), self.node)
    }
}

/// Refuses characters that cannot be part of the names of streams and subjects.
fn is_token(what: &'static str, name: &str) -> Result<(), NatsError> {
    let known = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match (1..=64).contains(&name.len()) && name.chars().all(known) {
        true => Ok(()),
        false => {
            let shown: String = name.chars().take(65).collect();
            Err(NatsError::Setting { what, rule: "1 to 64 letters, digits, - and _", value: format!("{shown:?}") })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_settings() {
        let config = || NatsConfig::new("nats://user:secret@localhost,nats://other", "run");
        let cases = [
            ("run", NatsConfig { run: "a.b".to_owned(), ..config() }),
            ("node", NatsConfig { node: "*".to_owned(), ..config() }),
            ("slice_members", NatsConfig { slice_members: 0, ..config() }),
            ("audit", config().with_audit(1.5)),
            ("audit", config().with_audit(f64::NAN)),
            ("digest_every", NatsConfig { digest_every: 0, ..config() }),
            ("replicas", NatsConfig { replicas: 6, ..config() }),
            ("ack_wait", NatsConfig { ack_wait: Duration::from_millis(99), ..config() }),
            ("patience", NatsConfig { patience: Duration::ZERO, ..config() }),
        ];
        for (expected, config) in cases {
            match config.validate() {
                Err(NatsError::Setting { what, .. }) => assert_eq!(what, expected),
                other => panic!("{expected}: {other:?}"),
            }
        }
        assert!(config().validate().is_ok(), "canary");
        let shown = format!("{:?}", config());
        assert!(!shown.contains("secret") && shown.contains("localhost,nats://other"), "{shown}");
    }
}
