//! int8 noise from Philox words: normal values in fixed point, 16 is one standard deviation.
//!
//! # The stream
//!
//! A byte `b` of a Philox word gives the value `⌊16·Φ⁻¹((2b' + 257)/512)⌋`, `b' = b mod 128`, negative if `b ≥ 128`. These are
//! the quantiles of the normal distribution at the middles of 256 equal shares, truncated towards zero like entries of a noise
//! table. The values are symmetric, so their mean is exactly 0; the standard deviation is 15.58 and the largest value 46.
//!
//! Sixteen consecutive blocks make a group of 256 elements, stored word-major: element `e` is byte `e mod 4` of word
//! `e mod 256 / 64` of block `16·(e / 256) + e mod 64 / 4`. The counter is that of [`super::normal`].

use crate::rng::key::NoiseKey;
use crate::rng::philox::{philox_blocks, philox4x32};
use crate::simd::{Kernel, Simd, dispatch};

/// Elements that sixteen Philox blocks make.
pub const GROUP: usize = 256;
const BLOCKS: usize = 16;

/// Version of the stream: a change of any value is a new version.
pub const STREAM_VERSION: u32 = 1;

/// The value of every byte.
pub const QUANTILES: [i8; 256] = quantiles();

/// `⌊16·Φ⁻¹((2b + 257)/512)⌋` for `b` in `0..128`.
const HALF: [i8; 128] = [
    0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 6,
    6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 9, 9, 9, 9, 9, 10, 10, 10, 10, 10, 11, 11, 11, 11, 11, 12, 12,
    12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15, 15, 15, 16, 16, 16, 16, 17, 17, 17, 17, 18, 18, 18, 19, 19, 19,
    20, 20, 20, 21, 21, 22, 22, 22, 23, 23, 24, 24, 25, 25, 26, 27, 27, 28, 29, 30, 31, 32, 33, 35, 37, 40, 46,
];

const fn quantiles() -> [i8; 256] {
    let mut values = [0; 256];
    let mut b = 0;
    while b < 128 {
        values[b] = HALF[b];
        values[b + 128] = -HALF[b];
        b += 1;
    }
    values
}

/// Writes the first elements of the stream of `key` and `pair`.
///
/// # Example
///
/// ```
/// use eggroll_core::{NoiseKey, rng::integer::fill_integers};
///
/// let mut noise = [0i8; 1000];
/// fill_integers(NoiseKey::new(1, 0, 0), 3, &mut noise);
/// assert!(noise.iter().all(|value| value.abs() <= 46));
/// ```
pub fn fill_integers(key: NoiseKey, pair: u32, out: &mut [i8]) {
    dispatch(FillIntegers { key, pair, out })
}

struct FillIntegers<'a> {
    key: NoiseKey,
    pair: u32,
    out: &'a mut [i8],
}

impl Kernel for FillIntegers<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let mut words = [0u32; GROUP / 4];
        for (group, out) in self.out.chunks_mut(GROUP).enumerate() {
            let mut step = 0;
            while step < BLOCKS {
                let counter = self.key.counter((BLOCKS * group + step) as u32, self.pair);
                // SAFETY: the instruction set is there by the trait's contract; each store stays within its sixteen words.
                unsafe {
                    for (word, values) in philox_blocks::<S>(counter, self.key.words()).into_iter().enumerate() {
                        let target = words.as_mut_ptr().add(word * BLOCKS + step);
                        S::store(target.cast(), S::from_bits(values));
                    }
                }
                step += S::LANES;
            }
            for (value, word) in out.chunks_mut(4).zip(&words) {
                for (value, byte) in value.iter_mut().zip(word.to_le_bytes()) {
                    *value = QUANTILES[usize::from(byte)];
                }
            }
        }
    }
}

/// Where the noise of `pair` begins in a noise table: an index below 2³⁰ that the reference's hash gives,
///
/// `(h ⊕ k) mod 2³⁰`, `h = ((q ≫ 16) ⊕ q)·0x45d9f3b`,
///
/// where the key word `k` is the first Philox word of the counter `(0, 0, generation, 2²⁴ + parameter)`.
pub fn table_index(key: NoiseKey, pair: u32) -> u32 {
    let [_, _, c2, c3] = key.counter(0, 0);
    let word = philox4x32([0, 0, c2, c3 | super::TABLE_ADDRESS], key.words())[0];
    fold_in(word, pair) & ((1 << 30) - 1)
}

/// The reference's hash of a pair into a key word.
pub fn fold_in(word: u32, pair: u32) -> u32 {
    (((pair >> 16) ^ pair).wrapping_mul(0x045d_9f3b)) ^ word
}

/// A noise table: `trunc(16·n)` for the Gaussian values of its own stream, clipped to ±127.
pub fn table(seed: u64, len: usize) -> Vec<i8> {
    let mut normals = vec![0.0; len];
    super::normal::fill_normals(NoiseKey::table(seed), 0, 0, &mut normals);
    normals.iter().map(|n| crate::arithmetic::integer::clip((16.0 * n) as i32)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::integer::inverse_normal;

    #[test]
    fn quantiles_are_their_formula() {
        for (b, value) in HALF.iter().enumerate() {
            assert_eq!(i32::from(*value), (16.0 * inverse_normal((2 * b + 257) as f64 / 512.0)) as i32, "{b}");
        }
        assert_eq!(QUANTILES.iter().map(|v| i32::from(*v)).sum::<i32>(), 0);
    }

    #[test]
    fn elements_are_where_the_stream_says() {
        let key = NoiseKey::new(0x1234_5678_9abc, 5, 7);
        let mut noise = vec![0; 1000];
        fill_integers(key, 11, &mut noise);
        for (e, value) in noise.iter().enumerate() {
            let block = 16 * (e / 256) + e % 64 / 4;
            let words = philox4x32(key.counter(block as u32, 11), key.words());
            let byte = words[e % 256 / 64].to_le_bytes()[e % 4];
            assert_eq!(*value, QUANTILES[usize::from(byte)], "{e}");
        }
    }

    #[test]
    fn values_are_stable() {
        let mut noise = [0; 12];
        fill_integers(NoiseKey::new(1, 2, 3), 4, &mut noise);
        assert_eq!(noise, [-21, -18, -25, 9, -8, 30, -5, -1, -5, 17, 2, 10]);
    }
}
