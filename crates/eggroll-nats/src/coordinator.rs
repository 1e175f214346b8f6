//! The process that offers slices and collects their scores.

use crate::checkpoints::{self, Latest};
use crate::config::NatsConfig;
use crate::connection::{Connection, LogState};
use crate::error::NatsError;
use crate::evaluation::{caught, score_slice, take};
use crate::inbox::Inbox;
use crate::log::{self, LogReader};
use crate::messages::{Logged, Message, Record, Reply, Scores, Work, decode, encode};
use crate::notice::{Lasting, Notice};
use crate::run_id::RunId;
use eggroll_core::sync::locked;
use eggroll_run::Error;
use eggroll_run::distribution::{Exchange, RunStart, Score};
use eggroll_train::{Fitness, Population};
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How often a waiting coordinator checks its clocks.
const TICK: Duration = Duration::from_millis(100);
/// Failures of one slice after which the coordinator evaluates it itself.
const FAILURES: u32 = 3;

/// Counts of a coordinator since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Slices whose scores were taken, by node.
    pub by_node: BTreeMap<String, u64>,
    /// Scores that arrived again.
    pub duplicates: u64,
    /// Slices that were offered again, because nothing came for [`offer_again_after`](NatsConfig::offer_again_after).
    pub offered_again: u64,
    /// Slices that two nodes have evaluated with equal scores, see [`with_audit`](NatsConfig::with_audit).
    pub audited: u64,
    /// Slices that the coordinator has evaluated itself.
    pub evaluated: u64,
    /// Failures that workers have reported.
    pub failed: u64,
    /// Generations whose fitness was on the server, and that were not evaluated again.
    pub recovered: u64,
}

/// The process that trains: it offers every slice to the workers, logs the scores of all members for them, and makes the same update.
///
/// A result is a pure function of the run, the generation and the slice. The parameters follow from the log, and the noise from the generation. So it does
/// not matter which worker evaluates a slice, how often, or in which order results come; the first one counts. Work that the server loses is offered
/// again, and lost records of the log are detected.
pub struct Coordinator {
    link: Connection,
    run: Option<Began>,
    counts: Arc<Mutex<Counts>>,
    /// The log's last place when the last checkpoint was offered; records before it are unnecessary.
    offered: Option<u64>,
    /// The last record that can be read, while joining workers cannot reach this coordinator's generation.
    unreachable: Option<u64>,
    /// Whether that has to be found out: at the start, and after the log was dropped.
    unknown: bool,
    /// Whether the log was dropped: a loop without checkpoints goes on, although no worker can join.
    dropped: bool,
    looked: bool,
}

/// State of a coordinator once its run has begun.
struct Began {
    id: RunId,
    inbox: Inbox,
    /// Reads earlier records, up to this place.
    recorded: Option<(LogReader, u64)>,
    /// The place of the first record that was not dropped after a checkpoint.
    log_first: u64,
    log: LogState,
    /// Number of this coordinator's next record, and a secret of this coordinator.
    records: u64,
    random: RandomState,
    /// The generation after the last that was logged or taken from the log.
    generation: u64,
}

impl Began {
    /// Sets the answer to workers from now on.
    fn stand_at(&self, generation: u64) {
        self.inbox.set(Reply { log_made: self.log.made, log_end: self.log.end, generation });
    }
}

/// A slice of the generation that is being collected.
#[derive(Clone, Debug, Default)]
struct Slot {
    /// The first scores, and their node.
    scores: Option<(String, Scores)>,
    /// Whether a second node has to agree.
    audited: bool,
    complete: bool,
    failures: u32,
}

impl Slot {
    /// The work that completes the slice, if it is not complete: for another node if one has answered.
    fn wants(&self, work: &Work) -> Option<Work> {
        let not = self.scores.as_ref().map(|(node, _)| node.clone());
        (!self.complete).then(|| Work { not, ..work.clone() })
    }
}

