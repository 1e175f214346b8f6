//! Settings of a run over NATS.

use super::auth::NatsConnection;
use super::error::NatsError;
use eggroll_train::{EvolutionStrategyConfig, FitnessShaping};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// Share of slices that the coordinator evaluates as well where workers are not trusted.
const VERIFIED: f64 = 0.05;
/// The largest score that is taken without a look: sums of such, scaled and squared, are finite.
const LARGEST: f64 = 1e18;

/// Whether workers may lie.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Trust {
    /// They are this run's own: one key for all of them, whatever their names.
    #[default]
    Trusted,
    /// They may send wrong results. Each has a separate key ([`NatsConfig::nodes`]), the coordinator evaluates a share of slices as well
    /// ([`verify_share`](field@NatsConfig::verify_share)), and the strategy's shaping has to bound what one score can do: ranks or signs of pairs.
    Untrusted {
        /// What scores are like: the coordinator evaluates a slice with another one itself.
        scores: RangeInclusive<f64>,
    },
}

/// Settings of a run: those up to [`version`](Self::version) are the same on all nodes, or they are told apart as other runs.
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
    /// The run's name: up to 64 letters, digits, `-` and `_`. Streams are named after it: whoever uses a name again continues its run.
    pub run: String,
    /// Members of a slice, even.
    pub slice_members: usize,
    /// Scores of each member: more than 1 for [`evaluate`](eggroll_train::Population::evaluate).
    pub tasks: usize,
    /// Whether the fitness is integers, as of [`evaluate`](eggroll_train::Population::evaluate).
    pub integers: bool,
    /// Whether integers are sent as the signs of pairs, a fifth of a byte each, where nothing else is needed: if all that is trained is
    /// integers. The fitness that the coordinator returns then counts the pairs a member has won: 0 or 1.
    pub pair_signs: bool,
    /// Generations between two comparisons of the digests of all parameters.
    pub digest_every: u64,
    /// Version of the score and its data, in any words: `"loss 2, data 4f1c…"`. The names of functions and the content of files are not
    /// compared by anything else, so a digest of the data belongs in it. Fitness of another version is of another run.
    pub version: String,
    /// Where the server is.
    pub connection: NatsConnection,
    /// Folder of the run's keys: the coordinator makes them there, workers on the same machine find theirs. Or, for a worker, the file that it
    /// was given.
    pub keys: PathBuf,
    /// This node's name, no other's, as [`run`](Self::run): results are counted by it. A worker whose key is one node's has that name.
    pub node: String,
    /// Workers for which the coordinator makes a separate key.
    pub nodes: Vec<String>,
    /// Whether workers may lie.
    pub trust: Trust,
    /// How long a worker may give no sign of life before another gets its slice.
    pub ack_wait: Duration,
    /// How long a worker may take for a slice, before another gets it too.
    pub longest_slice: Duration,
    /// Slices that may be out at workers at a time.
    pub in_flight: usize,
    /// How long no result may come before slices that are missing are offered to idle workers too.
    pub offer_again_after: Duration,
    /// Share of slices, drawn at random, that the coordinator evaluates as well and compares bit for bit. By default none, and 0.05 where
    /// workers are not trusted.
    pub verify_share: Option<f64>,
    /// Wrong results after which a worker's are no longer looked at.
    pub strikes: u32,
    /// Failures of one slice after which the coordinator evaluates it itself, and ends the run with the error if it fails there too.
    pub slice_failures: u32,
    /// How long a node repeats an operation that the server refuses or does not answer.
    pub patience: Duration,
    /// How often a waiting coordinator reports the reason.
    pub report_every: Duration,
    /// Copies of the streams in a cluster of servers.
    pub replicas: usize,
    /// Bytes of the published fitness that the server holds at most: what is beyond is refused, and dropped by checkpoints.
    pub fitness_bytes: u64,
    /// How long the server keeps the data of the run.
    pub keep: Duration,
    /// Bytes of a checkpoint at most; by default what the model needs: 40 for each of its numbers, and 4 MiB.
    pub checkpoint_bytes: Option<u64>,
    /// Where a worker puts a checkpoint while it loads it, in a separate folder that nobody else may read.
    pub scratch: PathBuf,
}

