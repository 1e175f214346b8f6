//! The results of one generation: which slices are there, and what is wrong with what else arrives.
//!
//! Nothing here touches the network.

use super::protocol::{SliceResult, Undecodable, Work};
use super::run_id::RunId;
use super::score_rules::ScoreRules;
use crate::replay::Recorded;
use std::fmt;
use std::ops::Range;

/// Why a result was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rejection {
    /// Longer than any result of a slice.
    TooLarge,
    /// No message, or a damaged one.
    Garbage,
    /// Of another run.
    OtherRun,
    /// Of a generation that is over: late, not wrong.
    Stale,
    /// Of a generation that has not begun: from before the server has lost something, or wrong.
    Early,
    /// Of a slice that there is not.
    UnknownSlice,
    /// Of more or fewer members than the slice has.
    WrongLength,
    /// Of another kind than the run's scores.
    WrongKind,
    /// NaN or infinite, where the coordinator's own evaluation is not.
    NotFinite,
    /// Made with other parameters than the coordinator's.
    WrongDigest,
    /// Other bits than the coordinator's own evaluation.
    Disagreement,
    /// Without the MAC of the node that it says it is of.
    Forged,
    /// A failure of a slice that does not fail at the coordinator.
    Failed,
    /// From a worker that was wrong too often, or of more nodes than are told apart.
    Ignored,
}

impl Rejection {
    /// Whether it speaks against the worker.
    pub fn is_a_strike(self) -> bool {
        !matches!(self, Self::Stale | Self::Early | Self::Forged | Self::Ignored)
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "too_large",
            Self::Garbage => "garbage",
            Self::OtherRun => "other_run",
            Self::Stale => "stale",
            Self::Early => "early",
            Self::UnknownSlice => "unknown_slice",
            Self::WrongLength => "wrong_length",
            Self::WrongKind => "wrong_kind",
            Self::NotFinite => "not_finite",
            Self::WrongDigest => "wrong_digest",
            Self::Disagreement => "disagreement",
            Self::Forged => "forged",
            Self::Failed => "failed",
            Self::Ignored => "ignored",
        })
    }
}

/// What a result is worth.
#[derive(Clone, Debug)]
pub(super) enum Judgement {
    /// The first of its slice: taken.
    Accepted(usize),
    /// The same as was taken.
    Duplicate,
    /// Not to be taken on trust: somebody has to evaluate the slice to tell.
    Doubtful(usize, Recorded),
    /// Nothing.
    Rejected(Rejection),
}

/// What results have to be like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub run: RunId,
    pub population: usize,
    pub slice_members: usize,
    pub scores: ScoreRules,
    /// Bytes of a result.
    pub limit: usize,
    /// The least and the largest score that are taken without a look.
    pub plausible: (f64, f64),
}

impl Rules {
    pub fn slices(&self) -> usize {
        self.population.div_ceil(self.slice_members)
    }

    /// Scores of a generation.
    pub fn scores_of_all(&self) -> usize {
        self.population.saturating_mul(self.scores.tasks)
    }

    pub fn members(&self, slice: usize) -> Range<usize> {
        let first = slice * self.slice_members;
        first..(first + self.slice_members).min(self.population)
    }
}

/// A slice's scores.
struct SliceScores {
    scores: Recorded,
    /// Whose they are; the coordinator's own if nobody's.
    worker: Option<String>,
}

struct Slot {
    held: Option<SliceScores>,
    /// Number of the next offer.
    attempt: u32,
    /// Whether it is to be offered.
    wanted: bool,
}

/// The slices of a generation.
pub(super) struct Collection {
    rules: Rules,
    generation: u64,
    digest: Option<String>,
    slots: Vec<Slot>,
    missing: usize,
}

