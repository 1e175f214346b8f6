//! Rademacher noise from Philox words, a bit each: noise of variance 1 that costs a thirty-second of the words of Gaussian values, and no
//! arithmetic.
//!
//! # The stream
//!
//! The signs of one `(seed, parameter, generation, pair)` form a separate sequence, at counters that have bit 26 of word 3
//! set, so that no block makes both signs and Gaussian values. Sixteen consecutive Philox blocks make a group of 2048 elements,
//! stored word-major and, within a word, from the highest bit down. Element `e` is
//!
//! `1 − 2·bit`, bit `31 − e % 512 / 16` of word `e % 2048 / 512` of block `16·(e / 2048) + e % 16`.
//!
//! So sixteen consecutive elements are one bit of sixteen consecutive blocks. In a vector of words, the top bits become the
//! signs of ones; a shift left by one gives the next sixteen. Every instruction set and device gives the same values, and so
//! does the oracle ([`crate::testing::reference::rademacher`]), exactly.

use crate::rng::group::BLOCKS;
use crate::rng::key::{NoiseDistribution, NoiseKey};
use crate::rng::philox::philox_blocks;
use crate::simd::{InstructionSet, Kernel, Simd, dispatch, dispatch_on};

/// Elements that sixteen Philox blocks make: the unit in which the stream is generated.
pub const GROUP: usize = 2048;
/// Elements that one word of each of sixteen blocks makes.
pub(crate) const WORD: usize = 512;
/// Marks, above the parameter's index, the counters of signs.
pub(crate) const SIGNS: u32 = 4 << 24;

/// Version of the stream: a change of any value is a new version, and old checkpoints are refused.
pub const STREAM_VERSION: u32 = 1;

/// Writes elements `start .. start + out.len()` of the stream of `key` and `pair`.
///
/// # Example
///
/// ```
/// use eggroll_core::{NoiseDistribution, NoiseKey, rng::rademacher::fill_signs};
///
/// let key = NoiseKey::new(1, 0, 0).with_distribution(NoiseDistribution::Rademacher);
/// let (mut all, mut tail) = ([0.0; 100], [0.0; 10]);
/// fill_signs(key, 7, 0, &mut all);
/// fill_signs(key, 7, 90, &mut tail);
/// assert_eq!(all[90..], tail);
/// ```
///
/// # Panics
///
/// Panics if the key is one of another distribution, or if the range ends beyond 2³⁹ elements, the length of a stream.
#[track_caller]
pub fn fill_signs(key: NoiseKey, pair: u32, start: usize, out: &mut [f32]) {
    check(key, start, out.len());
    dispatch(FillSigns { key, pair, start, out })
}

/// [`fill_signs`] on a given instruction set: for conformance tests and benches.
///
/// # Panics
///
/// Panics if this processor does not have `set`, and where [`fill_signs`] does.
#[track_caller]
pub fn fill_signs_on(set: InstructionSet, key: NoiseKey, pair: u32, start: usize, out: &mut [f32]) {
    check(key, start, out.len());
    assert!(InstructionSet::available().contains(&set), "this processor has no {set:?}");
    // SAFETY: checked above.
    unsafe { dispatch_on(set, FillSigns { key, pair, start, out }) }
}

#[track_caller]
fn check(key: NoiseKey, start: usize, len: usize) {
    key.check_distribution(NoiseDistribution::Rademacher);
    let end = start.checked_add(len);
    assert!(
        end.is_some_and(|end| end as u64 <= 1 << 39),
        "elements {start} + {len} are beyond the 2^39 elements of a stream of signs"
    );
}

struct FillSigns<'a> {
    key: NoiseKey,
    pair: u32,
    start: usize,
    out: &'a mut [f32],
}

impl Kernel for FillSigns<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { key, pair, mut start, out: mut rest } = self;
        while !rest.is_empty() {
            let skip = start % GROUP;
            let part;
            (part, rest) = rest.split_at_mut(rest.len().min(GROUP - skip));
            // SAFETY: the instruction set is there by the trait's contract.
            let words = unsafe { group_words::<S>(key, pair, start / GROUP) };
            // SAFETY: the same; the part ends inside the group.
            unsafe { write_part::<S>(&words, skip, part) };
            start += part.len();
        }
    }
}

/// Words of a group, one block's word next to the next block's: word `w` of block `i` is at `16·w + i`.
type Words = [u32; 4 * BLOCKS];

/// # Safety
///
/// The processor must have the instruction set `S`.
#[inline(always)]
unsafe fn group_words<S: Simd>(key: NoiseKey, pair: u32, group: usize) -> Words {
    let mut words = [0; 4 * BLOCKS];
    let mut lane = 0;
    while lane < BLOCKS {
        let [block, c1, c2, c3] = key.counter((group * BLOCKS + lane) as u32, pair);
        // SAFETY: the instruction set is there; `lane + LANES ≤ 16`, so the last store ends at word 64.
        unsafe {
            let of_blocks = philox_blocks::<S>([block, c1, c2, c3 | SIGNS], key.words());
            for (w, word) in of_blocks.into_iter().enumerate() {
                S::store(words.as_mut_ptr().add(w * BLOCKS + lane).cast(), S::from_bits(word));
            }
        }
        lane += S::LANES;
    }
    words
}

/// Writes the elements of a group from `skip` on.
///
/// # Safety
///
/// The processor must have the instruction set `S`; the group must have as many elements from `skip` on.
#[inline(always)]
unsafe fn write_part<S: Simd>(words: &Words, skip: usize, mut out: &mut [f32]) {
    let mut at = skip;
    while !out.is_empty() {
        let word = &words[at / WORD * BLOCKS..][..BLOCKS];
        let (first, inside) = (at % WORD / BLOCKS, at % BLOCKS);
        let len = if inside == 0 && out.len() >= BLOCKS {
            let rows = (out.len() / BLOCKS).min(WORD / BLOCKS - first);
            // SAFETY: the instruction set is there; as many rows fit into `out`.
            unsafe { write_rows::<S>(word, first, rows, out.as_mut_ptr()) };
            rows * BLOCKS
        } else {
            let mut row = [0.0; BLOCKS];
            // SAFETY: the instruction set is there; the array holds one row.
            unsafe { write_rows::<S>(word, first, 1, row.as_mut_ptr()) };
            let len = out.len().min(BLOCKS - inside);
            out[..len].copy_from_slice(&row[inside..inside + len]);
            len
        };
        at += len;
        out = &mut out[len..];
    }
}

/// Writes `rows` rows of sixteen signs: bit `31 − first` of each of sixteen words, then the next lower bit, and so on.
///
/// # Safety
///
/// The processor must have the instruction set `S`; `word` must have 16 elements, `out` must hold `16 · rows`, and
/// `first + rows` must not be above 32.
#[inline(always)]
unsafe fn write_rows<S: Simd>(word: &[u32], first: usize, rows: usize, out: *mut f32) {
    let word: [u32; BLOCKS] = std::array::from_fn(|lane| word[lane] << first);
    let mut lane = 0;
    while lane < BLOCKS {
        // SAFETY: by this function's contract; `lane + LANES ≤ 16`.
        unsafe {
            let (top, one) = (S::usplat(1 << 31), S::to_bits(S::splat(1.0)));
            let mut bits = S::to_bits(S::load(word.as_ptr().add(lane).cast()));
            for row in 0..rows {
                S::store(out.add(row * BLOCKS + lane), S::from_bits(S::uor(S::uand(bits, top), one)));
                bits = S::shl::<1>(bits);
            }
        }
        lane += S::LANES;
    }
}
