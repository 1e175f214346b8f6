//! The bytes of a replay log.
//!
//! ```text
//! log    = "eggroll replay log\n", length of the header: u32, header: JSON, check, record …
//! record = kind: u8, count: u32, generation: u64, content, check
//! content = scores, or settings: sigma: f64, learning rate: f64, NaN where the schedule decides
//! ```
//!
//! All numbers are little-endian. A check is the first eight bytes of a SHA-256. It covers the header with its length, or the log's check and
//! the record: a record belongs to one log.

use eggroll_train::{EvolutionStrategyConfig, Fitness, RunningSettings};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::ops::Range;

pub(super) const FORMAT: u32 = 1;

const MAGIC: &[u8] = b"eggroll replay log\n";
/// Kind, number of scores and generation.
const HEAD: usize = 1 + 4 + 8;
/// Bytes that a search for records may always sum up, in addition to eight times the bytes that it searches.
const MOST_SUMMED: usize = 4 << 20;
/// The kind of a record of settings.
const SETTINGS: u8 = 3;
/// Trits in a byte: 3⁵ ≤ 256.
const TRITS: usize = 5;

pub(crate) type Check = [u8; 8];

/// The run of a log.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    pub format: u32,
    pub noise_stream: u32,
    /// First generation of the log.
    pub first: u64,
    /// Digest of the model before that generation.
    pub model: String,
    pub config: EvolutionStrategyConfig,
    /// Spreads that noise is relative to, by parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spreads: Option<Vec<f64>>,
    /// Digest of the anchor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<String>,
    /// Digest of the f32 master weights before that generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masters: Option<String>,
}

/// Why a header cannot be read.
#[derive(Debug, PartialEq)]
pub(super) enum HeaderError {
    /// Another file, or one that is cut off.
    NoLog,
    Damaged {
        expected: Check,
        found: Check,
    },
    Format(u32),
    Json(String),
}

/// The scores of one generation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Recorded {
    Floats(Vec<f32>),
    Integers(Vec<i32>),
    /// `sign(f₊ − f₋)` of every pair: all that matters to integer parameters.
    Signs(Vec<i8>),
}

/// A record with its generation and length.
pub(crate) struct Record {
    pub generation: u64,
    pub content: Content,
    pub len: usize,
}

/// The contents of a record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// The scores of its generation.
    Scores(Recorded),
    /// Settings that were changed while the strategy ran, from its generation on.
    Settings(RunningSettings),
}

/// The first bytes of a SHA-256 over all parts.
pub(crate) fn check(parts: &[&[u8]]) -> Check {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    let digest = hasher.finalize();
    std::array::from_fn(|i| digest[i])
}

impl Header {
    /// The first bytes of a log, and its check.
    pub fn encode(&self) -> serde_json::Result<(Vec<u8>, Check)> {
        let json = serde_json::to_vec(self)?;
        let len = (json.len() as u32).to_le_bytes();
        let check = check(&[&len, &json]);
        Ok(([MAGIC, &len, &json, &check].concat(), check))
    }

    /// Reads the header of a log; also its check and length.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Check, usize), HeaderError> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let rest = bytes.strip_prefix(MAGIC).ok_or(HeaderError::NoLog)?;
        let (len, rest) = rest.split_first_chunk::<4>().ok_or(HeaderError::NoLog)?;
        let json = rest.get(..u32::from_le_bytes(*len) as usize).ok_or(HeaderError::NoLog)?;
        let expected = *rest[json.len()..].first_chunk::<8>().ok_or(HeaderError::NoLog)?;
        let found = check(&[len, json]);
        if found != expected {
            return Err(HeaderError::Damaged { expected, found });
        }
        let refuse = |error: serde_json::Error| HeaderError::Json(error.to_string());
        let Version { format } = serde_json::from_slice(json).map_err(refuse)?;
        if format != FORMAT {
            return Err(HeaderError::Format(format));
        }
        let header = serde_json::from_slice(json).map_err(refuse)?;
        Ok((header, found, MAGIC.len() + len.len() + json.len() + expected.len()))
    }
}