impl Collection {
    /// Nothing yet of a generation, in which results carry `digest` if there is one. Offers are numbered from `attempt` on: other
    /// numbers for every life of a coordinator, because the server remembers messages by them.
    pub fn new(rules: Rules, generation: u64, digest: Option<String>, attempt: u32) -> Self {
        let missing = rules.slices();
        let slots = (0..missing).map(|_| Slot { held: None, attempt, wanted: false }).collect();
        Self { rules, generation, digest, slots, missing }
    }

    /// Judges what a worker has sent, and takes it if it is good.
    pub fn judge(&mut self, worker: &str, bytes: &[u8]) -> Judgement {
        let (slice, result) = match self.examine(bytes) {
            Ok(examined) => examined,
            Err(reason) => return Judgement::Rejected(reason),
        };
        let (least, largest) = self.rules.plausible;
        let fits = |score: f64| (least..=largest).contains(&score);
        let plausible = match &result.scores {
            Recorded::Floats(scores) => scores.iter().all(|score| fits(f64::from(*score))),
            Recorded::Integers(scores) => scores.iter().all(|score| fits(f64::from(*score))),
            Recorded::Signs(_) => true,
        };
        match &self.slots[slice].held {
            Some(held) if same_bits(&held.scores, &result.scores) => Judgement::Duplicate,
            // The coordinator has looked itself.
            Some(SliceScores { worker: None, .. }) => Judgement::Rejected(Rejection::Disagreement),
            Some(_) => Judgement::Doubtful(slice, result.scores),
            None if !plausible => Judgement::Doubtful(slice, result.scores),
            None => {
                self.slots[slice].held = Some(SliceScores { scores: result.scores, worker: Some(worker.to_owned()) });
                self.missing -= 1;
                Judgement::Accepted(slice)
            }
        }
    }

    /// The slice of a result, and the result, if it has the form of one that is due.
    fn examine(&mut self, bytes: &[u8]) -> Result<(usize, SliceResult), Rejection> {
        let rules = self.rules;
        if bytes.len() > rules.limit {
            return Err(Rejection::TooLarge);
        }
        let result = SliceResult::decode(bytes, &rules.run).map_err(|error| match error {
            Undecodable::Garbage => Rejection::Garbage,
            Undecodable::OtherRun => Rejection::OtherRun,
        })?;
        if result.generation < self.generation {
            return Err(Rejection::Stale);
        }
        if result.generation > self.generation {
            return Err(Rejection::Early);
        }
        let slice = result.slice as usize;
        let slot = self.slots.get_mut(slice).ok_or(Rejection::UnknownSlice)?;
        let wrong = if result.digest != self.digest {
            Some(Rejection::WrongDigest)
        } else if !rules.scores.allows(&result.scores) {
            Some(Rejection::WrongKind)
        } else if !rules.scores.fits(&result.scores, rules.members(slice).len()) {
            Some(Rejection::WrongLength)
        } else {
            None
        };
        match wrong {
            None => Ok((slice, result)),
            Some(reason) => {
                // Its worker has answered, and the slice would be lost.
                slot.wanted |= slot.held.is_none();
                Err(reason)
            }
        }
    }

    /// Sets a slice's scores to what the coordinator has evaluated; returns those that were held, and whose they were.
    pub fn settle(&mut self, slice: usize, scores: Recorded) -> Option<(String, Recorded)> {
        let slot = &mut self.slots[slice];
        slot.wanted = false;
        self.missing -= usize::from(slot.held.is_none());
        let before = slot.held.replace(SliceScores { scores, worker: None })?;
        Some((before.worker?, before.scores))
    }

    /// Gives up what a worker has sent.
    pub fn forget(&mut self, worker: &str) {
        for slot in &mut self.slots {
            if slot.held.as_ref().is_some_and(|held| held.worker.as_deref() == Some(worker)) {
                slot.held = None;
                slot.wanted = true;
                self.missing += 1;
            }
        }
    }

