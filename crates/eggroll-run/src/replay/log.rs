//! An existing log: read as a whole, record after record.

use super::record::{Check, Content, FORMAT, Header, HeaderError, Record, Recorded};
use crate::digest::{hex, parameter_digest};
use crate::error::{Error, SavedError};
use burn::module::Module;
use eggroll_train::{EvolutionStrategy, EvolutionStrategyConfig, Fitness, Population, RunningSettings};
use std::fs;
use std::path::Path;

/// A log in memory.
pub(super) struct Log<'a> {
    path: &'a Path,
    bytes: Vec<u8>,
    pub header: Header,
    pub check: Check,
    /// Where the records begin.
    start: usize,
}

impl<'a> Log<'a> {
    pub fn read(path: &'a Path) -> Result<Self, Error> {
        let bytes = fs::read(path).map_err(Error::io(path))?;
        let (header, check, start) = Header::decode(&bytes).map_err(|error| {
            let path = path.to_owned();
            match error {
                HeaderError::NoLog => SavedError::Checkpoint { path, reason: "this is not a replay log".to_owned() },
                HeaderError::Json(reason) => SavedError::Checkpoint { path, reason },
                HeaderError::Format(found) => SavedError::Format { path, found, known: FORMAT },
                HeaderError::Damaged { expected, found } => {
                    SavedError::Checksum { path, expected: hex(&expected), found: hex(&found) }
                }
            }
        })?;
        let (found, known) = (header.noise_stream, header.config.noiser.stream_version());
        if found != known {
            return Err(SavedError::NoiseStream { path: path.to_owned(), found, known }.into());
        }
        Ok(Self { path, bytes, header, check, start })
    }

    /// Whether the header is followed by any record, complete or not.
    pub fn has_records(&self) -> bool {
        self.bytes.len() > self.start
    }

    pub fn records(&self) -> Records<'_> {
        Records { log: self, offset: self.start, generation: self.header.first, settings: RunningSettings::default() }
    }

    /// Refuses a strategy with another configuration or another start.
    pub fn check_strategy(&self, strategy: &EvolutionStrategy) -> Result<(), Error> {
        let text = |config: &EvolutionStrategyConfig| serde_json::to_string(&config.of_updates()).unwrap_or_default();
        let [logged, given] = [&self.header.config, strategy.config()].map(text);
        if logged == given {
            self.check_start(strategy)
        } else {
            Err(SavedError::ReplayConfig { path: self.path.to_owned(), logged, given }.into())
        }
    }

    /// Refuses a strategy with other spreads or another anchor.
    pub fn check_start(&self, strategy: &EvolutionStrategy) -> Result<(), Error> {
        let refuse = |reason: String| Err(SavedError::Start { path: self.path.to_owned(), reason }.into());
        let table = strategy.parameters();
        if let (Some(logged), Some(given)) = (&self.header.spreads, table.spreads()) {
            let pairs = logged.iter().zip(given).zip(table.entries());
            if let Some(((logged, given), entry)) = pairs.into_iter().find(|((a, b), _)| a != b) {
                let path = &entry.path;
                return refuse(format!(
                    "the spread of \"{path}\" is {logged:?} in the log, {given:?} in this strategy"
                ));
            }
        }
        let digest = |anchor: Option<&str>| anchor.unwrap_or("none").to_owned();
        let [logged, given] = [self.header.anchor.as_deref(), strategy.anchor_digest()].map(digest);
        match logged == given {
            true => Ok(()),
            false => refuse(format!("the decay's anchor has the digest {logged} in the log, {given} in this strategy")),
        }
    }

    /// Rebuilds the model; `fitness` turns each record into the generation's fitness.
    pub fn replay<M: Module>(
        &self,
        strategy: EvolutionStrategy,
        mut model: M,
        until: Option<u64>,
        mut fitness: impl FnMut(&M, &Population, Recorded) -> Result<Fitness, Error>,
    ) -> Result<(EvolutionStrategy, M), Error> {
        self.check_model(&strategy, &model)?;
        let strategy = self.replay_steps(strategy, until, |strategy, population, scores| {
            let fitness = fitness(&model, &population, scores)?;
            strategy.tell(&mut model, population, fitness)?;
            Ok(())
        })?;
        Ok((strategy, model))
    }

    /// If the strategy is at its beginning, refuses another model than the log's first one.
    pub fn check_model<M: Module>(&self, strategy: &EvolutionStrategy, model: &M) -> Result<(), Error> {
        if strategy.generation() != self.header.first {
            return Ok(());
        }
        let (expected, found) = (&self.header.model, parameter_digest(model));
        if *expected != found {
            let difference = format!("the first model has the digest {expected} in the log, the given one {found}");
            return Err(SavedError::OtherModel { path: self.path.to_owned(), difference }.into());
        }
        let [logged, given] =
            [self.header.masters.clone(), strategy.master_digest()].map(|it| it.unwrap_or("none".to_owned()));
        if logged != given {
            let reason =
                format!("the f32 master weights have the digest {logged} in the log, {given} in this strategy");
            return Err(SavedError::Start { path: self.path.to_owned(), reason }.into());
        }
        Ok(())
    }

    /// Calls `step` with every record from the strategy's generation on.
    pub fn replay_steps(
        &self,
        mut strategy: EvolutionStrategy,
        until: Option<u64>,
        mut step: impl FnMut(&mut EvolutionStrategy, Population, Recorded) -> Result<(), Error>,
    ) -> Result<EvolutionStrategy, Error> {
        let mut records = self.records();
        records.skip_until(strategy.generation())?;
        let reached = strategy.generation();
        while until.is_none_or(|until| strategy.generation() < until) {
            match (records.next()?, until) {
                (Some(scores), _) => {
                    strategy.set_settings(records.settings)?;
                    let population = strategy.ask();
                    step(&mut strategy, population, scores)?;
                }
                (None, Some(until)) => return Err(records.out_of_range(reached, until)),
                (None, None) => break,
            }
        }
        match until {
            Some(until) if until < reached => Err(records.out_of_range(reached, until)),
            _ => Ok(strategy),
        }
    }
}

