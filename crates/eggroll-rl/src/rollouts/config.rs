//! How episodes are run.

use super::head::ActionHead;
use burn::config::Config;

/// Episodes of a model without noise, for [`evaluate_model`](crate::Rollouts::evaluate_model).
#[derive(Config, Debug, PartialEq)]
pub struct EvaluationConfig {
    /// Episodes.
    pub episodes: usize,
    /// Their seed. Episodes of populations never have the same random numbers.
    #[config(default = 0)]
    pub seed: u64,
}

/// Settings of [`Rollouts`](crate::Rollouts) in environments that are batched tensors.
#[derive(Config, Debug)]
pub struct RolloutConfig {
    /// Episodes of every member in a generation; all members have the same ones.
    #[config(default = 1)]
    pub episodes: usize,
    /// How outputs become actions.
    #[config(default = "ActionHead::Greedy")]
    pub head: ActionHead,
    /// Whether policies see observations normalized by their running mean and variance
    /// ([`ObservationNormalizer`](crate::ObservationNormalizer)).
    #[config(default = false)]
    pub normalize_observations: bool,
    /// Steps that an action lasts.
    #[config(default = 1)]
    pub action_repeat: usize,
    /// Steps of the policy between two checks whether all episodes are over. Each check reads to the host; fused rollouts need none.
    #[config(default = 16)]
    pub check_every: usize,
    /// Whether a chain of layers runs fused, without tensors: on CPUs, and on devices that run kernels of ours.
    #[config(default = true)]
    pub fused: bool,
    /// Seed of the episodes.
    #[config(default = 0)]
    pub seed: u64,
}
