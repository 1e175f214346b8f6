//! The process that trains: its log, its checkpoints, and where the run stands.

mod collect;

use crate::checkpoints::{self, Latest};
use crate::config::NatsConfig;
use crate::connection::{Connection, LogState};
use crate::error::NatsError;
use crate::evaluation::take;
use crate::inbox::Inbox;
use crate::log::{self, LogReader};
use crate::messages::{Logged, Record, Reply, decode, encode};
use crate::notice::Notice;
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
use tempfile::TempDir;

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
    /// Why that has to be found out, until it is.
    doubt: Option<Doubt>,
    looked: bool,
}

/// Why it is not known whether joining workers can reach the coordinator's generation.
#[derive(Clone, Copy, PartialEq)]
enum Doubt {
    /// It has just begun.
    Start,
    /// The log was dropped. A loop without checkpoints continues, although no worker can join.
    LogDropped,
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
            doubt: Some(Doubt::Start),
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
        (self.offered, self.doubt) = (None, Some(Doubt::LogDropped));
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
            None if self.doubt.is_some() => return Ok(None),
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
        let Some(doubt) = self.doubt.take().filter(|_| generation > 0) else { return Ok(false) };
        let latest = checkpoints::readable(&self.link).unwrap_or(0);
        let (link, run) = self.began();
        let mut log = LogReader::new();
        let lost = (latest..generation).find(|due| !matches!(log.read(link, &run.id, *due), Ok(Some(_))));
        let read = log.next - 1;
        self.unreachable = lost.filter(|_| doubt == Doubt::Start).map(|_| read);
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
