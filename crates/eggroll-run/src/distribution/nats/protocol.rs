//! The messages of a run, for those who write their own nodes.
//!
//! ```text
//! sealed  = message, seal
//! seal    = the coordinator's signature: 64 bytes, or a worker's MAC: 16 bytes
//! message = version: u8, kind: u8, run: 8 bytes, the fields of its kind, check: 8 bytes
//! ```
//!
//! | who | kind | fields | subject |
//! |---|---|---|---|
//! | coordinator | work | generation: u64, slice, first, members, attempt: u32, digest | `eggroll.RUN.work.NODE` |
//! | coordinator | told | life: u64, number: u64, part: u32, parts: u32, scores | `eggroll.RUN.fitness` |
//! | coordinator | end | life: u64, number: u64, generation: u64 | `eggroll.RUN.fitness` |
//! | coordinator | checkpoint | see [`Manifest`] | `eggroll.RUN.checkpoint.latest` |
//! | worker | result | slice: u32, attempt: u32, digest, scores | `eggroll.RUN.result.NODE` |
//! | worker | failed | generation: u64, slice: u32, attempt: u32, error | `eggroll.RUN.result.NODE` |
//! | worker | status | leaving: u8, held: u8, for each generation: u64, slice: u32, attempt: u32 | `eggroll.RUN.status.NODE` |
//!
//! ```text
//! digest  = 0: u8, or 1: u8 and 64 hexadecimal digits
//! scores  = kind: u8, count: u32, generation: u64, values
//! error   = length: u16, UTF-8
//! ```
//!
//! All numbers are little-endian. A check is the first eight bytes of a SHA-256 of all that stands before it. Scores are as in a
//! [`ReplayLog`](crate::ReplayLog): f32, i32, or signs of pairs, five trits to a byte. Bytes are read as a message only if the message is
//! written as these bytes. The signature of work also covers the name of its node, which is not sent. Seals are made and opened by [`CoordinatorKey`](super::CoordinatorKey) and [`WorkerKey`](super::WorkerKey).

pub use super::run_id::RunId;
use crate::replay::Recorded;
use eggroll_train::Fitness;
pub use status::{Failed, Held, Status};

mod fields;
mod manifest;
mod status;

pub use fields::Undecodable;
use fields::{END, FieldReader, RESULT, TOLD, WORK, head, open, put_digest, sealed, with_scores};
pub use manifest::Manifest;
pub(super) use manifest::is_plain;

/// Bytes of a message without its scores, and more.
pub(super) const ENVELOPE: usize = 256;

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
    /// Which slice and offer it is.
    pub fn held(&self) -> Held {
        Held { generation: self.generation, slice: self.slice, attempt: self.attempt }
    }

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
        let read = |fields: &mut FieldReader| {
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

    /// Which slice and offer it answers.
    pub fn held(&self) -> Held {
        Held { generation: self.generation, slice: self.slice, attempt: self.attempt }
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
        let read = |fields: &mut FieldReader| {
            let [slice, attempt] = [fields.word()?, fields.word()?];
            let digest = fields.digest()?;
            let (generation, scores) = fields.scores(bytes)?;
            Some(Self { generation, slice, attempt, digest, scores })
        };
        let result = read(&mut open(bytes, RESULT, run)?).ok_or(Undecodable::Garbage)?;
        if result.encode(run) == bytes { Ok(result) } else { Err(Undecodable::Garbage) }
    }
}

/// Which coordinator has told something, and when: what it tells once more by another hand is known by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// A number that no other process has drawn.
    pub life: u64,
    /// How much this process has told before.
    pub number: u64,
}

/// What the coordinator publishes for all.
#[derive(Clone, Debug)]
pub enum Told {
    /// A part of the fitness of a generation.
    Part(ToldPart),
    /// The run is over.
    End {
        /// Its last generation, and one: what was an end once is none when the run has been continued.
        generation: u64,
    },
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

impl ToldPart {
    /// A part with the scores of a result.
    pub fn new(generation: u64, part: u32, parts: u32, result: &SliceResult) -> Self {
        Self { generation, part, parts, scores: result.scores.clone() }
    }
}

impl Told {
    /// The message.
    pub fn encode(&self, run: &RunId, origin: Origin) -> Vec<u8> {
        let begin = |kind| [&head(kind, run)[..], &origin.life.to_le_bytes(), &origin.number.to_le_bytes()].concat();
        match self {
            Self::End { generation } => sealed([&begin(END)[..], &generation.to_le_bytes()].concat()),
            Self::Part(part) => {
                let mut bytes = begin(TOLD);
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
    pub fn decode(bytes: &[u8], run: &RunId) -> Result<(Self, Origin), Undecodable> {
        let origin = |fields: &mut FieldReader| Some(Origin { life: fields.long()?, number: fields.long()? });
        let read = |fields: &mut FieldReader| {
            let (origin, part, parts) = (origin(fields)?, fields.word()?, fields.word()?);
            let (generation, scores) = fields.scores(bytes)?;
            Some((Self::Part(ToldPart { generation, part, parts, scores }), origin))
        };
        let told = match open(bytes, END, run) {
            Ok(mut fields) => {
                let origin = origin(&mut fields);
                origin.and_then(|origin| Some((Self::End { generation: fields.long()? }, origin)))
            }
            Err(Undecodable::OtherRun) => return Err(Undecodable::OtherRun),
            Err(Undecodable::Garbage) => read(&mut open(bytes, TOLD, run)?),
        };
        let (told, origin) = told.ok_or(Undecodable::Garbage)?;
        if told.encode(run, origin) == bytes { Ok((told, origin)) } else { Err(Undecodable::Garbage) }
    }
}

#[cfg(test)]
mod tests;
