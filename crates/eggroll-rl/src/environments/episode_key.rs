//! Where an episode's random numbers come from.

use eggroll_core::rng::PhiloxRng;
use eggroll_core::rng::philox::philox4x32;

/// Marks the words of episodes in the counter, so that none is a word of a parameter's noise under the same seed.
const MARK: u32 = 0x4550_4953;
/// Marks the words of generators. A generator whose stream is below 2²⁸ draws no word of an episode, a world or noise of the same seed.
const RNG_MARK: u32 = 0x7261_6e64;
/// The member of a generator that all members share.
const ALL_MEMBERS: u32 = u32::MAX;
/// The block of words that seeds of new episodes are drawn from: the blocks of draws end far below it.
const RESTART: u32 = u32::MAX;

/// The address of an episode: the same key gives the same episode on every backend, chunk and shard.
///
/// A random number is a pure function of the key, the step and the draw: a Philox4x32-10 word at the counter
/// `(draw / 4, step, episode, stream ^ mark)` under the seed. [`rng`](Self::rng) gives a generator of `rand` instead.
///
/// # Example
///
/// ```
/// use eggroll_rl::EpisodeKey;
///
/// let key = EpisodeKey::new(1, 0, 7);
/// assert_eq!(key.uniform(0, 0), key.uniform(0, 0));
/// assert_ne!(key.uniform(0, 0), EpisodeKey::new(1, 0, 8).uniform(0, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EpisodeKey {
    seed: u64,
    stream: u32,
    episode: u32,
}

impl EpisodeKey {
    /// Episode `episode` of a stream, as of a generation, under `seed`.
    pub fn new(seed: u64, stream: u32, episode: u32) -> Self {
        Self { seed, stream, episode }
    }

    /// Word number `draw` of a step; step 0 is the reset.
    pub fn word(&self, step: u32, draw: u32) -> u32 {
        self.words(step, draw / 4)[draw as usize % 4]
    }

    /// A uniform number in `[0, 1)` with 24 bits, the same on every device; see [`word`](Self::word).
    pub fn uniform(&self, step: u32, draw: u32) -> f32 {
        unit(self.word(step, draw))
    }

    /// A uniform number in `[low, high)`; `low` itself if both bounds are equal.
    ///
    /// # Panics
    ///
    /// Panics if `low` is above `high`, if a bound is not finite, or if they are farther apart than f32 holds, with both.
    #[track_caller]
    pub fn uniform_in(&self, low: f32, high: f32, step: u32, draw: u32) -> f32 {
        check_bounds(low, high);
        between(low, high, self.uniform(step, draw))
    }

    /// Uniform numbers in `[low, high)`, draws 0, 1, … of the reset; four times as fast as one by one.
    ///
    /// # Panics
    ///
    /// As [`uniform_in`](Self::uniform_in).
    #[track_caller]
    pub fn fill_uniform(&self, low: f32, high: f32, numbers: &mut [f32]) {
        check_bounds(low, high);
        for (four, block) in numbers.chunks_mut(4).zip(0..) {
            for (number, word) in four.iter_mut().zip(self.words(0, block)) {
                *number = between(low, high, unit(word));
            }
        }
    }

    /// A generator of [`rand`](https://docs.rs/rand) for this episode, the same for all members of a population: all play the same episode,
    /// so that scores differ by what members do.
    ///
    /// Its words are Philox4x32-10 at the counters `(block, 2³² − 1, episode, stream ^ mark)` under the seed. None of them is a
    /// [`word`](Self::word) of the key, so both ways to draw go together.
    ///
    /// # Example
    ///
    /// ```
    /// use eggroll_rl::EpisodeKey;
    /// use rand::RngExt;
    /// use rand_distr::{Distribution, Normal};
    ///
    /// let (generation, episode) = (3, 7);
    /// let mut rng = EpisodeKey::new(42, generation, episode).rng();
    /// let side = rng.random_range(0..4);
    /// let mass = Normal::new(1.0_f32, 0.1)?.sample(&mut rng);
    ///
    /// let mut again = EpisodeKey::new(42, generation, episode).rng();
    /// assert_eq!(side, again.random_range(0..4));
    /// assert_eq!(mass, Normal::new(1.0, 0.1)?.sample(&mut again));
    /// # Ok::<(), rand_distr::NormalError>(())
    /// ```
    pub fn rng(&self) -> PhiloxRng {
        self.generator(ALL_MEMBERS)
    }

    /// A generator of [`rand`](https://docs.rs/rand) for one member in this episode, independent of every other member's and of
    /// [`rng`](Self::rng): counters `(block, member, episode, stream ^ mark)`.
    ///
    /// Antithetic members `2q` and `2q + 1` draw alike under the number `q` of their pair.
    ///
    /// # Panics
    ///
    /// Panics if `member` is 2³² − 1.
    #[track_caller]
    pub fn member_rng(&self, member: u32) -> PhiloxRng {
        assert!(member != ALL_MEMBERS, "a member's generator: members are below {ALL_MEMBERS}");
        self.generator(member)
    }

    fn generator(&self, whose: u32) -> PhiloxRng {
        PhiloxRng::new([0, whose, self.episode, self.stream ^ RNG_MARK], [self.seed as u32, (self.seed >> 32) as u32])
    }

    /// The key of the episode that begins at a step because this one has ended there: its seed is drawn from this key.
    pub fn restarted(&self, step: u32) -> Self {
        let [low, high, ..] = self.words(step, RESTART);
        Self { seed: u64::from(low) | (u64::from(high) << 32), ..*self }
    }

    /// What stays the same in the address of all words: the seed's words, and the last two of the counter `[draw / 4, step, …]`.
    pub(crate) fn address(&self) -> [u32; 4] {
        [self.seed as u32, (self.seed >> 32) as u32, self.episode, self.stream ^ MARK]
    }

    /// Words `4·block .. 4·block + 4` of a step.
    fn words(&self, step: u32, block: u32) -> [u32; 4] {
        let [low, high, episode, stream] = self.address();
        philox4x32([block, step, episode, stream], [low, high])
    }
}

#[track_caller]
fn check_bounds(low: f32, high: f32) {
    assert!(
        low <= high && (high - low).is_finite(),
        "uniform numbers from {low:e} to {high:e}: the bounds must be finite, the lower one first, and no farther apart than f32 holds"
    );
}

/// `low + (high − low)·unit` of a number in `[0, 1)`. Where that rounds to `high`, the largest number below it.
fn between(low: f32, high: f32, unit: f32) -> f32 {
    let number = low + (high - low) * unit;
    if number < high { number } else { low.max(high.next_down()) }
}

/// 24 bits of a word as a number in `[0, 1)`.
fn unit(word: u32) -> f32 {
    (word >> 8) as f32 * (1.0 / 16_777_216.0)
}