    /// All slices that are missing are to be offered.
    pub fn want_missing(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.wanted = slot.held.is_none());
    }

    /// A slice is to be offered, if it is missing.
    pub fn want(&mut self, slice: usize) {
        if let Some(slot) = self.slots.get_mut(slice) {
            slot.wanted |= slot.held.is_none();
        }
    }

    pub fn is_missing(&self, slice: usize) -> bool {
        self.slots.get(slice).is_some_and(|slot| slot.held.is_none())
    }

    /// The slices that are missing.
    pub fn missing_slices(&self) -> Vec<usize> {
        (0..self.slots.len()).filter(|slice| self.is_missing(*slice)).collect()
    }

    /// The offers that are to be made now.
    pub fn offers(&mut self) -> Vec<Work> {
        let (rules, generation, digest) = (self.rules, self.generation, &self.digest);
        let offer = |(slice, slot): (usize, &mut Slot)| {
            std::mem::take(&mut slot.wanted).then(|| {
                let members = rules.members(slice);
                let attempt = slot.attempt;
                slot.attempt = attempt.wrapping_add(1);
                Work {
                    generation,
                    slice: slice as u32,
                    first: members.start as u32,
                    members: members.len() as u32,
                    attempt,
                    digest: digest.clone(),
                }
            })
        };
        self.slots.iter_mut().enumerate().filter_map(offer).collect()
    }

    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub fn missing(&self) -> usize {
        self.missing
    }

    /// The scores of all members.
    ///
    /// # Panics
    ///
    /// Panics if a slice is missing.
    pub fn join(self) -> Recorded {
        let held = |slot: Slot| slot.held.expect("all slices are there").scores;
        join(self.slots.into_iter().map(held).collect(), self.rules.scores.tasks)
    }
}

/// Whether two scores are the same: all NaN are.
pub(super) fn same_bits(a: &Recorded, b: &Recorded) -> bool {
    match (a, b) {
        (Recorded::Floats(a), Recorded::Floats(b)) => {
            let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            a.len() == b.len() && a.iter().zip(b).all(same)
        }
        _ => a == b,
    }
}

/// The scores of several parts, `[tasks, members of the part]` each, as those of all: signs only if all are.
pub(super) fn join(parts: Vec<Recorded>, tasks: usize) -> Recorded {
    if parts.iter().all(|part| matches!(part, Recorded::Signs(_))) {
        let signs = |part| if let Recorded::Signs(signs) = part { signs } else { Vec::new() };
        return Recorded::Signs(parts.into_iter().flat_map(signs).collect());
    }
    let parts: Vec<_> = parts.into_iter().map(Recorded::into_fitness).collect();
    match parts.iter().map(|part| part.integers()).collect::<Option<Vec<_>>>() {
        Some(integers) => Recorded::Integers(rows(&integers, tasks)),
        None => Recorded::Floats(rows(&parts.iter().map(|part| part.values()).collect::<Vec<_>>(), tasks)),
    }
}

fn rows<T: Copy>(parts: &[&[T]], tasks: usize) -> Vec<T> {
    let row = |task: usize| {
        parts.iter().flat_map(move |part| {
            let members = part.len() / tasks;
            part[task * members..(task + 1) * members].iter().copied()
        })
    };
    (0..tasks).flat_map(row).collect() // [tasks, members]
}

/// Scores in parts that take at most `bytes` each.
pub(super) fn split(scores: &Recorded, bytes: usize) -> Vec<Recorded> {
    let numbers = (bytes / 4).max(1);
    match scores {
        Recorded::Floats(scores) => scores.chunks(numbers).map(|part| Recorded::Floats(part.to_vec())).collect(),
        Recorded::Integers(scores) => scores.chunks(numbers).map(|part| Recorded::Integers(part.to_vec())).collect(),
        // Five signs to a byte.
        Recorded::Signs(signs) => signs.chunks(5 * bytes.max(1)).map(|part| Recorded::Signs(part.to_vec())).collect(),
    }
}

#[cfg(test)]
mod tests;
