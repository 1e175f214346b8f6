//! Settings that a program changes while a strategy runs.

use crate::error::ConfigError;
use eggroll_core::numbers;
use serde::{Deserialize, Serialize};

/// Sigma and learning rate that were set while a strategy runs, in place of the configured schedules: part of its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunningSettings {
    /// Noise scale; `None` for the schedule's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigma: Option<f64>,
    /// Learning rate; `None` for the schedule's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
}

impl RunningSettings {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let is_sigma = |sigma: &f64| *sigma > 0.0 && numbers::holds(*sigma);
        if let Some(sigma) = self.sigma.filter(|sigma| !is_sigma(sigma)) {
            return Err(ConfigError::Sigma(sigma));
        }
        let holds = |rate: &f64| (0.0..=f64::from(f32::MAX)).contains(rate);
        match self.learning_rate.filter(|rate| !holds(rate)) {
            Some(rate) => Err(ConfigError::LearningRate(rate)),
            None => Ok(()),
        }
    }
}
