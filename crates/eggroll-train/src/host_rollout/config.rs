//! Configuration of rollouts on the host.

use super::{HostRollouts, HostTask};
use crate::error::Error;
use burn::config::Config;
use burn::tensor::Device;

/// Configuration of [`HostRollouts`].
#[derive(Config, Debug, PartialEq)]
pub struct HostRolloutConfig {
    /// Episodes of each member in a generation: the same ones for all.
    #[config(default = 1)]
    pub episodes: usize,
    /// Steps after which episodes are cut off, if the environment's own limit is not below that.
    pub max_steps: Option<usize>,
    /// Whether the policy sees observations with mean 0 and variance 1, by those of the generations
    /// [observed](HostRollouts::observe) so far, and none beyond ±10.
    #[config(default = false)]
    pub normalise_observations: bool,
    /// Seed of all episodes.
    #[config(default = 0)]
    pub seed: u64,
}

impl HostRolloutConfig {
    /// Rollouts of a task, whose policies compute on `device`.
    ///
    /// # Errors
    ///
    /// [`Error::Rollouts`] if there is nothing to play.
    ///
    /// # Panics
    ///
    /// Panics if an observation has no values.
    pub fn try_init<T: HostTask>(&self, task: T, device: &Device) -> Result<HostRollouts<T>, Error> {
        HostRollouts::new(self.clone(), task, device)
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        let Self { episodes, max_steps, .. } = *self;
        if episodes == 0 || max_steps == Some(0) { Err(Error::Rollouts { episodes, max_steps }) } else { Ok(()) }
    }
}
