//! A worker's end of the work queue.

use crate::connection::{Connection, WORKERS};
use crate::messages::{Work, decode};
use crate::run_id::RunId;
use async_nats::jetstream::AckKind;
use async_nats::jetstream::consumer::PullConsumer;
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::JoinHandle;

/// How long the server keeps a request for work.
const REQUEST: Duration = Duration::from_secs(5);
/// How long a worker waits after a failed request.
const PAUSE: Duration = Duration::from_millis(200);

/// Fetches work when the worker wants some, one slice at a time: no slice waits here while another worker is idle.
pub struct Queue {
    wants: Arc<Semaphore>,
    asked: bool,
    work: mpsc::Receiver<(Work, async_nats::jetstream::Message)>,
    /// Notified when something was logged.
    news: Arc<Notify>,
    tasks: [JoinHandle<()>; 2],
    ack_wait: Duration,
}

/// Work that a worker holds: the server gets progress signals until it is done or dropped.
pub struct InHand {
    pub work: Work,
    message: Arc<async_nats::jetstream::Message>,
    alive: JoinHandle<()>,
}

impl Queue {
    pub fn open(link: &Connection, run: RunId) -> Self {
        let (wants, news) = (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
        let (sender, work) = mpsc::channel(1);
        let (context, stream, wanted) = (link.context.clone(), link.names.work.clone(), wants.clone());
        let fetch = link.runtime.spawn(async move {
            let mut consumer = None;
            loop {
                let Ok(permit) = wanted.acquire().await else { break };
                permit.forget();
                let (work, message) = loop {
                    let found: Option<&PullConsumer> = match &mut consumer {
                        Some(consumer) => Some(consumer),
                        none => context
                            .get_consumer_from_stream(WORKERS, &stream)
                            .await
                            .ok()
                            .map(|found| &*none.insert(found)),
                    };
                    let fetched = match found {
                        Some(consumer) => consumer.fetch().max_messages(1).expires(REQUEST).messages().await.ok(),
                        None => None,
                    };
                    let message = match fetched {
                        // A server that restarts forgets the request.
                        Some(mut fetched) => match tokio::time::timeout(2 * REQUEST, fetched.next()).await {
                            Ok(message) => message,
                            Err(_) => Some(Err("no answer".into())),
                        },
                        None => Some(Err("no answer".into())),
                    };
                    let message = match message {
                        Some(Ok(message)) => message,
                        // No work.
                        None => continue,
                        // As after a restart of the server.
                        Some(Err(_)) => {
                            consumer = None;
                            tokio::time::sleep(PAUSE).await;
                            continue;
                        }
                    };
                    match decode(&message.payload, &run) {
                        Some(work) => break (work, message),
                        None => drop(message.ack().await),
                    }
                };
                if sender.send((work, message)).await.is_err() {
                    break;
                }
            }
        });
        let (client, subject, ring) = (link.client.clone(), link.names.log_subject.clone(), news.clone());
        let listen = link.runtime.spawn(async move {
            // Without it a worker only looks later.
            if let Ok(mut heard) = client.subscribe(subject).await {
                while heard.next().await.is_some() {
                    ring.notify_one();
                }
            }
        });
        Self { wants, asked: false, work, news, tasks: [fetch, listen], ack_wait: link.config.ack_wait }
    }

    /// Waits for work, or until something was logged, `limit` at most.
    pub fn wait(&mut self, link: &Connection, limit: Duration) -> Option<InHand> {
        if !std::mem::replace(&mut self.asked, true) {
            self.wants.add_permits(1);
        }
        let received = link.runtime.block_on(async {
            tokio::select! {
                received = self.work.recv() => received,
                () = self.news.notified() => None,
                () = tokio::time::sleep(limit) => None,
            }
        });
        let (work, message) = received?;
        self.asked = false;
        let message = Arc::new(message);
        let (alive, pause) = (message.clone(), self.ack_wait / 3);
        let alive = link.runtime.spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let _ = alive.ack_with(AckKind::Progress).await;
            }
        });
        Some(InHand { work, message, alive })
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl InHand {
    /// Takes it out of the queue.
    pub fn done(self, link: &Connection) {
        // Without this acknowledgement it comes again, which is harmless.
        let _ = link.runtime.block_on(self.message.ack());
    }

    /// Leaves it to another worker, after a delay.
    pub fn give_back(self, link: &Connection, after: Duration) {
        let _ = link.runtime.block_on(self.message.ack_with(AckKind::Nak(Some(after))));
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.alive.abort();
    }
}
