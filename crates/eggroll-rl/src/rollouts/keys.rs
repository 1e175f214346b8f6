//! Which episodes are run: keys are functions of the seed, the generation and the episode's number.

use crate::EpisodeKey;

/// The stream of episodes of a model without noise: no generation's.
pub(super) const EVALUATION: u32 = u32::MAX;

/// Episodes of a member: their keys, and rows for each, are in memory.
pub(super) const MOST_EPISODES: usize = 1 << 20;

/// Steps of an episode: f32 counts them.
pub(super) const MOST_STEPS: usize = 1 << 24;

/// The stream of a generation's episodes.
pub(super) fn stream(generation: u64) -> u32 {
    (generation % u64::from(EVALUATION)) as u32
}

/// The first episodes of a stream.
///
/// # Panics
///
/// Panics if there are more than there may be.
#[track_caller]
pub(super) fn episode_keys(seed: u64, stream: u32, episodes: usize) -> Vec<EpisodeKey> {
    assert!(episodes <= MOST_EPISODES, "rollouts: episodes must be at most {MOST_EPISODES}, not {episodes}");
    (0..episodes as u32).map(|episode| EpisodeKey::new(seed, stream, episode)).collect()
}

/// The number that a sampled head draws for an action: the same for both members of a pair, and in every chunk.
pub(super) fn uniform(key: EpisodeKey, pair: usize, step: usize) -> f32 {
    draws(key).uniform(step as u32, pair as u32)
}

/// The addresses of all that sampled heads draw in these episodes.
pub(super) fn episode_draws(keys: &[EpisodeKey]) -> Vec<[u32; 4]> {
    keys.iter().map(|key| draws(*key).address()).collect()
}

/// A key that no episode of the environment has, because none begins anew at the last step there is.
fn draws(key: EpisodeKey) -> EpisodeKey {
    key.restarted(u32::MAX)
}
