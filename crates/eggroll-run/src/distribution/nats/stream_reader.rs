//! A stream that is read from a place on, whatever happens to server and connection.

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::jetstream::{Context, Message};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use std::time::Duration;

/// Pause before a stream is opened again.
const PAUSE: Duration = Duration::from_millis(200);

/// The messages of a stream in order, each once.
pub(super) struct StreamReader {
    context: Context,
    stream: String,
    /// Place of the next message, if it is still there.
    next: u64,
    messages: Option<Ordered>,
    /// The stream being opened, which may take longer than a call.
    opening: Option<BoxFuture<'static, Option<Ordered>>>,
}

impl StreamReader {
    /// The messages from `next` on.
    pub fn new(context: Context, stream: &str, next: u64) -> Self {
        Self { context, stream: stream.to_owned(), next: next.max(1), messages: None, opening: None }
    }

    /// Place of the next message.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// The next message. A call that is dropped loses none.
    pub async fn next(&mut self) -> Message {
        loop {
            match &mut self.messages {
                None => {
                    let opening = self
                        .opening
                        .get_or_insert_with(|| Box::pin(open(self.context.clone(), self.stream.clone(), self.next)));
                    self.messages = opening.await;
                    self.opening = None;
                }
                Some(messages) => match messages.next().await {
                    Some(Ok(message)) => {
                        let place = message.info().map(|info| info.stream_sequence).unwrap_or(self.next);
                        let is_new = place >= self.next;
                        self.next = self.next.max(place + 1);
                        if is_new {
                            return message;
                        }
                    }
                    Some(Err(_)) | None => self.messages = None,
                },
            }
            if self.messages.is_none() {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn open(context: Context, stream: String, start_sequence: u64) -> Option<Ordered> {
    let deliver_policy = DeliverPolicy::ByStartSequence { start_sequence };
    let config = OrderedConfig { deliver_policy, ..OrderedConfig::default() };
    let consumer = context.create_consumer_on_stream(config, stream).await.ok()?;
    consumer.messages().await.ok()
}
