//! The streams of a run.

use super::config::{NatsConfig, Trust};
use super::connection::{AttemptFailure, Connection, for_now};
use super::error::NatsError;
use super::keys::{CoordinatorKey, SIGNATURE, WorkerKey};
use super::run_id::RunId;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::stream::{Config, DiscardPolicy};
use std::time::Duration;

/// Results of one worker that wait at most, for each slice of a generation.
const WAITING: u64 = 4;
/// Workers that may fill their share of the stream of results before those of others are dropped, where their number is not known.
const SHARES: u64 = 16;
/// Consumers of a stream: nodes have none, and 0 would be any number.
const CONSUMERS: i32 = 1;
/// How long results are kept.
const RESULTS_AGE: Duration = Duration::from_secs(24 * 3600);

/// How long a worker waits for an answer about a run that may not have begun.
const ANSWER: Duration = Duration::from_millis(500);
/// Bytes of a label at most.
const LABEL: usize = 256;

/// What tells a run's streams from another's of the same name.
pub(super) struct Label {
    pub run: RunId,
    /// Fingerprint of its coordinator's key.
    pub key: String,
}

impl Label {
    fn text(&self) -> String {
        format!("{} {}", self.run, self.key)
    }

    fn check(&self, config: &NatsConfig, found: &str) -> Result<(), NatsError> {
        let (run, key) = found.split_once(' ').unwrap_or((found, ""));
        let name = config.run.clone();
        if run != self.run.to_string() {
            return Err(NatsError::OtherRun { run: name, expected: self.run.to_string(), found: run.to_owned() });
        }
        if key != self.key {
            return Err(NatsError::OtherKey { run: name, expected: self.key.clone(), found: key.to_owned() });
        }
        Ok(())
    }
}

impl Connection {
    fn stream_config(&self, config: &NatsConfig, label: &Label, name: &str, subject: String) -> Config {
        Config {
            name: name.to_owned(),
            subjects: vec![subject],
            description: Some(label.text()),
            num_replicas: config.replicas,
            max_consumers: CONSUMERS,
            max_age: config.keep,
            // As long as a message may be repeated.
            duplicate_window: config.patience.max(Duration::from_secs(120)).min(config.keep),
            allow_direct: true,
            ..Config::default()
        }
    }

    /// Makes the streams of a run whose results take up to `limit` bytes, or finds those that are there.
    pub fn create_streams(
        &self,
        config: &NatsConfig,
        label: &Label,
        limit: usize,
        slices: usize,
    ) -> Result<(), NatsError> {
        let names = &self.names;
        let by_node = WAITING.saturating_mul(slices as u64).max(64);
        let shares = match config.trust {
            Trust::Trusted => SHARES,
            Trust::Untrusted { .. } => config.nodes.len() as u64 + 1,
        };
        let bytes = by_node.saturating_mul(limit as u64).saturating_mul(shares);
        let results = self.stream_config(config, label, &names.results, names.result_subject("*"));
        let results = Config {
            max_message_size: i32::try_from(limit).unwrap_or(i32::MAX),
            max_messages_per_subject: i64::try_from(by_node).unwrap_or(i64::MAX),
            max_bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            max_age: RESULTS_AGE.min(config.keep),
            discard: DiscardPolicy::Old,
            ..results
        };
        let fitness = self.stream_config(config, label, &names.fitness, names.fitness_subject());
        let fitness = Config {
            max_bytes: i64::try_from(config.fitness_bytes).unwrap_or(i64::MAX),
            // What a replica has not read yet must not go.
            discard: DiscardPolicy::New,
            ..fitness
        };
        self.create_checkpoints(config, label, 0)?;
        // Workers wait for the last one.
        [results, fitness].into_iter().try_for_each(|stream| self.create_stream(config, label, stream))
    }

    /// Makes the stream of checkpoints that take so many bytes, with room for three, or gives it that.
    pub fn create_checkpoints(&self, config: &NatsConfig, label: &Label, bytes: u64) -> Result<(), NatsError> {
        let names = &self.names;
        let room = i64::try_from(bytes.saturating_mul(7) / 2).unwrap_or(i64::MAX).saturating_add(4 << 20);
        let stream = self.stream_config(config, label, &names.checkpoints, names.checkpoint_subjects());
        let stream = Config { max_bytes: room, discard: DiscardPolicy::New, ..stream };
        self.create_stream(config, label, stream.clone())?;
        self.persist(&format!("making room in {}", stream.name), async || {
            let found = self.stream(&stream.name).await?;
            match found.cached_info().config.max_bytes >= room {
                true => Ok(()),
                false => self.context.update_stream(stream.clone()).await.map(drop).map_err(for_now),
            }
        })
    }

    fn create_stream(&self, config: &NatsConfig, label: &Label, stream: Config) -> Result<(), NatsError> {
        let made = self.persist(&format!("making the stream {}", stream.name), async || {
            self.context.get_or_create_stream(stream.clone()).await.map_err(for_now)
        })?;
        label.check(config, &made.cached_info().config.description.clone().unwrap_or_default())
    }

    /// Says which run this is, where workers look for it.
    pub fn publish_label(&self, key: &CoordinatorKey, label: &Label, id: u64) -> Result<(), NatsError> {
        let sealed = key.seal(label.text().into_bytes());
        self.persist("saying which run this is", async || {
            let published = self.publish(&self.names.label_subject(), &format!("label.{id:016x}"), &sealed, None).await;
            published.map(drop).map_err(AttemptFailure::from)
        })
    }

    /// Waits for the run, and refuses another one of that name.
    pub fn find_label(&self, config: &NatsConfig, key: &WorkerKey, label: &Label) -> Result<(), NatsError> {
        let subject = self.names.label_subject();
        let sealed = self.persist("waiting for the run to begin", async || {
            let found = self.last_of(&self.names.checkpoints, &subject);
            // Nobody answers for a stream that there is not.
            match tokio::time::timeout(ANSWER, found).await {
                Ok(Ok(Some(message))) if message.payload.len() <= LABEL => Ok(message.payload),
                Ok(Err(failure)) => Err(failure),
                _ => Err(for_now("the server has nothing of it: is its coordinator there?")),
            }
        })?;
        match key.open(&sealed) {
            Some(text) => label.check(config, &String::from_utf8_lossy(text)),
            None => {
                let text = sealed.len().checked_sub(SIGNATURE).map(|len| String::from_utf8_lossy(&sealed[..len]));
                let found =
                    text.and_then(|text| text.split_once(' ').map(|(_, key)| key.to_owned())).unwrap_or_default();
                Err(NatsError::OtherKey { run: config.run.clone(), expected: label.key.clone(), found: shown(&found) })
            }
        }
    }
}

/// What may be anything, as hexadecimal digits of a fingerprint.
fn shown(found: &str) -> String {
    found.chars().filter(char::is_ascii_hexdigit).take(16).collect()
}

/// Removes everything that the server has of a run.
///
/// # Errors
///
/// [`NatsError`].
pub fn remove_run(config: &NatsConfig) -> Result<(), NatsError> {
    use async_nats::jetstream::context::GetStreamErrorKind::JetStream;
    let link = Connection::connect(config)?;
    // The checkpoints first: they would be later than what a run of the same name begins with.
    for name in [&link.names.checkpoints, &link.names.results, &link.names.fitness] {
        link.persist(&format!("removing {name}"), async || match link.context.delete_stream(name).await {
            Ok(_) => Ok(()),
            Err(error) => match error.kind() {
                JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => Ok(()),
                _ => Err(for_now(error)),
            },
        })?;
    }
    Ok(())
}