impl Recorded {
    /// All scores of a generation.
    pub fn all(fitness: &Fitness) -> Self {
        match fitness.integers() {
            Some(scores) => Self::Integers(scores.to_vec()),
            None => Self::Floats(fitness.values().to_vec()),
        }
    }

    /// Scores of each member, for this many members.
    pub fn parts(&self, members: usize) -> usize {
        match self {
            Self::Floats(scores) => scores.len() / members,
            Self::Integers(scores) => scores.len() / members,
            Self::Signs(_) => 1,
        }
    }

    /// Whether a fitness of some of the `count` members has their recorded scores, bit for bit. Signs are compared only for all members: the
    /// value of a score that is not finite depends on the others.
    pub fn agrees(&self, fitness: &Fitness, members: &Range<usize>, count: usize) -> bool {
        match (self, fitness.integers()) {
            (Self::Signs(signs), _) => *members == (0..count) && *signs == fitness.pair_signs(count),
            (Self::Integers(scores), Some(found)) => part_of(scores, found, members, count),
            (Self::Floats(scores), None) => part_of(&bits(scores), &bits(fitness.values()), members, count),
            _ => false,
        }
    }

    /// A fitness of this many members that makes the same update, unless it depends on the steps of sequences.
    pub fn into_fitness(self, members: usize) -> Fitness {
        let tasks = self.parts(members);
        let fitness: Fitness = match self {
            Self::Floats(scores) => scores.into(),
            Self::Integers(scores) => scores.into(),
            Self::Signs(signs) => {
                let pair = |sign: i8| [i32::from(sign > 0), i32::from(sign < 0)];
                signs.into_iter().flat_map(pair).collect::<Vec<_>>().into()
            }
        };
        // Others are refused by the update.
        let fits = tasks > 0 && fitness.values().len() == tasks * members;
        if fits { fitness.with_tasks(tasks) } else { fitness }
    }

    /// The record of a generation in the log of that check.
    pub fn encode(&self, log: &Check, generation: u64) -> Vec<u8> {
        let (kind, count, scores): (u8, usize, Vec<u8>) = match self {
            Self::Floats(scores) => (0, scores.len(), scores.iter().flat_map(|score| score.to_le_bytes()).collect()),
            Self::Integers(scores) => (1, scores.len(), scores.iter().flat_map(|score| score.to_le_bytes()).collect()),
            Self::Signs(signs) => (2, signs.len(), signs.chunks(TRITS).map(pack).collect()),
        };
        encode(log, kind, count, generation, &scores)
    }

    fn decode(kind: u8, count: usize, scores: &[u8]) -> Self {
        let words = || scores.as_chunks::<4>().0.iter().copied();
        match kind {
            0 => Self::Floats(words().map(f32::from_le_bytes).collect()),
            1 => Self::Integers(words().map(i32::from_le_bytes).collect()),
            _ => Self::Signs(scores.iter().flat_map(|byte| unpack(*byte)).take(count).collect()),
        }
    }
}

/// The bits of scores, with one pattern for every NaN: processors differ in the NaN of an operation.
fn bits(scores: &[f32]) -> Vec<u32> {
    scores.iter().map(|score| if score.is_nan() { f32::NAN } else { *score }.to_bits()).collect()
}

/// Whether the scores `[parts, members]` of some members equal theirs among all `count`.
fn part_of<T: PartialEq>(all: &[T], some: &[T], members: &Range<usize>, count: usize) -> bool {
    let rows = || all.chunks_exact(count).zip(some.chunks_exact(members.len()));
    let fits = !members.is_empty() && members.end <= count && all.len() * members.len() == some.len() * count;
    fits && rows().all(|(all, some)| all[members.clone()] == *some)
}

