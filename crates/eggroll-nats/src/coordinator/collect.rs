//! Collects the scores of a generation: offers its slices, and takes, compares and judges what workers say.

use super::Coordinator;
use crate::error::NatsError;
use crate::evaluation::{caught, score_slice};
use crate::messages::{Message, Scores, Work, encode};
use crate::notice::{Lasting, Notice};
use eggroll_run::Error;
use eggroll_run::distribution::Score;
use eggroll_train::Population;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};

/// How often a waiting coordinator checks its clocks.
const TICK: Duration = Duration::from_millis(100);
/// Failures of one slice after which the coordinator evaluates it itself.
const FAILURES: u32 = 3;

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
    /// Has all slices evaluated.
    pub(super) fn collect(
        &mut self,
        population: &Population,
        digest: Option<&String>,
        score: Score<'_>,
    ) -> Result<Scores, Error> {
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
