//! Where an episode's random numbers come from.

use eggroll_core::rng::philox::philox4x32;

/// Marks the words of episodes in the counter, so that none is a word of a parameter's noise under the same seed.
const MARK: u32 = 0x4550_4953;

/// The address of an episode: the same key gives the same episode on every backend, chunk and shard.
///
/// A random number is a pure function of the key, the step and the draw: a Philox4x32-10 word at the counter
/// `(draw / 4, step, episode, stream ^ mark)` under the seed.
///
/// # Example
///
/// ```
/// use eggroll_envs::EpisodeKey;
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
        let counter = [draw / 4, step, self.episode, self.stream ^ MARK];
        philox4x32(counter, [self.seed as u32, (self.seed >> 32) as u32])[draw as usize % 4]
    }

    /// A uniform number in `[0, 1)` with 24 bits, the same on every device; see [`word`](Self::word).
    pub fn uniform(&self, step: u32, draw: u32) -> f32 {
        (self.word(step, draw) >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    /// A uniform number in `[low, high)`.
    pub fn uniform_in(&self, low: f32, high: f32, step: u32, draw: u32) -> f32 {
        low + (high - low) * self.uniform(step, draw)
    }
}