impl NatsConfig {
    /// A run on a server without encryption, with settings for slices of seconds, trusted workers, and keys in the folder `eggroll-keys`.
    pub fn new(servers: impl Into<String>, run: impl Into<String>) -> Self {
        Self {
            run: run.into(),
            slice_members: 64,
            tasks: 1,
            integers: false,
            pair_signs: true,
            digest_every: 10,
            version: String::new(),
            connection: NatsConnection { servers: servers.into(), ..NatsConnection::default() },
            keys: PathBuf::from("eggroll-keys"),
            node: format!("node-{}-{:016x}", std::process::id(), RandomState::new().build_hasher().finish()),
            nodes: Vec::new(),
            trust: Trust::Trusted,
            ack_wait: Duration::from_secs(30),
            longest_slice: Duration::from_secs(3600),
            in_flight: 4096,
            offer_again_after: Duration::from_secs(60),
            verify_share: None,
            strikes: 3,
            slice_failures: 3,
            patience: Duration::from_secs(300),
            report_every: Duration::from_secs(60),
            replicas: 1,
            fitness_bytes: 1 << 30,
            keep: Duration::from_secs(30 * 24 * 3600),
            checkpoint_bytes: None,
            scratch: std::env::temp_dir(),
        }
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`NatsError::Setting`] with the first that cannot be.
    pub fn validate(&self) -> Result<(), NatsError> {
        const POSITIVE: &str = "at least 1";
        const TIME: &str = "longer than nothing";
        is_token("run", &self.run)?;
        is_token("node", &self.node)?;
        self.nodes.iter().try_for_each(|node| is_token("nodes", node))?;
        let reserved = self.nodes.iter().find(|node| matches!(node.as_str(), "coordinator" | "workers"));
        let pairs = self.slice_members >= 2 && self.slice_members.is_multiple_of(2);
        let span = |time: &Duration| format!("{time:?}");
        let range = match &self.trust {
            Trust::Trusted => true,
            Trust::Untrusted { scores } => scores.start() <= scores.end(),
        };
        let share = self.verify_share();
        let rules: [(&'static str, bool, &'static str, String); 16] = [
            ("slice_members", pairs, "even and at least 2", self.slice_members.to_string()),
            ("tasks", self.tasks > 0, POSITIVE, self.tasks.to_string()),
            ("digest_every", self.digest_every > 0, POSITIVE, self.digest_every.to_string()),
            ("version", self.version.len() <= 4096, "at most 4096 bytes", format!("{} bytes", self.version.len())),
            ("nodes", reserved.is_none(), "names but \"coordinator\" and \"workers\"", format!("{reserved:?}")),
            ("in_flight", self.in_flight > 0, POSITIVE, self.in_flight.to_string()),
            ("strikes", self.strikes > 0, POSITIVE, self.strikes.to_string()),
            ("slice_failures", self.slice_failures > 0, POSITIVE, self.slice_failures.to_string()),
            ("replicas", (1..=5).contains(&self.replicas), "1 to 5", self.replicas.to_string()),
            ("verify_share", (0.0..=1.0).contains(&share), "from 0 to 1", share.to_string()),
            ("trust", range, "a range of scores from its least to its largest", format!("{:?}", self.trust)),
            ("ack_wait", self.ack_wait.as_millis() >= 100, "at least 100 ms", span(&self.ack_wait)),
            ("longest_slice", !self.longest_slice.is_zero(), TIME, span(&self.longest_slice)),
            ("offer_again_after", !self.offer_again_after.is_zero(), TIME, span(&self.offer_again_after)),
            ("patience", !self.patience.is_zero(), TIME, span(&self.patience)),
            ("report_every", !self.report_every.is_zero(), TIME, span(&self.report_every)),
        ];
        match rules.into_iter().find(|(_, valid, ..)| !valid) {
            Some((what, _, rule, value)) => Err(NatsError::Setting { what, rule, value }),
            None => Ok(()),
        }
    }

    /// Refuses a strategy in which one score can do anything, where workers are not trusted.
    pub(super) fn check_shaping(&self, strategy: &EvolutionStrategyConfig) -> Result<(), NatsError> {
        // Integer parameters vote with the signs of pairs, whatever the shaping.
        let bounded = matches!(strategy.shaping, FitnessShaping::CenteredRank | FitnessShaping::PairSign);
        match self.trust {
            Trust::Untrusted { .. } if !bounded => Err(NatsError::Shaping { found: format!("{:?}", strategy.shaping) }),
            _ => Ok(()),
        }
    }

