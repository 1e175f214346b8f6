//! A process that evaluates slices.

use crate::checkpoints;
use crate::config::NatsConfig;
use crate::connection::Connection;
use crate::error::NatsError;
use crate::evaluation::{caught, same_parameters, score_slice, take};
use crate::log::LogReader;
use crate::messages::{Logged, Message, Reply, decode, encode};
use crate::notice::{Lasting, Notice};
use crate::queue::{InHand, Queue};
use crate::run_id::RunId;
use eggroll_core::sync::locked;
use eggroll_run::Error;
use eggroll_run::distribution::{Exchange, RunStart, Score};
use eggroll_train::{Fitness, Population};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// How often a waiting worker asks whether the coordinator is alive.
const TICK: Duration = Duration::from_millis(500);
/// Delay for another worker to take work that this one must not do.
const NOT_MINE: Duration = Duration::from_millis(50);
/// Pause before another look at a log that lags behind some work.
const SOON: Duration = Duration::from_millis(10);
/// How long the log may differ from the coordinator's answer, for example while a cluster copies it.
const COPYING: Duration = Duration::from_secs(3);
/// Most bytes of an error's text in a message.
const TEXT: usize = 1024;

/// Counts of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerReport {
    /// Slices whose scores the coordinator has received.
    pub slices: u64,
    /// Slices at which the score has failed.
    pub failures: u64,
    /// Checkpoints of the server that it has continued from.
    pub checkpoints: u64,
}

/// A process that evaluates slices, reads the log, and makes the same updates as the coordinator.
///
/// If the score fails or panics, the coordinator is told, any worker may try again, and this one continues with other slices.
pub struct Worker {
    link: Connection,
    run: Option<Began>,
    report: Arc<Mutex<WorkerReport>>,
}

struct Began {
    id: RunId,
    log: LogReader,
    /// When the log was made, once it is read.
    log_made: Option<i64>,
    queue: Queue,
    in_hand: Option<InHand>,
    /// The scores of the generation that is due, read already.
    ready: Option<Logged>,
    /// The generation that is due.
    due: u64,
    /// Whether the log continues with a later generation, or this worker has just begun.
    behind: bool,
    /// Whether the server has no later checkpoint.
    looked: bool,
    /// How long no coordinator has answered, and how long the log has differed from its answer.
    silence: Option<Lasting>,
    short: Option<Lasting>,
    /// Whether the log was read again from its beginning for that reason.
    again: bool,
}

impl Began {
    /// Reads the log from its beginning.
    fn read_anew(&mut self) {
        (self.log, self.log_made, self.short) = (LogReader::new(), None, None);
    }
}

impl Worker {
    /// Connects to the server.
    ///
    /// # Errors
    ///
    /// [`NatsError::Setting`], [`NatsError::Connection`], [`NatsError::Patience`].
    ///
    /// # Panics
    ///
    /// Panics inside an asynchronous runtime, as all methods do.
    pub fn connect(config: &NatsConfig) -> Result<Self, NatsError> {
        Ok(Self { link: Connection::new(config)?, run: None, report: Arc::default() })
    }

    /// Its counts, readable while and after it runs.
    pub fn report(&self) -> Arc<Mutex<WorkerReport>> {
        self.report.clone()
    }

    fn began(&mut self) -> (&Connection, &mut Began) {
        (&self.link, self.run.as_mut().expect("a loop begins its exchange"))
    }

    /// Reads the log; returns whether it has the scores of the due generation.
    fn read_log(&mut self) -> Result<bool, NatsError> {
        let (link, run) = self.began();
        if run.ready.is_none() {
            if run.log_made.is_none() {
                run.log_made = Some(link.log()?.made);
            }
            let before = run.log.next;
            run.ready = run.log.read(link, &run.id, run.due)?;
            if run.log.next != before {
                (run.silence, run.short) = (None, None);
            }
        }
        Ok(run.ready.is_some())
    }