/// The records of a log, read one after the other.
pub(super) struct Records<'a> {
    log: &'a Log<'a>,
    pub offset: usize,
    /// Generation of the next record.
    pub generation: u64,
    /// Settings that were changed while the strategy ran, as of the last generation read.
    pub settings: RunningSettings,
}

impl Records<'_> {
    /// The scores of the next generation; `None` at the end, or at a record that was cut off.
    pub fn next(&mut self) -> Result<Option<Recorded>, Error> {
        let Log { bytes, check, .. } = self.log;
        let (mut offset, mut settings) = (self.offset, self.settings);
        let mut record = Record::decode(&bytes[offset..], check);
        while let Some(Record { generation, content: Content::Settings(set), len }) = &record
            && *generation == self.generation
        {
            (offset, settings) = (offset + len, *set);
            record = Record::decode(&bytes[offset..], check);
        }
        let rest = &bytes[offset..];
        match record {
            Some(Record { generation, content: Content::Scores(scores), len }) if generation == self.generation => {
                (self.offset, self.settings) = (offset + len, settings);
                self.generation += 1;
                Ok(Some(scores))
            }
            _ if Record::any_from(self.generation, rest, check) => {
                let (path, generation) = (self.log.path.to_owned(), self.generation);
                Err(SavedError::ReplayRecord { path, generation, offset }.into())
            }
            _ => Ok(None),
        }
    }

    /// Skips the records before `generation`.
    pub fn skip_until(&mut self, generation: u64) -> Result<(), Error> {
        while self.generation < generation {
            if self.next()?.is_none() {
                break;
            }
        }
        if self.generation == generation { Ok(()) } else { Err(self.out_of_range(self.log.header.first, generation)) }
    }

    fn out_of_range(&mut self, first: u64, asked: u64) -> Error {
        while let Ok(Some(_)) = self.next() {}
        SavedError::ReplayRange { path: self.log.path.to_owned(), first, last: self.generation, asked }.into()
    }
}
