//! The connection to the server, and the streams of a run.

use crate::config::NatsConfig;
use crate::error::NatsError;
use crate::notice::{Lasting, Notice, Notify};
use crate::run_id::RunId;
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::context::traits::Publisher;
use async_nats::jetstream::context::{GetStreamErrorKind, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::object_store::ObjectStore;
use async_nats::jetstream::stream::{Config, RetentionPolicy};
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{Client, ConnectErrorKind, Request, ServerAddr, StatusCode};
use std::fmt::Display;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// Interval of pings, which detect a dead connection.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// How long a node waits for an answer before it asks again.
const ANSWER: Duration = Duration::from_secs(5);
/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Most bytes of a message in addition to its scores.
pub const ENVELOPE: usize = 1024;
/// The consumer of the work queue that all workers share.
pub const WORKERS: &str = "workers";

/// Why an attempt failed.
pub enum AttemptFailure {
    /// It may succeed later.
    ForNow(String),
    /// It will not.
    ForGood(NatsError),
}

/// Failures that may pass.
pub fn for_now(error: impl Display) -> AttemptFailure {
    AttemptFailure::ForNow(error.to_string())
}

/// Names of the streams and subjects of a run.
#[derive(Clone, Debug)]
pub struct Names {
    pub work: String,
    pub work_subject: String,
    pub log: String,
    pub log_subject: String,
    pub bucket: String,
    results: String,
}

impl Names {
    fn of(run: &str) -> Self {
        Self {
            work: format!("eggroll-{run}-work"),
            work_subject: format!("eggroll.{run}.work"),
            log: format!("eggroll-{run}-log"),
            log_subject: format!("eggroll.{run}.log"),
            bucket: format!("eggroll-{run}"),
            results: format!("eggroll.{run}.result"),
        }
    }

    /// The subject of a node's results.
    pub fn result(&self, node: &str) -> String {
        format!("{}.{node}", self.results)
    }
}

/// A message of a stream.
pub struct Stored {
    /// Its place.
    pub place: u64,
    pub payload: Vec<u8>,
}

/// The log of a run on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogState {
    /// When it was made, in nanoseconds of 1970: logs are told apart by it.
    pub made: i64,
    /// The place of its last record, ever.
    pub end: u64,
}

/// A connection that repeats failing operations, for example while a server restarts or a network is down.
pub struct Connection {
    pub runtime: Runtime,
    pub client: Client,
    pub context: Context,
    pub names: Names,
    pub config: NatsConfig,
}

impl Connection {
    pub fn new(config: &NatsConfig) -> Result<Self, NatsError> {
        config.validate()?;
        let refuse = |reason: String| NatsError::Connection { servers: config.shown_servers(), reason };
        let address = |server: &str| server.trim().parse::<ServerAddr>();
        let addresses: Result<Vec<_>, _> = config.servers.split(',').map(address).collect();
        let addresses = addresses.map_err(|_| refuse("not the address of a server, as nats://host:4222".to_owned()))?;
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("eggroll-nats").enable_all().build();
        let runtime = runtime.map_err(|error| refuse(error.to_string()))?;
        let options = config.options.clone().name(&config.node).ping_interval(PING_INTERVAL);
        // An inbox for each node: with permissions, no node can read answers to another.
        let options = options.custom_inbox_prefix(format!("_INBOX_{}", config.node));
        let client = runtime.block_on(persist(config, "connecting", async || {
            options.clone().connect(&addresses[..]).await.map_err(|error| match error.kind() {
                ConnectErrorKind::Dns | ConnectErrorKind::TimedOut | ConnectErrorKind::Io => for_now(error),
                _ => AttemptFailure::ForGood(refuse(error.to_string())),
            })
        }))?;
        // A context starts a task.
        let inside = runtime.enter();
        let context = jetstream::new(client.clone());
        drop(inside);
        Ok(Self { runtime, client, context, names: Names::of(&config.run), config: config.clone() })
    }

    /// How long this node waits for an answer: often enough within its patience.
    pub fn answer(&self) -> Duration {
        ANSWER.min(self.config.patience / 4)
    }

    pub fn notify(&self) -> &Notify {
        &self.config.notify
    }

    /// Repeats `attempt` until it succeeds.
    pub fn persist<T>(
        &self,
        what: &str,
        attempt: impl AsyncFnMut() -> Result<T, AttemptFailure>,
    ) -> Result<T, NatsError> {
        self.runtime.block_on(persist(&self.config, what, attempt))
    }

