//! A process that evaluates slices.

use super::checkpoint;
use super::config::NatsConfig;
use super::connection::{Connection, Failure};
use super::error::NatsError;
use super::protocol::{ScoreRules, SliceResult, Told, Work};
use super::replica::Replica;
use super::run_id::RunId;
use super::stream_reader::StreamReader;
use crate::error::Error;
use crate::steps::UserError;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::{AckKind, Message};
use burn::module::Module;
use burn::train::Interrupter;
use eggroll_train::{EvolutionStrategy, Fitness, Population};
use futures_util::StreamExt;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// How often a worker that waits looks about.
const TICK: Duration = Duration::from_millis(500);
/// How long a request for work waits at the server.
const PULL: Duration = Duration::from_secs(5);
/// Pause before work that was given back is delivered again.
const BACK: Duration = Duration::from_millis(500);
/// Pause after a request for work that failed.
const PAUSE: Duration = Duration::from_millis(200);

/// What a worker has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerReport {
    /// Slices that it has evaluated and published.
    pub slices: u64,
    /// Generations whose update it has made.
    pub generations: u64,
    /// Checkpoints that it has loaded.
    pub checkpoints: u64,
}

/// A process that evaluates slices, see [the module](super).
pub struct Worker {
    link: Connection,
    config: NatsConfig,
    interrupter: Interrupter,
    report: WorkerReport,
}

/// What a worker hears of.
enum Event {
    Fitness(Message),
    Work(Message),
    Nothing,
}

/// Work that is not acknowledged yet.
struct Task {
    message: Message,
    work: Work,
    _heartbeat: Heartbeat,
}

impl Worker {
    /// Connects to the server.
    ///
    /// # Errors
    ///
    /// [`NatsError`].
    ///
    /// # Panics
    ///
    /// Panics inside an asynchronous runtime, as [`run`](Self::run) does.
    pub fn connect(config: NatsConfig) -> Result<Self, NatsError> {
        let link = Connection::connect(&config)?;
        Ok(Self { link, config, interrupter: Interrupter::new(), report: WorkerReport::default() })
    }

    /// Stops between two slices when the interrupter says so.
    pub fn with_interrupter(mut self, interrupter: Interrupter) -> Self {
        self.interrupter = interrupter;
        self
    }

    /// What it has done so far.
    pub fn report(&self) -> WorkerReport {
        self.report
    }

    /// Evaluates slices with `score` until the run is over or this worker is interrupted, and returns strategy and model as they are then.
    /// Begins with `strategy` and `model`, the first of the run or those of a checkpoint, or with the latest checkpoint in the object
    /// store if that is later. Waits for the run to begin.
    ///
    /// # Errors
    ///
    /// [`NatsError`]; [`NatsError::Training`] with [`Error::User`] if `score` fails, whose slice another worker gets then;
    /// [`NatsError::Diverged`] if the parameters here are not the coordinator's.
    pub fn run<M: Module>(
        &mut self,
        strategy: EvolutionStrategy,
        model: M,
        mut score: impl FnMut(&M, &Population) -> Result<Fitness, UserError>,
    ) -> Result<(EvolutionStrategy, M), NatsError> {
        let run = RunId::of(&self.config, &strategy)?;
        let rules = ScoreRules::of(&self.config, &strategy);
        self.link.find_streams(&self.config, &run)?;
        let workers = self.link.persist("waiting for the consumer of work", async || self.link.workers().await)?;
        let mut replica = Replica::new(strategy, model);
        self.catch_up(&mut replica)?;
        let mut fitness = self.fitness();
        let (mut task, mut pulling): (Option<Task>, Option<JoinHandle<Message>>) = (None, None);
        while !self.interrupter.should_stop() {
            if let Some(due) = task.take_if(|task| task.work.generation <= replica.generation()) {
                // Older work is of a generation that is over.
                match due.work.generation == replica.generation() {
                    true => self.evaluate(&mut replica, &due, &rules, &run, &mut score)?,
                    false => self.check_fitness(&fitness, due.work.generation)?,
                }
                self.link.runtime.block_on(due.message.ack()).ok();
            }
            if task.is_none() && pulling.is_none() {
                pulling = Some(self.link.runtime.spawn(pull(workers.clone())));
            }
            match self.link.runtime.block_on(event(&mut fitness, &mut pulling)) {
                Event::Fitness(message) => match Told::decode(&message.payload, &run) {
                    Ok(Told::End) if message.info().is_ok_and(|info| info.pending == 0) => break,
                    Ok(Told::Part(part)) => match replica.assembly.take(part) {
                        Ok(Some(scores)) => {
                            replica.tell(scores)?;
                            self.report.generations += 1;
                        }
                        Ok(None) => {}
                        Err(gap) if !self.catch_up(&mut replica)? => return Err(gap),
                        Err(_) => fitness = self.fitness(),
                    },
                    // An end that was followed by more, or what is none of the coordinator's.
                    _ => {}
                },
                Event::Work(message) => task = self.accept(message, &run, &replica),
                Event::Nothing => {}
            }
        }
        pulling.iter().for_each(JoinHandle::abort);
        if let Some(task) = task {
            self.link.runtime.block_on(task.message.ack_with(AckKind::Nak(None))).ok();
        }
        Ok(replica.into_parts())
    }

    /// The fitness that has been published, from the first that the server has.
    fn fitness(&self) -> StreamReader {
        StreamReader::new(self.link.context.clone(), &self.link.names.fitness, 1)
    }

