//! Runners of episodes.

use super::normalizer::Scaling;
use super::policy::Policy;
use crate::EpisodeKey;
use burn::tensor::Device;
use eggroll_train::Population;

/// How [`Rollouts`](crate::Rollouts) in environments `E` run their episodes: the settings that made them. These are
/// [`RolloutConfig`](crate::RolloutConfig) for environments that are batched tensors, `HostRolloutConfig` for environments of
/// burn-rl.
///
/// There are no other runners: what is given to them has no name elsewhere.
pub trait Runner<E> {
    /// Episodes of every member in a generation.
    fn episodes(&self) -> usize;

    /// Seed of the episodes.
    fn seed(&self) -> u64;

    /// Steps that an action lasts.
    fn action_repeat(&self) -> usize {
        1
    }

    /// The first observation of an episode.
    fn first_observation(&self, environment: &E, key: EpisodeKey) -> Vec<f32>;

    /// The rows `[return, length, sums of a normalizer …]` of all episodes of a population, member after member.
    fn rows<P: Policy>(&self, plan: &EpisodePlan<'_, E>, population: &Population, policy: &P) -> Vec<f32>;

    /// The rows of the episodes of a model as it is.
    fn rows_of_model<P: Policy>(&self, plan: &EpisodePlan<'_, E>, policy: &P, device: &Device) -> Vec<f32>;
}

/// Episodes that are to be run.
#[derive(Debug)]
pub struct EpisodePlan<'a, E> {
    /// The environment, or the task in one.
    pub(super) environment: &'a E,
    /// The episodes of each member.
    pub(super) keys: &'a [EpisodeKey],
    /// How observations are normalized, if they are.
    pub(super) scaling: Option<&'a Scaling>,
    /// Numbers of an episode's row.
    pub(super) row_width: usize,
}
