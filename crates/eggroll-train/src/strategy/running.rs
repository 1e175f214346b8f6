//! Sigma and learning rate while a strategy runs.

use super::EvolutionStrategy;
use crate::config::RunningSettings;
use crate::error::{ConfigError, Error};

impl EvolutionStrategy {
    /// Noise scale of the population that [`ask`](Self::ask) makes next.
    ///
    /// # Panics
    ///
    /// As [`ask`](Self::ask).
    pub fn sigma(&self) -> f64 {
        self.settings.sigma.unwrap_or_else(|| self.config.scheduled_sigma(self.generation))
    }

    /// Sets sigma from the next [`ask`](Self::ask) on, in place of the configured schedule; `None` returns to that. Part of the state:
    /// checkpoints have it, and replay logs of `eggroll-run` make the same updates again.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if sigma is not positive or f32 cannot hold it, or if an unroll horizon has begun and not ended.
    pub fn set_sigma(&mut self, sigma: impl Into<Option<f64>>) -> Result<(), Error> {
        let settings = RunningSettings { sigma: sigma.into(), ..self.settings };
        settings.validate()?;
        if let Some(horizon) = self.config.unroll_horizon.filter(|horizon| !self.generation.is_multiple_of(*horizon)) {
            return Err(ConfigError::SigmaWithinHorizon { generation: self.generation, horizon }.into());
        }
        self.settings = settings;
        Ok(())
    }

    /// Sets the learning rate from the next [`ask`](Self::ask) on, in place of the configured schedule, which proceeds unseen; `None`
    /// returns to it. Part of the state, as [`set_sigma`](Self::set_sigma) is.
    ///
    /// # Errors
    ///
    /// [`ConfigError::LearningRate`] if the rate is negative or f32 cannot hold it.
    pub fn set_learning_rate(&mut self, learning_rate: impl Into<Option<f64>>) -> Result<(), Error> {
        let settings = RunningSettings { learning_rate: learning_rate.into(), ..self.settings };
        settings.validate()?;
        self.settings = settings;
        Ok(())
    }

    /// The values of [`set_sigma`](Self::set_sigma) and [`set_learning_rate`](Self::set_learning_rate) for the next generation.
    pub fn settings(&self) -> RunningSettings {
        self.settings
    }

    /// The same values for the population of the last generation that was told.
    pub fn told_settings(&self) -> RunningSettings {
        self.told
    }

    /// Sets both, as a record of another run has them.
    ///
    /// # Errors
    ///
    /// As [`set_sigma`](Self::set_sigma) and [`set_learning_rate`](Self::set_learning_rate), within an unroll horizon too.
    pub fn set_settings(&mut self, settings: RunningSettings) -> Result<(), Error> {
        settings.validate()?;
        self.settings = settings;
        Ok(())
    }
}
