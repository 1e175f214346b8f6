//! Settings of a run over NATS.

use super::error::NatsError;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::path::PathBuf;
use std::time::Duration;

/// How a node makes itself known to the server.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum NatsAuth {
    /// Not at all, or by its client certificate.
    #[default]
    None,
    /// A token.
    Token(String),
    /// A user.
    UserPassword {
        /// Its name.
        user: String,
        /// Its password.
        password: String,
    },
    /// A file of credentials, with a JWT and an NKey.
    Credentials(PathBuf),
}

/// Secrets are not shown.
impl fmt::Debug for NatsAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "None"),
            Self::Token(_) => write!(f, "Token(…)"),
            Self::UserPassword { user, .. } => write!(f, "UserPassword({user:?}, …)"),
            Self::Credentials(path) => write!(f, "Credentials({path:?})"),
        }
    }
}

/// Where the server is, and how to get in.
#[derive(Clone, Debug, Default)]
pub struct NatsConnection {
    /// Addresses, separated by commas: `nats://host:4222`, or `tls://host:4222`.
    pub servers: String,
    /// How this node makes itself known.
    pub auth: NatsAuth,
    /// Refuses a server without TLS.
    pub require_tls: bool,
    /// Certificates of authorities, PEM, in place of the system's.
    pub root_certificates: Option<PathBuf>,
    /// This node's certificate and its key, PEM.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
}

/// Settings of a run: those up to [`pair_signs`](Self::pair_signs) are the same on all nodes, or they are told apart as other runs.
///
/// # Example
///
/// ```
/// use eggroll_run::distribution::nats::{NatsConfig, NatsError};
///
/// let config = NatsConfig { slice_members: 128, ..NatsConfig::new("nats://localhost:4222", "mnist-1") };
/// assert!(config.validate().is_ok());
/// let odd = NatsConfig { slice_members: 7, ..config };
/// assert!(matches!(odd.validate(), Err(NatsError::Setting { what: "slice_members", .. })));
/// ```
#[derive(Clone, Debug)]
pub struct NatsConfig {
    /// The run's name: up to 64 letters, digits, `-` and `_`. Streams are named after it: whoever uses a name again goes on with its run.
    pub run: String,
    /// Members of a slice, even.
    pub slice_members: usize,
    /// Scores of each member: more than 1 for [`evaluate_questions`](eggroll_train::Population::evaluate_questions).
    pub questions: usize,
    /// Whether the fitness is integers, as of [`evaluate_integers`](eggroll_train::Population::evaluate_integers).
    pub integers: bool,
    /// Whether integers are sent as the signs of pairs, a fifth of a byte each, where nothing else is needed: if all that is trained is
    /// integers. The fitness that the coordinator returns then counts the pairs a member has won: 0 or 1.
    pub pair_signs: bool,
    /// Generations between two comparisons of the digests of all parameters.
    pub digest_every: u64,
    /// Where the server is.
    pub connection: NatsConnection,
    /// This node's name, no other's, as [`run`](Self::run): results are counted by it.
    pub node: String,
    /// How long a slice may go without a sign of life from its worker before another gets it.
    pub ack_wait: Duration,
    /// How long a worker may take for a slice at most: it gives signs of life no longer.
    pub longest_slice: Duration,
    /// Slices that may be out at workers at a time: what comes in no faster than it can be taken.
    pub in_flight: usize,
    /// How long no result may come before slices that are missing are offered to idle workers too.
    pub offer_again_after: Duration,
    /// Share of slices, drawn at random, that the coordinator evaluates as well and compares bit for bit.
    pub verify_share: f64,
    /// Wrong results after which a worker's are no longer looked at.
    pub strikes: u32,
    /// How long a node repeats what the server refuses or does not answer.
    pub patience: Duration,
    /// Copies of the streams in a cluster of servers.
    pub replicas: usize,
    /// Bytes of a checkpoint that a worker loads at most.
    pub checkpoint_bytes: u64,
    /// Where a worker puts a checkpoint while it loads it.
    pub scratch: PathBuf,
}

impl NatsConfig {
    /// A run on a server without encryption, with settings for slices of seconds.
    pub fn new(servers: impl Into<String>, run: impl Into<String>) -> Self {
        Self {
            run: run.into(),
            slice_members: 64,
            questions: 1,
            integers: false,
            pair_signs: true,
            digest_every: 10,
            connection: NatsConnection { servers: servers.into(), ..NatsConnection::default() },
            node: format!("node-{}-{:016x}", std::process::id(), RandomState::new().build_hasher().finish()),
            ack_wait: Duration::from_secs(30),
            longest_slice: Duration::from_secs(3600),
            in_flight: 4096,
            offer_again_after: Duration::from_secs(60),
            verify_share: 0.0,
            strikes: 3,
            patience: Duration::from_secs(300),
            replicas: 1,
            checkpoint_bytes: 16 << 30,
            scratch: std::env::temp_dir(),
        }
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`NatsError::Setting`] with the first that cannot be.
    pub fn validate(&self) -> Result<(), NatsError> {
        let token = |name: &str| {
            let known = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            (1..=64).contains(&name.len()) && name.chars().all(known)
        };
        const TOKEN: &str = "1 to 64 letters, digits, - and _";
        const POSITIVE: &str = "at least 1";
        let pairs = self.slice_members >= 2 && self.slice_members.is_multiple_of(2);
        let rules: [(&'static str, bool, &'static str, String); 11] = [
            ("run", token(&self.run), TOKEN, format!("{:?}", self.run)),
            ("node", token(&self.node), TOKEN, format!("{:?}", self.node)),
            ("slice_members", pairs, "even and at least 2", self.slice_members.to_string()),
            ("questions", self.questions > 0, POSITIVE, self.questions.to_string()),
            ("digest_every", self.digest_every > 0, POSITIVE, self.digest_every.to_string()),
            ("in_flight", self.in_flight > 0, POSITIVE, self.in_flight.to_string()),
            ("strikes", self.strikes > 0, POSITIVE, self.strikes.to_string()),
            ("replicas", (1..=5).contains(&self.replicas), "1 to 5", self.replicas.to_string()),
            ("verify_share", (0.0..=1.0).contains(&self.verify_share), "from 0 to 1", self.verify_share.to_string()),
            ("ack_wait", self.ack_wait.as_millis() >= 100, "at least 100 ms", format!("{:?}", self.ack_wait)),
            ("patience", !self.patience.is_zero(), "longer than nothing", format!("{:?}", self.patience)),
        ];
        match rules.into_iter().find(|(_, valid, ..)| !valid) {
            Some((what, _, rule, value)) => Err(NatsError::Setting { what, rule, value }),
            None => Ok(()),
        }
    }

    /// Whether results of a generation carry the digest of the parameters.
    pub(super) fn digest_is_due(&self, generation: u64) -> bool {
        generation.is_multiple_of(self.digest_every)
    }
}
