//! The task between a policy and an environment.

use crate::EpisodeKey;
use burn_rl::{Environment, StepResult};

/// How policies play an environment of burn-rl: how its episodes begin, what a policy sees of its states, and what the policy's outputs
/// do.
pub trait HostTask: Sync {
    /// The environment.
    type Environment: Environment + Send;

    /// Floats of an observation: at least 1.
    fn observation_size(&self) -> usize;

    /// The environment at the first state of the episode of a key; it is not reset again. All random numbers of the episode must be
    /// functions of the key: the same key must give the same episode in every chunk and on every thread. An environment may keep
    /// [`EpisodeKey::rng`] and draw in every step.
    fn begin(&self, key: EpisodeKey) -> Self::Environment;

    /// Writes the observation of a state, [`observation_size`](Self::observation_size) floats.
    fn observe(&self, state: &<Self::Environment as Environment>::State, observation: &mut [f32]);

    /// The action that a policy's outputs stand for.
    fn act(&self, outputs: &[f32]) -> <Self::Environment as Environment>::Action;

    /// What a step adds to the return: the environment's reward, unless a task shapes it.
    fn reward(&self, step: &StepResult<<Self::Environment as Environment>::State>) -> f64 {
        step.reward
    }
}
