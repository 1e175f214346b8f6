//! The messages of a run, for those who write nodes of their own.
//!
//! ```text
//! message = version: u8, kind: u8, run: 8 bytes, the fields of its kind, check: 8 bytes
//! work    = generation: u64, slice: u32, first: u32, members: u32, attempt: u32, digest
//! result  = slice: u32, attempt: u32, digest, scores
//! told    = part: u32, parts: u32, scores
//! end     = nothing
//! digest  = 0: u8, or 1: u8 and 64 hexadecimal digits
//! scores  = kind: u8, count: u32, generation: u64, values
//! ```
//!
//! All numbers are little-endian. A check is the first eight bytes of a SHA-256 of all that stands before it. Scores are as in a
//! [`ReplayLog`](crate::ReplayLog): f32, i32, or signs of pairs, five trits to a byte. Bytes are read as a message only if the message is
//! written as these bytes.

use super::config::NatsConfig;
use super::error::NatsError;
pub use super::run_id::RunId;
use crate::replay::{Record, Recorded, check};
use eggroll_core::{ParameterKind, Role};
use eggroll_train::{EvolutionStrategy, Fitness};

const VERSION: u8 = 1;
const WORK: u8 = 0;
const RESULT: u8 = 1;
const TOLD: u8 = 2;
const END: u8 = 3;
/// Hexadecimal digits of a digest.
const DIGEST: usize = 64;
/// Bytes of a message beside its scores, and more.
pub(super) const ENVELOPE: usize = 256;
/// Integers up to this size are what they are in f32 too.
const EXACT: u32 = 1 << 24;

/// Why bytes are no message of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecodable {
    /// They are none of this version, or damaged.
    Garbage,
    /// They belong to another run.
    OtherRun,
}

/// A slice to evaluate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The generation.
    pub generation: u64,
    /// Which slice of it.
    pub slice: u32,
    /// Its first member.
    pub first: u32,
    /// Its members.
    pub members: u32,
    /// Which offer of the slice this is.
    pub attempt: u32,
    /// Digest of the coordinator's parameters, in generations where it is due.
    pub digest: Option<String>,
}

impl Work {
    /// The message.
    pub fn encode(&self, run: &RunId) -> Vec<u8> {
        let mut bytes = head(WORK, run);
        bytes.extend(self.generation.to_le_bytes());
        [self.slice, self.first, self.members, self.attempt].iter().for_each(|field| bytes.extend(field.to_le_bytes()));
        put_digest(&mut bytes, self.digest.as_deref());
        sealed(bytes)
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// [`Undecodable`].
    pub fn decode(bytes: &[u8], run: &RunId) -> Result<Self, Undecodable> {
        let read = |fields: &mut Fields| {
            let generation = fields.long()?;
            let [slice, first, members, attempt] = [fields.word()?, fields.word()?, fields.word()?, fields.word()?];
            Some(Self { generation, slice, first, members, attempt, digest: fields.digest()? })
        };
        let work = read(&mut open(bytes, WORK, run)?).ok_or(Undecodable::Garbage)?;
        if work.encode(run) == bytes { Ok(work) } else { Err(Undecodable::Garbage) }
    }
}

/// The fitness of a slice.
#[derive(Clone, Debug)]
pub struct SliceResult {
    /// The generation.
    pub generation: u64,
    /// Which slice of it.
    pub slice: u32,
    /// The offer that it answers.
    pub attempt: u32,
    /// Digest of the worker's parameters, in generations where it is due.
    pub digest: Option<String>,
    pub(super) scores: Recorded,
}

impl SliceResult {
    /// The answer to `work`, scores as they are.
    pub fn new(work: &Work, digest: Option<String>, fitness: &Fitness) -> Self {
        Self::of_scores(work, digest, Recorded::all(fitness))
    }

    pub(super) fn of_scores(work: &Work, digest: Option<String>, scores: Recorded) -> Self {
        Self { generation: work.generation, slice: work.slice, attempt: work.attempt, digest, scores }
    }

