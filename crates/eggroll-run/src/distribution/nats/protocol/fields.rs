//! Bytes of messages, field by field.

use super::super::run_id::RunId;
use crate::replay::{Content, Record, Recorded, check};

const VERSION: u8 = 2;
pub(super) const WORK: u8 = 0;
pub(super) const RESULT: u8 = 1;
pub(super) const TOLD: u8 = 2;
pub(super) const END: u8 = 3;
pub(super) const STATUS: u8 = 4;
pub(super) const FAILED: u8 = 5;
pub(super) const MANIFEST: u8 = 6;
/// Hexadecimal digits of a digest.
const DIGEST: usize = 64;

/// Why bytes are no message of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecodable {
    /// They are none of this version, or damaged.
    Garbage,
    /// They belong to another run.
    OtherRun,
}

/// Bytes that are read field by field.
pub(super) struct FieldReader<'a>(pub &'a [u8]);

impl FieldReader<'_> {
    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    pub fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// A digest, if there is one.
    pub fn digest(&mut self) -> Option<Option<String>> {
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

    /// The scores that `message` ends with, and their generation.
    pub fn scores(&mut self, message: &[u8]) -> Option<(u64, Recorded)> {
        let before = &message[..message.len() - self.0.len()];
        match Record::decode(self.0, &check(&[before])) {
            Some(Record { generation, content: Content::Scores(scores), len }) if len == self.0.len() => {
                Some((generation, scores))
            }
            _ => None,
        }
    }
}

pub(super) fn head(kind: u8, run: &RunId) -> Vec<u8> {
    [&[VERSION, kind][..], &run.0].concat()
}

/// The fields of a message of that kind and run.
pub(super) fn open<'a>(bytes: &'a [u8], kind: u8, run: &RunId) -> Result<FieldReader<'a>, Undecodable> {
    match bytes.split_at_checked(2 + run.0.len()) {
        Some(([VERSION, found, id @ ..], _)) if *found == kind && id != run.0 => Err(Undecodable::OtherRun),
        Some(([VERSION, found, ..], fields)) if *found == kind => Ok(FieldReader(fields)),
        _ => Err(Undecodable::Garbage),
    }
}

pub(super) fn put_digest(bytes: &mut Vec<u8>, digest: Option<&str>) {
    bytes.push(u8::from(digest.is_some()));
    bytes.extend(digest.unwrap_or_default().as_bytes());
}

pub(super) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let check = check(&[&bytes]);
    bytes.extend(check);
    bytes
}

/// A record of the scores, whose check covers what stands before it.
pub(super) fn with_scores(mut bytes: Vec<u8>, scores: &Recorded, generation: u64) -> Vec<u8> {
    let record = scores.encode(&check(&[&bytes]), generation);
    bytes.extend(record);
    bytes
}
