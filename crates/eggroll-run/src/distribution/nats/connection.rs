//! The connection to the server, and the streams of a run.

use super::config::{NatsAuth, NatsConfig, NatsConnection};
use super::error::NatsError;
use super::protocol::ENVELOPE;
use super::run_id::RunId;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, Stream};
use async_nats::jetstream::{self, Context};
use async_nats::{ConnectErrorKind, ConnectOptions};
use std::fmt::Display;
use std::future::Future;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// The name of the consumer that all workers share.
const WORKERS: &str = "workers";
/// How soon a connection that is dead is noticed.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Results of one worker that wait at most, for each slice of a generation.
const WAITING: i64 = 4;

/// Why an attempt failed.
pub(super) enum Failure {
    /// It may succeed later.
    ForNow(String),
    /// It will not.
    ForGood(NatsError),
}

/// Failures that may pass.
pub(super) fn for_now(error: impl Display) -> Failure {
    Failure::ForNow(error.to_string())
}

/// Names of what a run has on the server.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub work: String,
    pub results: String,
    pub fitness: String,
    pub bucket: String,
    run: String,
}

impl Names {
    pub fn of(config: &NatsConfig) -> Self {
        let run = &config.run;
        let [work, results, fitness] = ["work", "results", "fitness"].map(|what| format!("eggroll-{run}-{what}"));
        Self { work, results, fitness, bucket: format!("eggroll-{run}-checkpoints"), run: run.clone() }
    }

    pub fn work_subject(&self) -> String {
        format!("eggroll.{}.work", self.run)
    }

    pub fn fitness_subject(&self) -> String {
        format!("eggroll.{}.fitness", self.run)
    }

    /// The subject of a node's results: a server's permissions can hold every node to its own.
    pub fn result_subject(&self, node: &str) -> String {
        format!("eggroll.{}.result.{node}", self.run)
    }
}

/// A connection that repeats what fails, as while a server restarts or a network is cut.
pub(super) struct Connection {
    pub runtime: Runtime,
    pub context: Context,
    pub names: Names,
    pub patience: Duration,
}

impl Connection {
    pub fn connect(config: &NatsConfig) -> Result<Self, NatsError> {
        config.validate()?;
        let names = Names::of(config);
        let refuse = |reason: String| NatsError::Connection { servers: config.connection.servers.clone(), reason };
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("eggroll-nats").enable_all().build();
        let runtime = runtime.map_err(|error| refuse(error.to_string()))?;
        let client = runtime.block_on(persist(config.patience, "connecting", async || {
            let options =
                options(&config.connection, &config.node).await.map_err(|reason| Failure::ForGood(refuse(reason)))?;
            let servers: Vec<&str> = config.connection.servers.split(',').map(str::trim).collect();
            options.connect(servers).await.map_err(|error| match error.kind() {
                ConnectErrorKind::Dns | ConnectErrorKind::TimedOut | ConnectErrorKind::Io => for_now(error),
                _ => Failure::ForGood(refuse(error.to_string())),
            })
        }))?;
        // A context starts a task of its own.
        let inside = runtime.enter();
        let context = jetstream::new(client);
        drop(inside);
        Ok(Self { runtime, context, names, patience: config.patience })
    }

    /// Waits for `future`; `None` after `limit`.
    pub fn wait<T>(&self, future: impl Future<Output = T>, limit: Duration) -> Option<T> {
        self.runtime.block_on(async { tokio::time::timeout(limit, future).await.ok() })
    }

    /// Repeats `attempt` until it succeeds.
    pub fn persist<T>(&self, what: &str, attempt: impl AsyncFnMut() -> Result<T, Failure>) -> Result<T, NatsError> {
        self.runtime.block_on(persist(self.patience, what, attempt))
    }

    /// Makes the streams of a run, or finds those that are there.
    pub fn create_streams(
        &self,
        config: &NatsConfig,
        run: &RunId,
        limit: usize,
        slices: usize,
    ) -> Result<(), NatsError> {
        let stream = |name: &str, subject: String| Config {
            name: name.to_owned(),
            subjects: vec![subject],
            description: Some(run.to_string()),
            num_replicas: config.replicas,
            // As long as a message may be repeated.
            duplicate_window: config.patience.max(Duration::from_secs(120)),
            ..Config::default()
        };
        let names = &self.names;
        let work = Config { retention: RetentionPolicy::WorkQueue, ..stream(&names.work, names.work_subject()) };
        let results = Config {
            max_message_size: i32::try_from(limit).unwrap_or(i32::MAX),
            max_messages_per_subject: WAITING.saturating_mul(slices as i64).max(64),
            discard: DiscardPolicy::Old,
            ..stream(&names.results, names.result_subject("*"))
        };
        let fitness = stream(&names.fitness, names.fitness_subject());
        for stream in [work, results, fitness] {
            let made = self.persist(&format!("making the stream {}", stream.name), async || {
                self.context.get_or_create_stream(stream.clone()).await.map_err(for_now)
            })?;
            self.check_run(config, run, &made)?;
        }
        self.create_workers(config)
    }

    /// Waits for the streams of a run.
    pub fn find_streams(&self, config: &NatsConfig, run: &RunId) -> Result<(), NatsError> {
        for name in [&self.names.work, &self.names.results, &self.names.fitness] {
            let stream = self.persist(&format!("waiting for the stream {name}"), async || self.stream(name).await)?;
            self.check_run(config, run, &stream)?;
        }
        Ok(())
    }

    pub async fn stream(&self, name: &str) -> Result<Stream, Failure> {
        self.context.get_stream(name).await.map_err(for_now)
    }

