//! The connection to the server, and the streams of a run.

use super::auth::{NatsAuth, NatsConnection, shown};
use super::config::NatsConfig;
use super::error::NatsError;
use super::names::StreamNames;
use super::notice::{Notice, Notices};
use super::protocol::ENVELOPE;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{self, Context};
use async_nats::{ConnectErrorKind, ConnectOptions, Request, StatusCode, Subscriber};
use secrecy::ExposeSecret;
use std::fmt::Display;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// How soon a connection that is dead is noticed.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// How long a server may take for a message of a stream.
const ANSWER: Duration = Duration::from_secs(5);
/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Messages of a subscription that wait here at most.
const WAITING: usize = 512;

/// Why an attempt failed.
pub(super) enum AttemptFailure {
    /// It may succeed later.
    ForNow(String),
    /// It will not.
    ForGood(NatsError),
}

/// Failures that may pass.
pub(super) fn for_now(error: impl Display) -> AttemptFailure {
    AttemptFailure::ForNow(error.to_string())
}

/// A message of a stream.
pub(super) struct Stored {
    /// Its place.
    pub sequence: u64,
    pub subject: String,
    pub payload: Vec<u8>,
}

/// A connection that repeats what fails, as while a server restarts or a network is cut.
pub(super) struct Connection {
    pub runtime: Runtime,
    pub context: Context,
    pub names: StreamNames,
    pub patience: Duration,
    pub notices: Notices,
}

impl Connection {
    pub fn connect(config: &NatsConfig) -> Result<Self, NatsError> {
        config.validate()?;
        let (names, notices) = (StreamNames::of(config), Notices::new(config.report_every));
        let addresses = config.connection.addresses()?;
        let refuse = |reason: String| NatsError::Connection { servers: shown(&config.connection.servers), reason };
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("eggroll-nats").enable_all().build();
        let runtime = runtime.map_err(|error| refuse(error.to_string()))?;
        let client = runtime.block_on(persist(config.patience, &notices, "connecting", async || {
            let options = options(&config.connection, &config.node)
                .await
                .map_err(|reason| AttemptFailure::ForGood(refuse(reason)))?;
            options.connect(&addresses[..]).await.map_err(|error| match error.kind() {
                ConnectErrorKind::Dns | ConnectErrorKind::TimedOut | ConnectErrorKind::Io => for_now(error),
                _ => AttemptFailure::ForGood(refuse(error.to_string())),
            })
        }))?;
        // A context starts a separate task.
        let inside = runtime.enter();
        let context = jetstream::new(client);
        drop(inside);
        Ok(Self { runtime, context, names, patience: config.patience, notices })
    }

    /// Repeats `attempt` until it succeeds.
    pub fn persist<T>(
        &self,
        what: &str,
        attempt: impl AsyncFnMut() -> Result<T, AttemptFailure>,
    ) -> Result<T, NatsError> {
        self.runtime.block_on(persist(self.patience, &self.notices, what, attempt))
    }

    pub async fn stream(&self, name: &str) -> Result<Stream, AttemptFailure> {
        self.context.get_stream(name).await.map_err(for_now)
    }

    /// Hears what is said on a subject, which is not kept.
    pub fn subscribe(&self, subject: &str) -> Result<Subscriber, NatsError> {
        self.persist(&format!("subscribing to {subject}"), async || {
            self.context.client().subscribe(subject.to_owned()).await.map_err(for_now)
        })
    }

    /// Says something that is not kept, and may be lost.
    pub fn say(&self, subject: &str, bytes: Vec<u8>) -> Result<(), NatsError> {
        self.persist(&format!("publishing on {subject}"), async || {
            self.context.client().publish(subject.to_owned(), bytes.clone().into()).await.map_err(for_now)
        })
    }

    /// The first message of a stream from a place on; `None` if there is none yet.
    pub async fn next(&self, stream: &str, from: u64) -> Result<Option<Stored>, AttemptFailure> {
        let request = format!("{{\"seq\":{},\"next_by_subj\":\">\"}}", from.max(1));
        let found = self.direct_get(stream.to_owned(), request).await?;
        Ok(found.filter(|found| found.sequence >= from))
    }

    /// The last message of a subject in a stream; `None` if there is none.
    pub async fn last_of(&self, stream: &str, subject: &str) -> Result<Option<Stored>, AttemptFailure> {
        self.direct_get(format!("{stream}.{subject}"), String::new()).await
    }

    /// A message may have been put into a stream with any headers, also those of an answer that there is no message: only what the server itself
    /// has added to this answer counts, which is the last of each.
    async fn direct_get(&self, what: String, request: String) -> Result<Option<Stored>, AttemptFailure> {
        let request = Request::new().payload(request.into()).timeout(Some(ANSWER));
        let subject = format!("$JS.API.DIRECT.GET.{what}");
        let answer = self.context.client().send_request(subject, request).await.map_err(for_now)?;
        let added = |name: &str| {
            let values = answer.headers.iter().flat_map(|headers| headers.get_all(name));
            values.last().map(|value| value.as_str().to_owned())
        };
        let sequence = added("Nats-Sequence").and_then(|sequence| sequence.parse().ok());
        match (sequence, answer.status) {
            (Some(sequence), _) => {
                let subject = added("Nats-Subject").unwrap_or_default();
                Ok(Some(Stored { sequence, subject, payload: answer.payload.to_vec() }))
            }
            (None, Some(StatusCode::NOT_FOUND)) => Ok(None),
            (None, status) => Err(for_now(format!("the server answers {status:?} to a request for {what}"))),
        }
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
    pub async fn last_sequence(&self, stream: &str) -> Result<u64, AttemptFailure> {
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

impl From<PublishFailure> for AttemptFailure {
    fn from(failure: PublishFailure) -> Self {
        match failure {
            PublishFailure::NotLast => Self::ForNow("not the last of its stream".to_owned()),
            PublishFailure::ForNow(reason) => Self::ForNow(reason),
        }
    }
}

async fn options(connection: &NatsConnection, node: &str) -> Result<ConnectOptions, String> {
    let mut options = ConnectOptions::new().name(node).require_tls(connection.require_tls).ping_interval(PING_INTERVAL);
    // With permissions nobody hears the answers to another: an inbox for each node.
    options = options.custom_inbox_prefix(format!("_INBOX_{node}")).subscription_capacity(WAITING);
    if connection.stays() {
        options = options.ignore_discovered_servers();
    }
    options = match &connection.auth {
        NatsAuth::None => options,
        NatsAuth::Token(token) => options.token(token.expose_secret().to_owned()),
        NatsAuth::UserPassword { user, password } => {
            options.user_and_password(user.clone(), password.expose_secret().to_owned())
        }
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
    notices: &Notices,
    what: &str,
    mut attempt: impl AsyncFnMut() -> Result<T, AttemptFailure>,
) -> Result<T, NatsError> {
    let (start, mut pause) = (Instant::now(), Duration::from_millis(50));
    let mut waiting = notices.begin();
    loop {
        match attempt().await {
            Ok(value) => return Ok(value),
            Err(AttemptFailure::ForGood(error)) => return Err(error),
            Err(AttemptFailure::ForNow(reason)) if start.elapsed() + pause > patience => {
                return Err(NatsError::Patience { what: what.to_owned(), patience, reason });
            }
            Err(AttemptFailure::ForNow(reason)) => {
                waiting.tell(|since| Notice::Server { what: what.to_owned(), reason, since });
                tokio::time::sleep(pause).await;
            }
        }
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}
