//! How episodes are run in environments of burn-rl.

use burn::config::Config;

/// Settings of [`HostRollouts`](crate::HostRollouts).
#[derive(Config, Debug, PartialEq)]
pub struct HostRolloutConfig {
    /// Episodes of every member in a generation; all members have the same ones.
    #[config(default = 1)]
    pub episodes: usize,
    /// Steps after which episodes are cut off, if the environment's own limit is not below that.
    pub max_steps: Option<usize>,
    /// Whether policies see observations normalized by their running mean and variance
    /// ([`ObservationNormalizer`](crate::ObservationNormalizer)).
    #[config(default = false)]
    pub normalize_observations: bool,
    /// Seed of the episodes.
    #[config(default = 0)]
    pub seed: u64,
}
