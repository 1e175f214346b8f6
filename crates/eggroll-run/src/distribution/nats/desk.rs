//! The slices that a worker has, and what it says of itself while it evaluates one.

use super::connection::Connection;
use super::keys::WorkerKey;
use super::protocol::{Held, Status, Work};
use super::run_id::RunId;
use eggroll_core::sync::locked;
use futures_util::StreamExt;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Slices that wait at most.
const WAITING: usize = 8;

#[derive(Default)]
struct Piles {
    waiting: VecDeque<Work>,
    /// The one that is being evaluated, and since when.
    current: Option<(Held, Instant)>,
}

/// What two tasks and the worker share.
struct Shared {
    piles: Mutex<Piles>,
    news: Notify,
}

/// Where work arrives, and from where signs of life go out, whatever the worker does meanwhile.
pub(super) struct Desk {
    shared: Arc<Shared>,
    tasks: [JoinHandle<()>; 2],
    say: Say,
}

/// A worker's voice.
#[derive(Clone)]
struct Say {
    client: async_nats::Client,
    subject: String,
    node: String,
    key: Arc<WorkerKey>,
    run: RunId,
}

impl Say {
    async fn status(&self, status: Status) {
        let sealed = self.key.seal(&self.node, status.encode(&self.run));
        // Without a connection the next one may arrive.
        let _ = self.client.publish(self.subject.clone(), sealed.into()).await;
    }
}

impl Shared {
    fn piles(&self) -> MutexGuard<'_, Piles> {
        locked(&self.piles)
    }

    /// What the worker has, but what takes longer than `longest`.
    fn status(&self, longest: Duration) -> Status {
        let piles = self.piles();
        let current = piles.current.filter(|(_, start)| start.elapsed() <= longest).map(|(held, _)| held);
        let held = current.into_iter().chain(piles.waiting.iter().map(Work::held)).collect();
        Status { leaving: false, held }
    }
}

impl Desk {
    /// Opens: work for `node` arrives from now on, and the coordinator hears of it every `pause`.
    pub fn open(
        link: &Connection,
        node: &str,
        key: Arc<WorkerKey>,
        run: RunId,
        pause: Duration,
        longest: Duration,
    ) -> Result<Self, super::error::NatsError> {
        let mut work = link.subscribe(&link.names.work_subject(node))?;
        let shared = Arc::new(Shared { piles: Mutex::default(), news: Notify::new() });
        let (client, subject) = (link.context.client(), link.names.status_subject(node));
        let say = Say { client, subject, node: node.to_owned(), key, run };
        let hearing = (shared.clone(), say.clone());
        let hear = async move {
            let (shared, say) = hearing;
            while let Some(message) = work.next().await {
                // What the coordinator has not signed for this node, or is of another run, is no work.
                let Some(work) =
                    say.key.open_work(&say.node, &message.payload).and_then(|bytes| Work::decode(bytes, &say.run).ok())
                else {
                    continue;
                };
                let mut piles = shared.piles();
                if piles.waiting.len() < WAITING && !piles.waiting.contains(&work) {
                    piles.waiting.push_back(work);
                    shared.news.notify_one();
                }
            }
        };
        let living = (shared.clone(), say.clone());
        let live = async move {
            let (shared, say) = living;
            loop {
                say.status(shared.status(longest)).await;
                tokio::time::sleep(pause).await;
            }
        };
        Ok(Self { shared, tasks: [link.runtime.spawn(hear), link.runtime.spawn(live)], say })
    }

    /// The first slice that waits, which is being evaluated from now on, if it is of a generation up to `generation`.
    pub fn take(&self, generation: u64) -> Option<Work> {
        let mut piles = self.shared.piles();
        let place = piles.waiting.iter().position(|work| work.generation <= generation)?;
        let work = piles.waiting.remove(place)?;
        piles.current = Some((work.held(), Instant::now()));
        Some(work)
    }

    /// The slice that was taken is done.
    pub fn done(&self) {
        self.shared.piles().current = None;
    }

    /// Whether work waits for which the worker is not far enough.
    pub fn has_later(&self, generation: u64) -> bool {
        self.shared.piles().waiting.iter().any(|work| work.generation > generation)
    }

    /// Says now what the worker has.
    pub async fn say(&self, longest: Duration) {
        self.say.status(self.shared.status(longest)).await;
    }

    /// Says that the worker goes.
    pub async fn leave(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.say.status(Status { leaving: true, held: Vec::new() }).await;
        let _ = self.say.client.flush().await;
    }

    /// Waits for work, `limit` at most.
    pub async fn wait(&self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.shared.news.notified()).await;
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