impl Coordinator {
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
        Ok(Self {
            link: Connection::new(config)?,
            run: None,
            counts: Arc::default(),
            offered: None,
            unreachable: None,
            unknown: true,
            dropped: false,
            looked: false,
        })
    }

    /// Its counts, readable while and after it runs.
    pub fn counts(&self) -> Arc<Mutex<Counts>> {
        self.counts.clone()
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut locked(&self.counts));
    }

    fn began(&mut self) -> (&Connection, &mut Began) {
        (&self.link, self.run.as_mut().expect("a loop begins its exchange"))
    }

    /// The scores of a generation that were logged before this coordinator started. A log that cannot be read further is dropped: its generations are
    /// evaluated again, to the same bits.
    fn recorded(&mut self, generation: u64) -> Result<Option<Logged>, NatsError> {
        let (link, run) = self.began();
        let Some((reader, last)) = run.recorded.as_mut().filter(|(reader, last)| reader.next <= *last) else {
            return Ok(None);
        };
        let reason = match reader.read(link, &run.id, generation) {
            Ok(None) if reader.next <= *last => format!("record {} cannot be read", reader.next),
            Ok(found) => return Ok(found),
            Err(error @ (NatsError::Gap { .. } | NatsError::Damaged { .. })) => error.to_string(),
            Err(error) => return Err(error),
        };
        run.recorded = None;
        link.notify().tell(&Notice::LogDropped { generation, reason });
        // Purging it could leave servers that disagree on its end.
        link.delete_stream(&link.names.log)?;
        link.create_streams(&run.id)?;
        (run.log_first, run.log) = (1, link.log()?);
        (self.offered, self.unknown, self.dropped) = (None, true, true);
        Ok(None)
    }

    /// Refuses to continue with a log that workers cannot read.
    fn read_back(&mut self, generation: u64) -> Result<(), NatsError> {
        self.check_log(generation)?;
        let (link, run) = self.began();
        let expected = run.log.end;
        for place in run.log_first..=expected {
            let record = link.next(place)?.filter(|record| record.place == place);
            if record.is_none_or(|record| decode::<Record>(&record.payload, &run.id).is_none()) {
                return Err(NatsError::LogLost { generation, expected, found: place - 1 });
            }
        }
        Ok(())
    }

    /// Refuses to continue next to another coordinator, or on a log that has lost records.
    fn check_log(&mut self, generation: u64) -> Result<(), NatsError> {
        let (link, run) = self.began();
        let (expected, found) = (run.log.end, link.log()?.end);
        match found.cmp(&expected) {
            std::cmp::Ordering::Less => Err(NatsError::LogLost { generation, expected, found }),
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => Err(NatsError::SecondCoordinator { generation }),
        }
    }

    fn append(&mut self, record: &Record, generation: u64) -> Result<(), NatsError> {
        let (link, run) = self.began();
        run.records += 1;
        let id = format!("{:016x}.{}", run.random.build_hasher().finish(), run.records);
        match link.append(&id, &encode(record, &run.id), run.log.end)? {
            Some(place) => {
                run.log.end = place;
                run.stand_at(generation);
                Ok(())
            }
            None => {
                self.check_log(generation)?;
                Err(NatsError::SecondCoordinator { generation })
            }
        }
    }

    /// Logs the scores of a generation, in parts that fit messages.
    fn publish(&mut self, generation: u64, logged: &Logged) -> Result<(), NatsError> {
        let all = logged.scores.split(self.link.message_bytes());
        let parts = all.len() as u32;
        let mut digest = logged.digest.clone();
        for (part, scores) in (0..parts).zip(all) {
            let logged = Logged { settings: logged.settings, digest: digest.take(), scores };
            self.append(&Record::Scores { generation, part, parts, logged }, generation)?;
        }
        Ok(())
    }

    /// Has all slices evaluated.
    fn collect(&mut self, population: &Population, digest: Option<&String>, score: Score<'_>) -> Result<Scores, Error> {
        let generation = population.generation();
        self.check_log(generation)?;
        if let Some(found) = self.unreachable {
            return Err(NatsError::LogLost { generation, expected: found + 1, found }.into());
        }
        let works = self.works(population, digest);
        let mut slots = vec![Slot::default(); works.len()];
        for slot in &mut slots {
            slot.audited = self.draw() < self.link.config.audit;
        }
        self.link.purge(&self.link.names.work, None)?;
        let run = self.began().1;
        run.stand_at(generation);
        self.offer(works.iter())?;
        let (mut progress, mut lasting) = (Instant::now(), Lasting::new(self.link.config.notice_every));
        while slots.iter().any(|slot| !slot.complete) {
            if self.link.config.is_stopped() {
                return Err(NatsError::Stopped { generation }.into());
            }
            let messages = self.began().1.inbox.take(TICK);
            for (node, message) in messages {
                if self.hear(&works, &mut slots, population, &mut *score, (node, message))? {
                    (progress, lasting) = (Instant::now(), Lasting::new(self.link.config.notice_every));
                }
            }
            let since = progress.elapsed();
            let waiting = |slot: &Slot| !slot.complete && slot.scores.is_some();
            // If no second worker audits a slice, the coordinator does.
            if since >= self.link.config.ack_wait
                && let Some(index) = slots.iter().position(waiting)
            {
                self.judge(&works[index], &mut slots[index], population, &mut *score, None)?;
            }
            if since >= self.link.config.offer_again_after {
                self.read_back(generation)?;
                let missing: Vec<Work> = works.iter().zip(&slots).filter_map(|(work, slot)| slot.wants(work)).collect();
                self.count(|counts| counts.offered_again += missing.len() as u64);
                self.link.purge(&self.link.names.work, None)?;
                self.offer(missing.iter())?;
                progress = Instant::now();
            }
            if lasting.is_due() {
                let (in_hand, idle) = self.link.workers();
                let missing = slots.iter().filter(|slot| !slot.complete).count();
                self.link.notify().tell(&Notice::Slices { generation, missing, since: lasting.since(), in_hand, idle });
            }
        }
        let scores = slots.into_iter().map(|slot| slot.scores.expect("complete").1).collect();
        Ok(Scores::join(scores)?)
    }

    /// The slices of a population.
    fn works(&self, population: &Population, digest: Option<&String>) -> Vec<Work> {
        let (generation, count, size) = (population.generation(), population.count(), self.link.config.slice_members);
        let work = |(slice, first): (usize, usize)| Work {
            generation,
            slice: slice as u32,
            first: first as u32,
            members: size.min(count - first) as u32,
            settings: population.settings().into(),
            digest: digest.cloned(),
            not: None,
        };
        (0..count).step_by(size).enumerate().map(work).collect()
    }

    fn offer<'a>(&mut self, works: impl Iterator<Item = &'a Work>) -> Result<(), NatsError> {
        let (link, run) = self.began();
        link.offer(&works.map(|work| encode(work, &run.id)).collect::<Vec<_>>())
    }

    /// Takes a message; returns whether it completes a slice.
    fn hear(
        &mut self,
        works: &[Work],
        slots: &mut [Slot],
        population: &Population,
        score: Score<'_>,
        (node, message): (String, Message),
    ) -> Result<bool, Error> {
        let (Message::Scores { generation, slice, .. } | Message::Failed { generation, slice, .. }) = message else {
            return Ok(false);
        };
        let Some((work, slot)) = works.get(slice as usize).zip(slots.get_mut(slice as usize)) else { return Ok(false) };
        // From a generation that is over: late, not wrong.
        if generation != population.generation() {
            return Ok(false);
        }
        match message {
            Message::Failed { error, .. } => self.failed(work, slot, population, score, (node, error)),
            Message::Scores { scores, .. }
                if scores.values.len() as u64 == u64::from(scores.tasks) * u64::from(work.members) =>
            {
                match &slot.scores {
                    None => {
                        self.count(|counts| *counts.by_node.entry(node.clone()).or_default() += 1);
                        slot.complete = !slot.audited;
                        slot.scores = Some((node, scores));
                        self.offer(slot.wants(work).iter())?;
                        Ok(slot.complete)
                    }
                    Some((first, held)) if *held == scores => {
                        let agrees = slot.audited && !slot.complete && *first != node;
                        match agrees {
                            true => self.count(|counts| counts.audited += 1),
                            false => self.count(|counts| counts.duplicates += 1),
                        }
                        slot.complete |= agrees;
                        Ok(agrees)
                    }
                    Some(_) => self.judge(work, slot, population, score, Some((node, scores))).map(|()| true),
                }
            }
            _ => Ok(false),
        }
    }

    /// A slice has failed at a worker: others try, then the coordinator itself.
    fn failed(
        &mut self,
        work: &Work,
        slot: &mut Slot,
        population: &Population,
        score: Score<'_>,
        (node, error): (String, String),
    ) -> Result<bool, Error> {
        let (generation, slice) = (work.generation, work.slice as usize);
        if slot.scores.is_some() {
            return Ok(false);
        }
        self.count(|counts| counts.failed += 1);
        slot.failures += 1;
        self.link.notify().tell(&Notice::Failed { node: node.clone(), generation, slice, error: error.clone() });
        if slot.failures < FAILURES {
            self.offer(std::iter::once(work))?;
            return Ok(false);
        }
        match caught(|| score_slice(population, work, score)) {
            Ok(scores) => {
                let scores = scores.fitting(work.members, self.link.message_bytes())?;
                self.count(|counts| counts.evaluated += 1);
                slot.scores = Some(("coordinator".to_owned(), scores));
                slot.complete = true;
                Ok(true)
            }
            Err(own) => {
                let error = format!("{own}; {node} says: {error}");
                Err(NatsError::SliceFailed { generation, slice, failures: slot.failures, error }.into())
            }
        }
    }

    /// Evaluates a slice here, to compare it with one worker's scores, or with two workers' differing scores.
    fn judge(
        &mut self,
        work: &Work,
        slot: &mut Slot,
        population: &Population,
        score: Score<'_>,
        other: Option<(String, Scores)>,
    ) -> Result<(), Error> {
        let own = score_slice(population, work, score)?;
        self.count(|counts| counts.evaluated += 1);
        for (node, scores) in slot.scores.iter().chain(&other) {
            if *scores != own {
                let (generation, slice) = (work.generation, work.slice as usize);
                let difference = scores.difference(&own);
                return Err(NatsError::WrongScores { node: node.clone(), generation, slice, difference }.into());
            }
        }
        self.count(|counts| counts.audited += 1);
        slot.complete = true;
        Ok(())
    }

    /// A number from 0 to 1 that no worker can predict.
    fn draw(&mut self) -> f64 {
        let run = self.began().1;
        run.records += 1;
        let mut hasher = run.random.build_hasher();
        hasher.write_u64(run.records);
        hasher.finish() as f64 / u64::MAX as f64
    }
}