    /// Makes the streams of a run, or finds existing ones and refuses them if they belong to another run.
    pub fn create_streams(&self, run: &RunId) -> Result<(), NatsError> {
        let Names { work, work_subject, log, log_subject, bucket, .. } = &self.names;
        let stream = |name: &str, subject: &str| Config {
            name: name.to_owned(),
            subjects: vec![subject.to_owned()],
            description: Some(run.to_string()),
            num_replicas: self.config.replicas,
            allow_direct: true,
            ..Config::default()
        };
        let log = stream(log, log_subject);
        let work = Config { retention: RetentionPolicy::WorkQueue, allow_direct: false, ..stream(work, work_subject) };
        self.check_run(run, self.create_stream(&log)?)?;
        self.check_run(run, self.create_stream(&work)?)?;
        self.persist("making the consumer of work", async || {
            let consumer = pull::Config {
                durable_name: Some(WORKERS.to_owned()),
                ack_policy: AckPolicy::Explicit,
                ack_wait: self.config.ack_wait,
                max_ack_pending: -1,
                ..pull::Config::default()
            };
            self.context.create_consumer_on_stream(consumer, &work.name).await.map(drop).map_err(for_now)
        })?;
        if !self.config.offer_checkpoints {
            return Ok(());
        }
        self.persist("making the store of checkpoints", async || {
            if self.store().await.is_ok() {
                return Ok(());
            }
            let store = jetstream::object_store::Config {
                bucket: bucket.clone(),
                num_replicas: self.config.replicas,
                ..Default::default()
            };
            self.context.create_object_store(store).await.map(drop).map_err(for_now)
        })
    }