    /// The share of slices that the coordinator evaluates as well.
    pub(super) fn verify_share(&self) -> f64 {
        let default = if matches!(self.trust, Trust::Trusted) { 0.0 } else { VERIFIED };
        self.verify_share.unwrap_or(default)
    }

    /// The scores that are taken without a look.
    pub(super) fn plausible(&self) -> (f64, f64) {
        match &self.trust {
            Trust::Untrusted { scores } => (scores.start().max(-LARGEST), scores.end().min(LARGEST)),
            Trust::Trusted => (-LARGEST, LARGEST),
        }
    }

    /// Whether results of a generation carry the digest of the parameters.
    pub(super) fn digest_is_due(&self, generation: u64) -> bool {
        generation.is_multiple_of(self.digest_every)
    }
}

/// Refuses characters that cannot be part of the names of streams and subjects.
pub(super) fn is_token(what: &'static str, name: &str) -> Result<(), NatsError> {
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
    use burn::optim::SgdConfig;
    use eggroll_core::EggrollConfig;

    fn config() -> NatsConfig {
        NatsConfig::new("nats://localhost", "run")
    }

    fn untrusted() -> NatsConfig {
        NatsConfig { trust: Trust::Untrusted { scores: -1.0..=0.0 }, nodes: vec!["w1".to_owned()], ..config() }
    }

    #[test]
    fn settings_that_cannot_be() {
        let cases = [
            ("run", NatsConfig { run: "a.b".to_owned(), ..config() }),
            ("nodes", NatsConfig { nodes: vec!["*".to_owned()], ..config() }),
            ("nodes", NatsConfig { nodes: vec!["workers".to_owned()], ..config() }),
            ("offer_again_after", NatsConfig { offer_again_after: Duration::ZERO, ..config() }),
            ("longest_slice", NatsConfig { longest_slice: Duration::ZERO, ..config() }),
            ("report_every", NatsConfig { report_every: Duration::ZERO, ..config() }),
            ("slice_failures", NatsConfig { slice_failures: 0, ..config() }),
            ("verify_share", NatsConfig { verify_share: Some(f64::NAN), ..config() }),
            ("trust", NatsConfig { trust: Trust::Untrusted { scores: f64::NAN..=1.0 }, ..untrusted() }),
        ];
        for (name, config) in cases {
            let refused = config.validate();
            assert!(matches!(refused, Err(NatsError::Setting { what, .. }) if what == name), "{name}: {refused:?}");
        }
        assert!(
            NatsConfig { longest_slice: Duration::MAX, offer_again_after: Duration::MAX, ..config() }
                .validate()
                .is_ok()
        );
    }

    #[test]
    fn workers_that_are_not_trusted_are_looked_at() {
        assert!(untrusted().validate().is_ok());
        assert_eq!(config().verify_share(), 0.0);
        assert!(untrusted().verify_share() > 0.0);
        assert_eq!(NatsConfig { verify_share: Some(0.0), ..untrusted() }.verify_share(), 0.0, "if it is said");
        assert_eq!(untrusted().plausible(), (-1.0, 0.0));
        let strategy =
            |shaping| EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_shaping(shaping);
        let unbounded = [
            FitnessShaping::Raw,
            FitnessShaping::Standardized,
            FitnessShaping::ZScore,
            FitnessShaping::SampleZScore,
            FitnessShaping::GroupZScore { size: 4 },
            FitnessShaping::GroupStandardized { size: 4 },
            // The best rank has many times the mean weight.
            FitnessShaping::Utilities,
            FitnessShaping::TopPairs { pairs: 4 },
            FitnessShaping::BaselineSubtraction { size: 4 },
        ];
        for shaping in unbounded {
            let strategy = strategy(shaping);
            assert!(matches!(untrusted().check_shaping(&strategy), Err(NatsError::Shaping { .. })));
            assert!(config().check_shaping(&strategy).is_ok());
        }
        let bounded = [FitnessShaping::CenteredRank, FitnessShaping::PairSign];
        for shaping in bounded {
            assert!(untrusted().check_shaping(&strategy(shaping)).is_ok());
        }
    }
}