impl Exchange for Coordinator {
    fn leads(&self) -> bool {
        true
    }

    fn begin(&mut self, start: &RunStart<'_>) -> Result<(), Error> {
        let id = RunId::of(&self.link.config, start);
        self.link.create_streams(&id)?;
        let log = self.link.log()?;
        let logged = log::generations(&self.link, &id)?;
        if logged > start.generation {
            let (first, last) = (start.generation, logged - 1);
            self.link.notify().tell(&Notice::Recorded { first, last });
        }
        let standing = Reply { log_made: log.made, log_end: log.end, generation: start.generation };
        let inbox = Inbox::open(&self.link, id, standing)?;
        let log_first = self.link.next(1)?.map_or(log.end + 1, |first| first.place);
        let recorded = (log.end > 0).then(|| (LogReader::new(), log.end));
        let generation = start.generation;
        let random = RandomState::new();
        self.run = Some(Began { id, inbox, recorded, log_first, log, records: 0, random, generation });
        Ok(())
    }

    fn evaluate(
        &mut self,
        population: &Population,
        digest: &dyn Fn() -> String,
        score: Score<'_>,
    ) -> Result<Option<Fitness>, Error> {
        let generation = population.generation();
        let logged = match self.recorded(generation)? {
            Some(logged) => {
                self.count(|counts| counts.recovered += 1);
                logged
            }
            // The log was dropped: workers may need a checkpoint first.
            None if self.unknown => return Ok(None),
            None => {
                let told = generation.is_multiple_of(self.link.config.digest_every).then(digest);
                let scores = self.collect(population, told.as_ref(), &mut *score)?;
                let logged = Logged { settings: population.settings().into(), digest: told, scores };
                self.publish(generation, &logged)?;
                Logged { digest: None, ..logged } // its own
            }
        };
        let run = self.began().1;
        run.generation = generation + 1;
        run.stand_at(generation + 1);
        take(population, logged, digest, score).map(Some)
    }