    /// The message.
    pub fn encode(&self, run: &RunId) -> Vec<u8> {
        let mut bytes = head(RESULT, run);
        [self.slice, self.attempt].iter().for_each(|field| bytes.extend(field.to_le_bytes()));
        put_digest(&mut bytes, self.digest.as_deref());
        with_scores(bytes, &self.scores, self.generation)
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// [`Undecodable`].
    pub fn decode(bytes: &[u8], run: &RunId) -> Result<Self, Undecodable> {
        let read = |fields: &mut Fields| {
            let [slice, attempt] = [fields.word()?, fields.word()?];
            let digest = fields.digest()?;
            let Record { generation, scores, .. } = fields.scores(bytes)?;
            Some(Self { generation, slice, attempt, digest, scores })
        };
        let result = read(&mut open(bytes, RESULT, run)?).ok_or(Undecodable::Garbage)?;
        if result.encode(run) == bytes { Ok(result) } else { Err(Undecodable::Garbage) }
    }
}

/// What the coordinator publishes for all.
#[derive(Clone, Debug)]
pub enum Told {
    /// A part of the fitness of a generation.
    Part(ToldPart),
    /// The run is over.
    End,
}

/// A part of the fitness of a generation, in messages that the server allows.
#[derive(Clone, Debug)]
pub struct ToldPart {
    /// The generation.
    pub generation: u64,
    /// Which part, from 0.
    pub part: u32,
    /// How many there are.
    pub parts: u32,
    pub(super) scores: Recorded,
}

impl Told {
    /// The message.
    pub fn encode(&self, run: &RunId) -> Vec<u8> {
        match self {
            Self::End => sealed(head(END, run)),
            Self::Part(part) => {
                let mut bytes = head(TOLD, run);
                [part.part, part.parts].iter().for_each(|field| bytes.extend(field.to_le_bytes()));
                with_scores(bytes, &part.scores, part.generation)
            }
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// [`Undecodable`].
    pub fn decode(bytes: &[u8], run: &RunId) -> Result<Self, Undecodable> {
        let read = |fields: &mut Fields| {
            let [part, parts] = [fields.word()?, fields.word()?];
            let Record { generation, scores, .. } = fields.scores(bytes)?;
            Some(Self::Part(ToldPart { generation, part, parts, scores }))
        };
        let told = match open(bytes, END, run) {
            Ok(_) => Self::End,
            Err(Undecodable::OtherRun) => return Err(Undecodable::OtherRun),
            Err(Undecodable::Garbage) => read(&mut open(bytes, TOLD, run)?).ok_or(Undecodable::Garbage)?,
        };
        if told.encode(run) == bytes { Ok(told) } else { Err(Undecodable::Garbage) }
    }
}

/// What scores of a run are like: which of them a result may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoreRules {
    pub questions: usize,
    integers: bool,
    /// Whether signs of pairs make the same update.
    signs: bool,
}

impl ScoreRules {
    pub fn of(config: &NatsConfig, strategy: &EvolutionStrategy) -> Self {
        let mut trained = strategy.parameters().entries().iter().filter(|entry| entry.role != Role::Frozen);
        let of_integers = trained.all(|entry| entry.kind == ParameterKind::Integer);
        let signs = config.pair_signs && config.integers && config.questions == 1 && of_integers;
        Self { questions: config.questions, integers: config.integers, signs }
    }

    /// The scores of `members` as they are sent: as signs if those make the same update. Scores that f32 would round are sent as they are, because
    /// whether all are equal is asked in f32.
    pub fn pack(&self, fitness: &Fitness, members: usize) -> Result<Recorded, NatsError> {
        let found = (fitness.integers().is_some(), fitness.values().len());
        let expected = (self.integers, members * self.questions);
        if found != expected {
            let text = |(integers, count)| format!("{count} {} scores", if integers { "integer" } else { "float" });
            return Err(NatsError::Score { found: text(found), expected: text(expected) });
        }
        Ok(match fitness.integers() {
            Some(scores) if self.signs && scores.iter().all(|score| score.unsigned_abs() <= EXACT) => {
                Recorded::Signs(fitness.pair_signs(members))
            }
            _ => Recorded::all(fitness),
        })
    }

    /// Whether a result may have scores of this kind.
    pub fn allows(&self, scores: &Recorded) -> bool {
        match scores {
            Recorded::Floats(_) => !self.integers,
            Recorded::Integers(_) => self.integers,
            Recorded::Signs(_) => self.signs,
        }
    }

    /// Whether these are scores of so many members.
    pub fn fits(&self, scores: &Recorded, members: usize) -> bool {
        match scores {
            Recorded::Signs(signs) => signs.len() == members / 2,
            other => other.len() == members * self.questions,
        }
    }
}

/// Bytes that are read field by field.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// A digest, if there is one.
    fn digest(&mut self) -> Option<Option<String>> {
        match self.take()? {
            [0] => Some(None),
            [1] => {
                let digits = self.take::<DIGEST>()?;
                let is_digit = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
                digits.iter().all(is_digit).then(|| Some(String::from_utf8_lossy(&digits).into_owned()))
            }
            _ => None,
        }
    }

    /// The scores that `message` ends with.
    fn scores(&mut self, message: &[u8]) -> Option<Record> {
        let before = &message[..message.len() - self.0.len()];
        Record::decode(self.0, &check(&[before])).filter(|record| record.len == self.0.len())
    }
}

fn head(kind: u8, run: &RunId) -> Vec<u8> {
    [&[VERSION, kind][..], &run.0].concat()
}

/// The fields of a message of that kind and run.
fn open<'a>(bytes: &'a [u8], kind: u8, run: &RunId) -> Result<Fields<'a>, Undecodable> {
    match bytes.split_at_checked(2 + run.0.len()) {
        Some(([VERSION, found, id @ ..], _)) if *found == kind && id != run.0 => Err(Undecodable::OtherRun),
        Some(([VERSION, found, ..], fields)) if *found == kind => Ok(Fields(fields)),
        _ => Err(Undecodable::Garbage),
    }
}

fn put_digest(bytes: &mut Vec<u8>, digest: Option<&str>) {
    bytes.push(u8::from(digest.is_some()));
    bytes.extend(digest.unwrap_or_default().as_bytes());
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let check = check(&[&bytes]);
    bytes.extend(check);
    bytes
}

/// A record of the scores, whose check covers what stands before it.
fn with_scores(mut bytes: Vec<u8>, scores: &Recorded, generation: u64) -> Vec<u8> {
    let record = scores.encode(&check(&[&bytes]), generation);
    bytes.extend(record);
    bytes
}

#[cfg(test)]
mod tests;
