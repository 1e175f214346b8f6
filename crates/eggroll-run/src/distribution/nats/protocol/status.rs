//! What workers say of themselves.

use super::super::run_id::RunId;
use super::fields::{FAILED, FieldReader, STATUS, Undecodable, head, open, sealed};

/// Slices that a status names at most.
const HELD: usize = 16;
/// Bytes of an error's text that travel.
const TEXT: usize = 1024;

/// A slice that a worker has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The generation.
    pub generation: u64,
    /// Which slice of it.
    pub slice: u32,
    /// Which offer of the slice.
    pub attempt: u32,
}

/// A worker's sign of life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Whether it is its last.
    pub leaving: bool,
    /// Slices that it has, at most 16.
    pub held: Vec<Held>,
}

impl Status {
    /// The message.
    pub fn encode(&self, run: &RunId) -> Vec<u8> {
        let held = &self.held[..self.held.len().min(HELD)];
        let mut bytes = head(STATUS, run);
        bytes.extend([u8::from(self.leaving), held.len() as u8]);
        held.iter().for_each(|held| put_held(&mut bytes, held));
        sealed(bytes)
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// [`Undecodable`].
    pub fn decode(bytes: &[u8], run: &RunId) -> Result<Self, Undecodable> {
        let read = |fields: &mut FieldReader| {
            let [leaving, count] = fields.take()?;
            let held = (0..count).map(|_| held(fields)).collect::<Option<_>>()?;
            Some(Self { leaving: leaving != 0, held })
        };
        let status = read(&mut open(bytes, STATUS, run)?).ok_or(Undecodable::Garbage)?;
        if status.encode(run) == bytes { Ok(status) } else { Err(Undecodable::Garbage) }
    }
}

/// A slice whose evaluation has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Which one.
    pub held: Held,
    /// What went wrong.
    pub error: String,
}

impl Failed {
    /// The failure of `held`: the first 1,024 bytes of the error's text, without control characters.
    pub fn new(held: Held, error: &str) -> Self {
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        let mut text: String = error.chars().take(TEXT).map(printable).collect();
        text.truncate(text.floor_char_boundary(TEXT));
        Self { held, error: text }
    }

    /// The message.
    pub fn encode(&self, run: &RunId) -> Vec<u8> {
        let mut bytes = head(FAILED, run);
        put_held(&mut bytes, &self.held);
        bytes.extend((self.error.len() as u16).to_le_bytes());
        bytes.extend(self.error.as_bytes());
        sealed(bytes)
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// [`Undecodable`].
    pub fn decode(bytes: &[u8], run: &RunId) -> Result<Self, Undecodable> {
        let read = |fields: &mut FieldReader| {
            let (held, len) = (held(fields)?, fields.take().map(u16::from_le_bytes)?);
            let text = fields.0.get(..usize::from(len))?;
            Some(Self::new(held, std::str::from_utf8(text).ok()?))
        };
        let failed = read(&mut open(bytes, FAILED, run)?).ok_or(Undecodable::Garbage)?;
        if failed.encode(run) == bytes { Ok(failed) } else { Err(Undecodable::Garbage) }
    }
}

fn put_held(bytes: &mut Vec<u8>, held: &Held) {
    bytes.extend(held.generation.to_le_bytes());
    [held.slice, held.attempt].iter().for_each(|field| bytes.extend(field.to_le_bytes()));
}

fn held(fields: &mut FieldReader) -> Option<Held> {
    Some(Held { generation: fields.long()?, slice: fields.word()?, attempt: fields.word()? })
}