    fn any_stops(&mut self, this: bool) -> Result<bool, Error> {
        Ok(this)
    }

    /// The server's checkpoint, for a coordinator that has lost its own.
    fn later_checkpoint(&mut self, generation: u64) -> Result<Option<TempDir>, Error> {
        if std::mem::replace(&mut self.looked, true) {
            return Ok(None);
        }
        let Some((generation, folder)) = checkpoints::download(&self.link, generation)? else { return Ok(None) };
        let run = self.began().1;
        run.generation = generation;
        run.stand_at(generation);
        Ok(Some(folder))
    }

    /// True if the server has lost the scores up to this generation, and has no later checkpoint; checkpoints in the coordinator's own folder
    /// reach further.
    fn wants_checkpoint(&mut self, generation: u64) -> Result<bool, Error> {
        if !std::mem::take(&mut self.unknown) || generation == 0 {
            return Ok(false);
        }
        let latest = checkpoints::readable(&self.link).unwrap_or(0);
        let (link, run) = self.began();
        let mut log = LogReader::new();
        let lost = (latest..generation).find(|due| !matches!(log.read(link, &run.id, *due), Ok(Some(_))));
        let read = log.next - 1;
        self.unreachable = lost.filter(|_| !self.dropped).map(|_| read);
        Ok(lost.is_some())
    }

    /// Puts it on the server, and drops everything older than the previous one.
    fn saved(&mut self, generation: u64, checkpoint: &Path) -> Result<(), Error> {
        if !self.link.config.offer_checkpoints {
            return Ok(());
        }
        let log_end = self.began().1.log.end;
        let before: Option<Latest> = checkpoints::offer(&self.link, generation, checkpoint)?;
        if let Some(before) = before {
            checkpoints::drop_checkpoint(&self.link, &before)?;
        }
        self.unreachable = None;
        if let Some(place) = self.offered.replace(log_end) {
            self.link.purge(&self.link.names.log, Some(place + 1))?;
            self.began().1.log_first = place + 1;
        }
        Ok(())
    }

    /// Tells the workers that the run is over. The streams are kept for workers that come later: [`remove_run`](crate::remove_run) removes
    /// them.
    fn end(&mut self) -> Result<(), Error> {
        if let Some(generation) = self.run.as_ref().map(|run| run.generation) {
            self.append(&Record::End { generation }, generation)?;
        }
        Ok(())
    }

    /// Workers wait for the next coordinator.
    fn fail(&mut self) {}
}