    /// Waits for work of the due generation, or for news; holds the work.
    fn wait_for_work(&mut self) -> Result<(), NatsError> {
        let (link, run) = self.began();
        let due = run.due;
        let in_hand = match run.in_hand.take() {
            Some(in_hand) => in_hand,
            None => match run.queue.wait(link, TICK) {
                Some(in_hand) => in_hand,
                None => return self.greet(),
            },
        };
        let mine = in_hand.work.not.as_deref() != Some(&link.config.node);
        match in_hand.work.generation.cmp(&due) {
            std::cmp::Ordering::Equal if mine => {
                run.in_hand = Some(in_hand);
                return Ok(());
            }
            std::cmp::Ordering::Equal => in_hand.give_back(link, NOT_MINE),
            // From a generation that is over, unless the server has lost its scores.
            std::cmp::Ordering::Less => in_hand.give_back(link, TICK),
            // The log comes first.
            std::cmp::Ordering::Greater => {
                run.in_hand = Some(in_hand);
                std::thread::sleep(SOON);
            }
        }
        self.greet()
    }

    /// Asks whether the coordinator is alive, when there is nothing else to tell it: no wait is endless.
    fn greet(&mut self) -> Result<(), NatsError> {
        self.say(&Message::Hello).map(drop)
    }

    /// Tells the coordinator; returns whether it has answered.
    fn say(&mut self, message: &Message) -> Result<bool, NatsError> {
        let (link, run) = self.began();
        let config = &link.config;
        let subject = link.names.result(&config.node);
        let asked = async {
            tokio::time::timeout(link.answer(), link.client.request(subject, encode(message, &run.id).into()))
                .await
                .ok()?
                .ok()
        };
        let answer = link.runtime.block_on(asked);
        let Some(Reply { log_made, log_end, generation }) = answer.and_then(|answer| decode(&answer.payload, &run.id))
        else {
            let silence = run.silence.get_or_insert_with(|| Lasting::new(config.notice_every));
            if silence.since() >= config.patience {
                let (run_name, patience, generation) = (config.run.clone(), config.patience, run.due);
                return Err(NatsError::NoCoordinator { run: run_name, patience, generation });
            }
            if silence.is_due() {
                link.notify().tell(&Notice::Coordinator { since: silence.since() });
            }
            std::thread::sleep(NOT_MINE);
            return Ok(false);
        };
        run.silence = None;
        if run.log_made.is_some_and(|made| made != log_made) {
            run.read_anew();
            return Ok(true);
        }
        // Acknowledged records cannot be read, or records that were read are gone.
        let (read, is_ahead) = (run.log.next - 1, run.due > generation);
        if read == log_end && !is_ahead {
            (run.short, run.again) = (None, false);
        } else if run.short.get_or_insert_with(|| Lasting::new(COPYING)).is_due() {
            if is_ahead || run.again {
                let (expected, found) = (read.max(log_end), read.min(log_end));
                return Err(NatsError::LogLost { generation: run.due, expected, found });
            }
            // The coordinator may have begun it anew.
            run.read_anew();
            run.again = true;
        }
        Ok(true)
    }