/// The record of settings from a generation on, in the log of that check.
pub(super) fn encode_settings(settings: &RunningSettings, log: &Check, generation: u64) -> Vec<u8> {
    let numbers = [settings.sigma, settings.learning_rate].map(|number| number.unwrap_or(f64::NAN).to_le_bytes());
    encode(log, SETTINGS, numbers.len(), generation, numbers.as_flattened())
}

fn decode_settings(content: &[u8]) -> RunningSettings {
    let number = |index: usize| {
        let number = f64::from_le_bytes(std::array::from_fn(|byte| content[8 * index + byte]));
        (!number.is_nan()).then_some(number)
    };
    RunningSettings { sigma: number(0), learning_rate: number(1) }
}

fn encode(log: &Check, kind: u8, count: usize, generation: u64, content: &[u8]) -> Vec<u8> {
    let head = [&[kind][..], &(count as u32).to_le_bytes(), &generation.to_le_bytes()].concat();
    let check = check(&[log, &head, content]);
    [&head[..], content, &check].concat()
}

impl Record {
    /// The record that `bytes` begin with, in the log of that check; `None` if there is none, or it is damaged.
    pub fn decode(bytes: &[u8], log: &Check) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(HEAD)?;
        let (kind, count, generation) = parse_head(head.first_chunk()?);
        let (content, rest) = rest.split_at_checked(content_len(kind, count)?)?;
        let expected = rest.first_chunk::<8>()?;
        if check(&[log, head, content]) != *expected {
            return None;
        }
        let len = HEAD + content.len() + expected.len();
        let content = match kind {
            SETTINGS => Content::Settings(decode_settings(content)),
            _ => Content::Scores(Recorded::decode(kind, count, content)),
        };
        Some(Self { generation, content, len })
    }

    /// Whether a record of `generation` or a later one begins anywhere in `bytes`. Also true if too many positions look like one
    /// to check all checksums in linear time: a cut-off record never looks like that.
    pub fn any_from(generation: u64, bytes: &[u8], log: &Check) -> bool {
        // No more records than bytes: most positions are ruled out without a checksum.
        let possible = generation..generation.saturating_add(bytes.len() as u64);
        let mut summed = 0; // bytes of checksums so far
        let most = MOST_SUMMED + 8 * bytes.len();
        (0..bytes.len()).any(|start| {
            let bytes = &bytes[start..];
            let Some((kind, count, found)) = bytes.first_chunk().map(parse_head) else { return false };
            let len = content_len(kind, count).filter(|len| *len > 0 && *len < bytes.len());
            let Some(len) = len.filter(|_| possible.contains(&found)) else { return false };
            summed += HEAD + len;
            summed > most || Self::decode(bytes, log).is_some()
        })
    }
}

/// Bytes of a content of `count` numbers of a kind, if there is such a kind.
fn content_len(kind: u8, count: usize) -> Option<usize> {
    match kind {
        SETTINGS if count == 2 => Some(16),
        0 | 1 => count.checked_mul(4),
        2 => Some(count.div_ceil(TRITS)),
        _ => None,
    }
}

/// Kind, number of scores and generation.
fn parse_head(head: &[u8; HEAD]) -> (u8, usize, u64) {
    let [kind, count @ .., _, _, _, _, _, _, _, _] = *head;
    let generation = std::array::from_fn(|i| head[HEAD - 8 + i]);
    (kind, u32::from_le_bytes(count) as usize, u64::from_le_bytes(generation))
}

/// Up to five signs as digits 0, 1, 2 of a number to base 3.
fn pack(signs: &[i8]) -> u8 {
    signs.iter().rev().fold(0, |number, sign| 3 * number + sign.cast_unsigned().wrapping_add(1))
}