    /// Deletes a stream, if it is there.
    pub fn delete_stream(&self, name: &str) -> Result<(), NatsError> {
        self.persist(&format!("removing {name}"), async || match self.context.delete_stream(name).await {
            Ok(_) => Ok(()),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => Ok(()),
                _ => Err(for_now(error)),
            },
        })
    }

    /// Makes a stream unless it exists; returns its description.
    fn create_stream(&self, stream: &Config) -> Result<Option<String>, NatsError> {
        self.persist(&format!("making the stream {}", stream.name), async || {
            let made = self.context.get_or_create_stream(stream.clone()).await.map_err(for_now)?;
            Ok(made.cached_info().config.description.clone())
        })
    }

    /// Waits for the run's log, and refuses another run of that name.
    pub fn find_log(&self, run: &RunId) -> Result<(), NatsError> {
        let found = self.persist("waiting for the run to begin", async || {
            let stream = self.context.get_stream(&self.names.log).await.map_err(for_now)?;
            Ok(stream.cached_info().config.description.clone())
        })?;
        self.check_run(run, found)
    }

    fn check_run(&self, run: &RunId, found: Option<String>) -> Result<(), NatsError> {
        let (expected, found) = (run.to_string(), found.unwrap_or_default());
        match found == expected {
            true => Ok(()),
            false => Err(NatsError::OtherRun { run: self.config.run.clone(), expected, found }),
        }
    }

    /// The first record of the log from a place on; `None` if there is none yet.
    pub fn next(&self, from: u64) -> Result<Option<Stored>, NatsError> {
        let request = format!("{{\"seq\":{},\"next_by_subj\":\">\"}}", from.max(1));
        let found = self.persist("reading the log", async || self.direct_get(&self.names.log, &request).await)?;
        Ok(found.filter(|found| found.place >= from))
    }

    /// The last record of the log.
    pub fn last(&self) -> Result<Option<Stored>, NatsError> {
        let what = format!("{}.{}", self.names.log, self.names.log_subject);
        self.persist("reading the log", async || self.direct_get(&what, "").await)
    }

    async fn direct_get(&self, what: &str, request: &str) -> Result<Option<Stored>, AttemptFailure> {
        let request = Request::new().payload(request.to_owned().into()).timeout(Some(self.answer()));
        let subject = format!("$JS.API.DIRECT.GET.{what}");
        let answer = self.client.send_request(subject, request).await.map_err(for_now)?;
        // The server adds its own header after the headers of the published message.
        let places = answer.headers.iter().flat_map(|headers| headers.get_all("Nats-Sequence"));
        match (places.last().and_then(|place| place.as_str().parse().ok()), answer.status) {
            (Some(place), _) => Ok(Some(Stored { place, payload: answer.payload.to_vec() })),
            (None, Some(StatusCode::NOT_FOUND)) => Ok(None),
            (None, status) => Err(for_now(format!("the server answers {status:?} to a request for {what}"))),
        }
    }

    /// The log as the server has it.
    pub fn log(&self) -> Result<LogState, NatsError> {
        self.persist("reading the log", async || {
            let stream = self.context.get_stream(&self.names.log).await.map_err(for_now)?;
            let info = stream.cached_info();
            Ok(LogState { made: info.created.unix_timestamp_nanos() as i64, end: info.state.last_sequence })
        })
    }

    /// Adds a record after the place `after`, under an id by which the server detects repetitions; `None` if that is not the last place.
    pub fn append(&self, id: &str, bytes: &[u8], after: u64) -> Result<Option<u64>, NatsError> {
        self.persist("writing the log", async || {
            let message = PublishMessage::build().payload(bytes.to_vec().into()).message_id(id);
            let message = message.expected_last_sequence(after).outbound_message(self.names.log_subject.clone());
            let acknowledged = async { self.context.publish_message(message).await?.await }.await;
            match acknowledged {
                Ok(acknowledged) => Ok(Some(acknowledged.sequence)),
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(None),
                Err(error) => Err(for_now(error)),
            }
        })
    }

    /// Puts messages into the work queue.
    pub fn offer(&self, messages: &[Vec<u8>]) -> Result<(), NatsError> {
        self.persist("offering work", async || {
            let mut pending = Vec::new();
            for message in messages {
                let published = self.context.publish(self.names.work_subject.clone(), message.clone().into());
                pending.push(published.await.map_err(for_now)?);
            }
            for acknowledgement in pending {
                acknowledgement.await.map_err(for_now)?;
            }
            Ok(())
        })
    }

    /// Drops the messages of a stream: those before a place, or all.
    pub fn purge(&self, stream: &str, before: Option<u64>) -> Result<(), NatsError> {
        self.persist(&format!("purging {stream}"), async || {
            let stream = self.context.get_stream_no_info(stream).await.map_err(for_now)?;
            match before {
                Some(place) => stream.purge().sequence(place).await,
                None => stream.purge().await,
            }
            .map(drop)
            .map_err(for_now)
        })
    }

    /// The store of checkpoints.
    pub async fn store(&self) -> Result<ObjectStore, AttemptFailure> {
        self.context.get_object_store(&self.names.bucket).await.map_err(for_now)
    }

    /// Slices that workers have in hand, and workers that wait for one.
    pub fn workers(&self) -> (usize, usize) {
        let info = async {
            let consumer = self.context.get_consumer_from_stream::<pull::Config, _, _>(WORKERS, &self.names.work);
            let consumer = tokio::time::timeout(self.answer(), consumer).await.ok()?.ok()?;
            let info = consumer.cached_info();
            Some((info.num_ack_pending, info.num_waiting))
        };
        self.runtime.block_on(info).unwrap_or_default()
    }

    /// Bytes of scores in the largest message.
    pub fn message_bytes(&self) -> usize {
        self.client.server_info().max_payload.saturating_sub(ENVELOPE)
    }
}

/// Repeats `attempt`, with growing pauses, until it succeeds, fails permanently, or patience is over.
async fn persist<T>(
    config: &NatsConfig,
    what: &str,
    mut attempt: impl AsyncFnMut() -> Result<T, AttemptFailure>,
) -> Result<T, NatsError> {
    let (start, patience, mut pause) = (Instant::now(), config.patience, Duration::from_millis(50));
    let mut lasting = Lasting::new(config.notice_every);
    loop {
        match attempt().await {
            Ok(value) => return Ok(value),
            Err(AttemptFailure::ForGood(error)) => return Err(error),
            Err(AttemptFailure::ForNow(reason)) if start.elapsed() + pause > patience => {
                return Err(NatsError::Patience { what: what.to_owned(), patience, reason });
            }
            Err(AttemptFailure::ForNow(reason)) => {
                if lasting.is_due() {
                    config.notify.tell(&Notice::Server { what: what.to_owned(), reason, since: lasting.since() });
                }
                tokio::time::sleep(pause).await;
            }
        }
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Removes all data of a run from the server.
///
/// # Errors
///
/// [`NatsError`].
pub fn remove_run(config: &NatsConfig) -> Result<(), NatsError> {
    let link = Connection::new(config)?;
    let Names { work, log, bucket, .. } = &link.names;
    // The checkpoints first: without the log, a new run of the same name would find checkpoints later than its
    // beginning.
    [&format!("OBJ_{bucket}"), work, log].into_iter().try_for_each(|name| link.delete_stream(name))
}