    /// Evaluates the held slice, and tells the coordinator the result.
    fn work(
        &mut self,
        population: &Population,
        digest: &dyn Fn() -> String,
        score: Score<'_>,
    ) -> Result<(), NatsError> {
        let (link, run) = self.began();
        let Some(in_hand) = run.in_hand.take_if(|in_hand| in_hand.work.generation == population.generation()) else {
            return Ok(());
        };
        let (work, limit) = (&in_hand.work, link.message_bytes());
        let (generation, slice) = (work.generation, work.slice);
        if work.settings != population.settings().into() {
            return Err(NatsError::Settings { generation });
        }
        same_parameters(generation, work.digest.as_ref(), digest)?;
        let end = u64::from(work.first) + u64::from(work.members);
        let pairs = work.first.is_multiple_of(2) && work.members.is_multiple_of(2) && work.members > 0;
        if !pairs || end > population.count() as u64 {
            in_hand.done(link);
            return Ok(());
        }
        let scored = caught(|| Ok(score_slice(population, work, score)?.fitting(work.members, limit)?));
        let message = match scored {
            Ok(scores) => Message::Scores { generation, slice, scores },
            Err(mut error) => {
                error.retain(|c| !c.is_control());
                error.truncate(error.floor_char_boundary(TEXT));
                Message::Failed { generation, slice, error }
            }
        };
        // Until the coordinator has received it, or no longer needs it.
        while !self.say(&message)? {
            if !matches!(self.read_log(), Ok(false)) || self.link.config.is_stopped() {
                break;
            }
        }
        in_hand.done(&self.link);
        let mut report = locked(&self.report);
        match message {
            Message::Failed { .. } => report.failures += 1,
            _ => report.slices += 1,
        }
        Ok(())
    }
}

impl Exchange for Worker {
    fn leads(&self) -> bool {
        false
    }

    fn begin(&mut self, start: &RunStart<'_>) -> Result<(), Error> {
        let id = RunId::of(&self.link.config, start);
        self.link.find_log(&id)?;
        self.run = Some(Began {
            id,
            log: LogReader::new(),
            log_made: None,
            queue: Queue::open(&self.link, id),
            in_hand: None,
            ready: None,
            due: start.generation,
            behind: true,
            looked: false,
            silence: None,
            short: None,
            again: false,
        });
        Ok(())
    }

    fn later_checkpoint(&mut self, generation: u64) -> Result<Option<TempDir>, Error> {
        let (link, run) = self.began();
        if !std::mem::take(&mut run.behind) {
            return Ok(None);
        }
        let found = checkpoints::download(link, generation)?;
        run.looked = found.is_none();
        let Some((generation, folder)) = found else { return Ok(None) };
        run.read_anew();
        (run.ready, run.due) = (None, generation);
        locked(&self.report).checkpoints += 1;
        Ok(Some(folder))
    }

    fn evaluate(
        &mut self,
        population: &Population,
        digest: &dyn Fn() -> String,
        score: Score<'_>,
    ) -> Result<Option<Fitness>, Error> {
        let generation = population.generation();
        let run = self.began().1;
        assert_eq!(run.due, generation, "a loop asks for every generation, in order");
        loop {
            match self.read_log() {
                Ok(true) => break,
                Ok(false) if self.began().1.log.ends_before(generation) => return Ok(None),
                Ok(false) => {}
                // A checkpoint may help.
                Err(NatsError::Gap { .. }) if !self.began().1.looked => {
                    self.began().1.behind = true;
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            }
            if self.link.config.is_stopped() {
                return Err(NatsError::Stopped { generation }.into());
            }
            self.wait_for_work()?;
            self.work(population, digest, &mut *score)?;
        }
        let run = self.began().1;
        (run.due, run.looked) = (generation + 1, false);
        let logged = run.ready.take().expect("was read");
        take(population, logged, digest, score).map(Some)
    }

    /// Waits until the next generation begins, or the run is over.
    fn any_stops(&mut self, this: bool) -> Result<bool, Error> {
        loop {
            if this || self.link.config.is_stopped() {
                return Ok(true);
            }
            match self.read_log() {
                Ok(true) => return Ok(false),
                Ok(false) => {}
                // A checkpoint may help.
                Err(NatsError::Gap { .. }) => {
                    self.began().1.behind = true;
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
            let run = self.began().1;
            if run.log.ends_before(run.due) {
                return Ok(true);
            }
            if run.behind || run.in_hand.is_some() {
                return Ok(false);
            }
            self.wait_for_work()?;
        }
    }

    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Another worker gets its slices.
    fn fail(&mut self) {}
}