fn unpack(byte: u8) -> [i8; TRITS] {
    let mut rest = byte;
    [(); TRITS].map(|()| {
        let sign = (rest % 3).cast_signed() - 1;
        rest /= 3;
        sign
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LOG: Check = *b"thechecK";

    fn recorded(population: usize) -> impl Strategy<Value = Recorded> {
        let floats = proptest::collection::vec(any::<u32>().prop_map(f32::from_bits), population);
        prop_oneof![
            floats.prop_map(Recorded::Floats),
            proptest::collection::vec(any::<i32>(), population).prop_map(Recorded::Integers),
            proptest::collection::vec(-1i8..=1, population / 2).prop_map(Recorded::Signs),
        ]
    }

    proptest! {
        /// NaN and its payload included: compared as bytes.
        #[test]
        fn records_come_back(scores in (1usize..40).prop_flat_map(|pairs| recorded(2 * pairs)), generation: u64) {
            let bytes = scores.encode(&LOG, generation);
            let record = Record::decode(&bytes, &LOG).expect("whole");
            prop_assert_eq!((record.generation, record.len), (generation, bytes.len()));
            let Content::Scores(read) = record.content else { panic!("scores") };
            prop_assert_eq!(read.encode(&LOG, generation), bytes.clone());
            prop_assert!(Record::decode(&bytes[..bytes.len() - 1], &LOG).is_none(), "cut off");
            prop_assert!(Record::decode(&bytes, b"thecheck").is_none(), "of another log");
        }

        #[test]
        fn no_flipped_bit_goes_unnoticed(scores in recorded(12), bit: prop::sample::Index) {
            let mut bytes = scores.encode(&LOG, 77);
            let bit = bit.index(8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Record::decode(&bytes, &LOG).is_none());
        }
    }

    #[test]
    fn settings_come_back() {
        for (sigma, learning_rate) in [(None, None), (Some(0.25), None), (None, Some(1e-3)), (Some(1e-30), Some(0.0))] {
            let settings = RunningSettings { sigma, learning_rate };
            let bytes = encode_settings(&settings, &LOG, 7);
            let record = Record::decode(&bytes, &LOG).expect("whole");
            assert_eq!((record.content, record.len), (Content::Settings(settings), bytes.len()));
            assert!(Record::any_from(7, &[&[1; 9][..], &bytes].concat(), &LOG), "found behind other bytes");
        }
    }

    /// Bytes in which a head begins every 13 bytes, each of a record that reaches to the end.
    fn heads(bytes: usize, generation: u64) -> Vec<u8> {
        let left = |at: usize| ((bytes - at).saturating_sub(HEAD + 8) / 4) as u32;
        let head = |at: usize| [&[0][..], &left(at).to_le_bytes(), &generation.to_le_bytes()].concat();
        (0..bytes).step_by(HEAD).flat_map(head).collect()
    }

    /// A search of all of them would sum up 8 MB, 600,000 times.
    #[test]
    fn bytes_that_look_like_records_everywhere_are_judged_at_once() {
        let start = std::time::Instant::now();
        let bytes = heads(8 << 20, 5);
        assert!(Record::any_from(5, &bytes, &LOG), "refused: no record that is cut off looks so");
        assert!(!Record::any_from(1 << 40, &bytes, &LOG), "canary: of other generations");
        assert!(start.elapsed().as_secs_f64() < 5.0, "{:?}", start.elapsed());
    }

    #[test]
    fn records_are_found_in_bytes_that_look_like_some() {
        let record = Recorded::Floats(vec![0.5; 8]).encode(&LOG, 7);
        let found = |before: Vec<u8>| Record::any_from(5, &[&before[..], &record].concat(), &LOG);
        assert!(found(Vec::new()) && found(vec![0; 1 << 20]) && found(heads(1 << 10, 5)));
        assert!(!Record::any_from(0, &[0; 8 << 20], &LOG), "zeros, as after a power failure");
    }

    #[test]
    fn five_signs_to_a_byte() {
        assert_eq!([pack(&[1; 5]), pack(&[-1; 5]), pack(&[0, 0, 0, 0, 0]), pack(&[1, -1])], [242, 0, 121, 2]);
        assert_eq!(Recorded::Signs(vec![1; 128]).encode(&LOG, 0).len(), HEAD + 26 + 8);
    }
}
