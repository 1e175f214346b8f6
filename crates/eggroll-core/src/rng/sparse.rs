//! Places of sparse noise in a matrix, from Philox words.
//!
//! # The stream
//!
//! The sparse noise of one `(seed, parameter, generation, pair)` in a matrix `[d_input, d_output]` has `max(d_input, d_output)`
//! entries ([`count`]), drawn with replacement. The value of entry `j` is element `j` of the pair's ordinary stream
//! ([`super::normal`], [`super::rademacher`]). Its position comes from blocks at counters with bit 27 of word 3 set, two entries
//! from a block:
//!
//! `row = ⌊w·d_input / 2³²⌋`, `column = ⌊w'·d_output / 2³²⌋`, words `2·(j mod 2)` and the next of block `⌊j/2⌋`.
//!
//! All places are equally likely up to `max(d_input, d_output)/2³²`. Values of entries that meet are added.
//! Places belong to the version of the distribution that values are drawn from: whoever changes them raises that of all distributions.

use crate::rng::key::NoiseKey;
use crate::rng::philox::philox4x32;

/// Marks, above the parameter's index, the counters of places.
pub(crate) const SPARSE: u32 = 8 << 24;

/// Entries of the sparse noise of a matrix `[d_input, d_output]`: as many as its longer side.
pub fn count([d_input, d_output]: [usize; 2]) -> usize {
    d_input.max(d_output)
}

/// Row and column of every entry of one pair's noise in a matrix of this shape.
///
/// # Example
///
/// ```
/// use eggroll_core::{NoiseKey, rng::sparse::places};
///
/// let places: Vec<[usize; 2]> = places(NoiseKey::new(1, 0, 0), 7, [5, 3]).collect();
/// assert_eq!(places.len(), 5);
/// assert!(places.iter().all(|[row, column]| *row < 5 && *column < 3));
/// ```
///
/// # Panics
///
/// Panics if a side is 2³¹ or longer.
pub fn places(key: NoiseKey, pair: u32, shape: [usize; 2]) -> impl Iterator<Item = [usize; 2]> {
    assert!(shape.iter().all(|side| *side < 1 << 31), "a matrix {shape:?} is too large for sparse noise");
    let count = count(shape);
    let blocks = (0..count.div_ceil(2) as u32).map(move |block| {
        let [c0, c1, c2, c3] = key.counter(block, pair);
        philox4x32([c0, c1, c2, c3 | SPARSE], key.words())
    });
    let place = move |row: u32, column: u32| {
        [(row, shape[0]), (column, shape[1])].map(|(word, side)| ((u64::from(word) * side as u64) >> 32) as usize)
    };
    blocks.flat_map(move |[w0, w1, w2, w3]| [place(w0, w1), place(w2, w3)]).take(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::reference::sparse_place;

    #[test]
    fn places_are_where_the_stream_says() {
        let key = NoiseKey::new(0x1234_5678_9abc, 5, 7);
        for shape in [[1, 1], [7, 3], [4, 300], [129, 128]] {
            let found: Vec<_> = places(key, 11, shape).collect();
            let expected: Vec<_> = (0..count(shape)).map(|entry| sparse_place(key, 11, entry, shape)).collect();
            assert_eq!(found, expected);
        }
        assert!(!places(key, 11, [7, 3]).eq(places(key, 12, [7, 3])), "canary");
    }

    #[test]
    fn values_are_stable() {
        let found: Vec<_> = places(NoiseKey::new(1, 2, 3), 4, [10, 6]).take(4).collect();
        assert_eq!(found, [[8, 2], [8, 4], [2, 3], [6, 3]]);
    }

    /// 64 places of 4096 · 64 draws: each within five standard deviations of 4096.
    #[test]
    fn places_are_even() {
        let mut counts = [0u32; 64];
        for pair in 0..4096 * 8 {
            for [row, column] in places(NoiseKey::new(3, 1, 4), pair, [8, 8]) {
                counts[row * 8 + column] += 1;
            }
        }
        assert!(counts.iter().all(|count| count.abs_diff(4096) < 318), "{counts:?}");
    }
}