    /// Refuses to follow a server that has not got any more what was read from it.
    fn check_fitness(&self, fitness: &StreamReader, generation: u64) -> Result<(), NatsError> {
        let last = self.link.wait_for_last(&self.link.names.fitness)?;
        if last + 1 < fitness.position() { Err(NatsError::Lost { generation }) } else { Ok(()) }
    }

    /// Goes on with the latest checkpoint in the object store, if there is a later one than here.
    fn catch_up<M: Module>(&mut self, replica: &mut Replica<M>) -> Result<bool, NatsError> {
        let later = checkpoint::load(&self.link, &self.config, &replica.strategy, replica.model())?;
        let found = later.is_some();
        if let Some((strategy, model)) = later {
            *replica = Replica::new(strategy, model);
            self.report.checkpoints += 1;
        }
        Ok(found)
    }

    /// Takes work, if it can be. What is for replicas that are further goes back to them; what cannot be is dropped, and is offered
    /// again if it was meant.
    fn accept<M: Module>(&self, message: Message, run: &RunId, replica: &Replica<M>) -> Option<Task> {
        let population = replica.strategy.config().population;
        let fits = |work: &Work| {
            let (first, members) = (work.first as usize, work.members as usize);
            let pairs = first.is_multiple_of(2) && members.is_multiple_of(2);
            pairs && (2..=self.config.slice_members).contains(&members) && first + members <= population
        };
        match Work::decode(&message.payload, run).ok().filter(fits) {
            Some(work) if work.generation > replica.generation() + 1 => {
                self.link.runtime.block_on(message.ack_with(AckKind::Nak(Some(BACK)))).ok();
                None
            }
            Some(work) => {
                let heartbeat = Heartbeat::of(&self.link, &message, &self.config);
                Some(Task { message, work, _heartbeat: heartbeat })
            }
            None => {
                self.link.runtime.block_on(message.ack_with(AckKind::Term)).ok();
                None
            }
        }
    }

    /// Evaluates a slice and publishes its fitness.
    fn evaluate<M: Module>(
        &mut self,
        replica: &mut Replica<M>,
        task: &Task,
        rules: &ScoreRules,
        run: &RunId,
        score: &mut impl FnMut(&M, &Population) -> Result<Fitness, UserError>,
    ) -> Result<(), NatsError> {
        let Task { work, message, .. } = task;
        let evaluated = self.scores(replica, work, score);
        let scores = match evaluated.and_then(|fitness| rules.pack(&fitness, work.members as usize)) {
            Ok(scores) => scores,
            Err(error) => {
                self.link.runtime.block_on(message.ack_with(AckKind::Nak(None))).ok();
                return Err(error);
            }
        };
        let digest = work.digest.is_some().then(|| replica.digest());
        let result = SliceResult::of_scores(work, digest, scores).encode(run);
        let subject = self.link.names.result_subject(&self.config.node);
        // With the node in it: whoever publishes nonsense first must not keep out what is right.
        let id = format!("{}.{}.{}.{}", self.config.node, work.generation, work.slice, work.attempt);
        let link = &self.link;
        link.persist("publishing a result", async || {
            link.publish(&subject, &id, &result, None).await.map(drop).map_err(Failure::from)
        })?;
        self.report.slices += 1;
        Ok(())
    }

    /// The fitness of a slice, if the parameters are the coordinator's.
    fn scores<M: Module>(
        &self,
        replica: &mut Replica<M>,
        work: &Work,
        score: &mut impl FnMut(&M, &Population) -> Result<Fitness, UserError>,
    ) -> Result<Fitness, NatsError> {
        if let Some(expected) = &work.digest {
            let found = replica.digest();
            if found != *expected {
                return Err(NatsError::Diverged { generation: work.generation, expected: expected.clone(), found });
            }
        }
        let (first, members) = (work.first as usize, work.members as usize);
        let slice = replica.population().slice(first..first + members);
        Ok(score(replica.model(), &slice).map_err(Error::User)?)
    }
}

/// What comes first: fitness before work.
async fn event(fitness: &mut StreamReader, pulling: &mut Option<JoinHandle<Message>>) -> Event {
    let work = async {
        match pulling {
            Some(handle) => handle.await.ok(),
            None => std::future::pending().await,
        }
    };
    let event = tokio::select! {
        biased;
        message = fitness.next() => return Event::Fitness(message),
        message = work => message.map_or(Event::Nothing, Event::Work),
        () = tokio::time::sleep(TICK) => return Event::Nothing,
    };
    *pulling = None;
    event
}

/// Waits for one message of work, whatever happens to server and connection.
async fn pull(workers: PullConsumer) -> Message {
    loop {
        if let Ok(mut batch) = workers.batch().max_messages(1).expires(PULL).messages().await
            && let Some(Ok(message)) = batch.next().await
        {
            return message;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Signs of life for work, until it is dropped or has taken too long.
struct Heartbeat(JoinHandle<()>);

impl Heartbeat {
    fn of(link: &Connection, message: &Message, config: &NatsConfig) -> Self {
        let (message, end) = (message.clone(), Instant::now() + config.longest_slice);
        let pause = config.ack_wait / 3;
        Self(link.runtime.spawn(async move {
            while Instant::now() < end {
                tokio::time::sleep(pause).await;
                // Without a connection the next one may arrive.
                let _ = message.ack_with(AckKind::Progress).await;
            }
        }))
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.0.abort();
    }
}
