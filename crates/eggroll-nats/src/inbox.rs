//! Messages of workers to a coordinator.

use crate::connection::{Connection, for_now};
use crate::error::NatsError;
use crate::messages::{Message, Reply, decode, encode};
use crate::run_id::RunId;
use eggroll_core::sync::locked;
use futures_util::StreamExt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Takes messages and answers at once, also while the coordinator is busy. A worker keeps a slice until its scores have arrived here.
pub struct Inbox {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    messages: Mutex<Vec<(String, Message)>>,
    news: Condvar,
    standing: Mutex<Reply>,
}

impl Inbox {
    pub fn open(link: &Connection, run: RunId, standing: Reply) -> Result<Self, NatsError> {
        let client = link.client.clone();
        let subject = link.names.result("*");
        let mut heard =
            link.persist("subscribing to results", async || client.subscribe(subject.clone()).await.map_err(for_now))?;
        let shared = Arc::new(Shared { standing: standing.into(), messages: Mutex::default(), news: Condvar::new() });
        let inbox = shared.clone();
        let task = link.runtime.spawn(async move {
            while let Some(message) = heard.next().await {
                // Damaged messages, and messages of another run, get no answer.
                let Some(said) = decode::<Message>(&message.payload, &run) else { continue };
                let node = message.subject.rsplit('.').next().unwrap_or_default().to_owned();
                if said != Message::Hello {
                    locked(&inbox.messages).push((node, said));
                    inbox.news.notify_one();
                }
                if let Some(reply) = message.reply {
                    let bytes = encode(&*locked(&inbox.standing), &run);
                    // A worker without an answer asks again.
                    let _ = client.publish(reply, bytes.into()).await;
                }
            }
        });
        Ok(Self { shared, task })
    }

    /// All messages that have come, or come within `limit`.
    pub fn take(&self, limit: Duration) -> Vec<(String, Message)> {
        let messages = locked(&self.shared.messages);
        let waited = self.shared.news.wait_timeout_while(messages, limit, |messages| messages.is_empty());
        std::mem::take(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Sets the answer from now on.
    pub fn set(&self, standing: Reply) {
        *locked(&self.shared.standing) = standing;
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.task.abort();
    }
}
