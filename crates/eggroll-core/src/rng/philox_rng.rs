//! Philox4x32-10 as a generator of the crate `rand`.

use crate::rng::philox::philox4x32;
use rand_core::block::{BlockRng, Generator};
use rand_core::utils::read_words;
use rand_core::{SeedableRng, TryRng};
use std::convert::Infallible;

/// A generator for [`rand`](https://docs.rs/rand) and [`rand_distr`](https://docs.rs/rand_distr), version 0.10 and 0.6: the words of
/// Philox4x32-10 in the order of a counter.
///
/// Word `n` of the stream that begins at the counter `c` under the key `k` is
///
/// ```text
/// w(n) = philox4x32(c + ⌊n / 4⌋, k)[n mod 4]
/// ```
///
/// where `c` counts in 128 bits, its first word the lowest. A `u64` is two words, the lower half first. Bytes are little-endian words. The
/// period is 2¹³⁰ words. The generator is not for cryptography.
///
/// Words stay as they are in all versions; another stream is *Value-breaking* in the changelog. Distributions belong to `rand` and
/// `rand_distr`: a minor version of these may draw other values from the same words.
///
/// `EpisodeKey::rng` of `eggroll-rl` gives the generator of an episode.
///
/// # Example
///
/// ```
/// use eggroll_core::rng::PhiloxRng;
/// use rand::{RngExt, SeedableRng, seq::SliceRandom};
///
/// let mut rng = PhiloxRng::seed_from_u64(42);
/// let dice = rng.random_range(1..=6);
/// assert!((1..=6).contains(&dice));
///
/// let mut cards = [1, 2, 3, 4];
/// cards.shuffle(&mut rng);
/// ```
///
/// # References
///
/// Salmon, Moraes, Dror & Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC 2011.
#[derive(Clone, Debug)]
pub struct PhiloxRng(BlockRng<Blocks>);

/// The counter of the next block.
#[derive(Clone, Debug)]
struct Blocks {
    counter: u128,
    key: [u32; 2],
}

impl Generator for Blocks {
    type Output = [u32; 4];

    #[inline]
    fn generate(&mut self, block: &mut [u32; 4]) {
        let word = |index: u32| (self.counter >> (32 * index)) as u32;
        *block = philox4x32([word(0), word(1), word(2), word(3)], self.key);
        self.counter = self.counter.wrapping_add(1);
    }
}

impl PhiloxRng {
    /// The stream that begins with `philox4x32(counter, key)`.
    ///
    /// Streams whose counters differ in one of the last three words have no word in common before the 2³⁴th, if their first words are 0.
    /// [`NoiseKey`](crate::NoiseKey) has the counters of noise: under a strategy's seed as the key, set one of the upper four bits of the
    /// last word.
    ///
    /// # Example
    ///
    /// ```
    /// use eggroll_core::rng::{PhiloxRng, philox::philox4x32};
    /// use rand::Rng;
    ///
    /// let mut rng = PhiloxRng::new([0, 7, 3, 1 << 28], [42, 0]);
    /// assert_eq!(rng.next_u32(), philox4x32([0, 7, 3, 1 << 28], [42, 0])[0]);
    /// ```
    #[inline]
    pub fn new(counter: [u32; 4], key: [u32; 2]) -> Self {
        let counter = counter.into_iter().rev().fold(0, |all, word| all << 32 | u128::from(word));
        Self(BlockRng::new(Blocks { counter, key }))
    }
}

/// A seed is little-endian words: two of the key, then four of the counter.
impl SeedableRng for PhiloxRng {
    type Seed = [u8; 24];

    fn from_seed(seed: Self::Seed) -> Self {
        let [k0, k1, c0, c1, c2, c3] = read_words(&seed);
        Self::new([c0, c1, c2, c3], [k0, k1])
    }
}

impl TryRng for PhiloxRng {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.next_word())
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64_from_u32())
    }

    #[inline]
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}