    fn check_run(&self, config: &NatsConfig, run: &RunId, stream: &Stream) -> Result<(), NatsError> {
        let found = stream.cached_info().config.description.clone().unwrap_or_default();
        let expected = run.to_string();
        if found == expected { Ok(()) } else { Err(NatsError::OtherRun { run: config.run.clone(), expected, found }) }
    }

    /// Makes the consumer of work that all workers share, or gives it these settings.
    fn create_workers(&self, config: &NatsConfig) -> Result<(), NatsError> {
        let consumer = pull::Config {
            durable_name: Some(WORKERS.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: config.ack_wait,
            max_ack_pending: i64::try_from(config.in_flight).unwrap_or(i64::MAX),
            ..pull::Config::default()
        };
        self.persist("making the consumer of work", async || {
            let created = self.context.create_consumer_on_stream(consumer.clone(), &self.names.work).await;
            created.map(drop).map_err(for_now)
        })
    }

    /// The consumer of work, as it is now.
    pub async fn workers(&self) -> Result<PullConsumer, Failure> {
        self.context.get_consumer_from_stream(WORKERS, &self.names.work).await.map_err(for_now)
    }

    /// Publishes a message under an id, by which the server tells it from its repetitions; returns its place in the stream. With
    /// `after`, only if that is the last place so far.
    pub async fn publish(
        &self,
        subject: &str,
        id: &str,
        bytes: &[u8],
        after: Option<u64>,
    ) -> Result<u64, PublishFailure> {
        let message = PublishMessage::build().payload(bytes.to_vec().into()).message_id(id);
        let message = match after {
            Some(after) => message.expected_last_sequence(after),
            None => message,
        };
        let failed = |error: jetstream::context::PublishError| match error.kind() {
            PublishErrorKind::WrongLastSequence => PublishFailure::NotLast,
            _ => PublishFailure::ForNow(error.to_string()),
        };
        use jetstream::context::traits::Publisher;
        let acknowledged = self.context.publish_message(message.outbound_message(subject.to_owned())).await;
        Ok(acknowledged.map_err(failed)?.await.map_err(failed)?.sequence)
    }

    /// Drops the messages of a stream: those before a place, or all.
    pub fn purge(&self, stream: &str, before: Option<u64>) -> Result<(), NatsError> {
        self.persist(&format!("purging {stream}"), async || {
            let stream = self.context.get_stream_no_info(stream).await.map_err(for_now)?;
            match before {
                Some(sequence) => stream.purge().sequence(sequence).await,
                None => stream.purge().await,
            }
            .map(drop)
            .map_err(for_now)
        })
    }

    /// Waits for [`last_sequence`](Self::last_sequence).
    pub fn wait_for_last(&self, stream: &str) -> Result<u64, NatsError> {
        self.persist(&format!("reading the stream {stream}"), async || self.last_sequence(stream).await)
    }

    /// The place of the last message of a stream, ever.
    pub async fn last_sequence(&self, stream: &str) -> Result<u64, Failure> {
        Ok(self.stream(stream).await?.cached_info().state.last_sequence)
    }

    /// Refuses slices whose results the server would not take.
    pub fn check_limit(&self, members: usize, bytes: usize) -> Result<(), NatsError> {
        let limit = self.message_bytes();
        if bytes <= limit { Ok(()) } else { Err(NatsError::SliceBytes { members, bytes, limit }) }
    }

    /// Bytes of the largest message, without its headers.
    pub fn message_bytes(&self) -> usize {
        self.context.client().max_payload().saturating_sub(ENVELOPE)
    }
}

/// Why a message was not published.
pub(super) enum PublishFailure {
    /// It is not the one that is due: another has published.
    NotLast,
    /// It may be later.
    ForNow(String),
}

impl From<PublishFailure> for Failure {
    fn from(failure: PublishFailure) -> Self {
        match failure {
            PublishFailure::NotLast => Self::ForNow("not the last of its stream".to_owned()),
            PublishFailure::ForNow(reason) => Self::ForNow(reason),
        }
    }
}

async fn options(connection: &NatsConnection, node: &str) -> Result<ConnectOptions, String> {
    let mut options = ConnectOptions::new().name(node).require_tls(connection.require_tls).ping_interval(PING_INTERVAL);
    options = match &connection.auth {
        NatsAuth::None => options,
        NatsAuth::Token(token) => options.token(token.clone()),
        NatsAuth::UserPassword { user, password } => options.user_and_password(user.clone(), password.clone()),
        NatsAuth::Credentials(path) => {
            options.credentials_file(path).await.map_err(|error| format!("{}: {error}", path.display()))?
        }
    };
    if let Some(path) = &connection.root_certificates {
        options = options.add_root_certificates(path.clone());
    }
    if let Some((certificate, key)) = &connection.client_certificate {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(options)
}

/// Repeats `attempt`, with growing pauses, until it succeeds, fails for good, or `patience` is over.
async fn persist<T>(
    patience: Duration,
    what: &str,
    mut attempt: impl AsyncFnMut() -> Result<T, Failure>,
) -> Result<T, NatsError> {
    let (start, mut pause) = (Instant::now(), Duration::from_millis(50));
    loop {
        match attempt().await {
            Ok(value) => return Ok(value),
            Err(Failure::ForGood(error)) => return Err(error),
            Err(Failure::ForNow(reason)) if start.elapsed() + pause > patience => {
                return Err(NatsError::Patience { what: what.to_owned(), patience, reason });
            }
            Err(Failure::ForNow(_)) => tokio::time::sleep(pause).await,
        }
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}
