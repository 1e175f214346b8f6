//! Checks of a configuration that do not depend on the model.

use super::{Credit, EvolutionStrategyConfig};
use crate::error::{ConfigError, Error, MOST_MEMBERS};
use crate::fitness::FitnessShaping;
use burn::lr_scheduler::LrSchedulerConfig;
use eggroll_core::numbers::{self, Bound, Number};
use eggroll_core::{NoiserError, ParameterTable};
use serde::Serialize;

/// Steps of a schedule that f64 counts.
const MOST_STEPS: i128 = 1 << 53;

/// A schedule with the name of its field, for errors.
#[derive(Serialize)]
struct InField<'a> {
    learning_rate: &'a LrSchedulerConfig,
}

impl EvolutionStrategyConfig {
    pub(crate) fn validate(&self) -> Result<(), Error> {
        if !(2..=MOST_MEMBERS).contains(&self.population_size) || !self.population_size.is_multiple_of(2) {
            return Err(ConfigError::Population(self.population_size).into());
        }
        if self.chunk_size == Some(0) {
            return Err(ConfigError::Chunk(0).into());
        }
        if let Some(norm) = self.clip_norm
            && !(norm > 0.0 && norm.is_finite())
        {
            return Err(ConfigError::ClipNorm(norm).into());
        }
        match self.learning_rate {
            LrSchedulerConfig::Constant(rate) if !(rate >= 0.0 && rate.is_finite()) => {
                return Err(ConfigError::LearningRate(rate).into());
            }
            _ => {}
        }
        self.sigma.validate()?;
        self.optimizer.validate()?;
        self.validate_schedule()?;
        ParameterTable::check_scales(&self.scales)?;
        numbers::check(self, |field| if field == "anchor_decay" { Bound::NotNegative } else { Bound::Any })
            .map_err(ConfigError::from)?;
        self.validate_horizon()?;
        self.shaping.validate(self.population_size)?;
        self.validate_baselines()
    }

    /// Burn's schedules take numbers from which no learning rate follows, and count some steps up by one.
    fn validate_schedule(&self) -> Result<(), ConfigError> {
        let schedule = InField { learning_rate: &self.learning_rate };
        numbers::check(&schedule, |field| match numbers::last_name(field) {
            "gamma" | "factor" => Bound::Positive,
            _ => Bound::NotNegative,
        })?;
        let mut steps = numbers::all(&schedule).into_iter().filter_map(|(field, number)| match number {
            Number::Integer(steps) if steps > MOST_STEPS => Some(ConfigError::ScheduleSteps { field, steps }),
            _ => None,
        });
        steps.next().map_or(Ok(()), Err)
    }

    fn validate_horizon(&self) -> Result<(), ConfigError> {
        let (Some(horizon), noise_reuse) = (self.unroll_horizon, self.noise_reuse) else {
            return Ok(());
        };
        if horizon == 0 {
            return Err(ConfigError::UnrollHorizon(horizon));
        }
        if noise_reuse == 0 || !horizon.is_multiple_of(noise_reuse) {
            return Err(ConfigError::UnrollNoise { horizon, noise_reuse });
        }
        if self.credit == Credit::Parts && horizon > 1 {
            return Err(ConfigError::UnrollCredit { horizon });
        }
        Ok(())
    }

    fn validate_baselines(&self) -> Result<(), Error> {
        let noiser = self.noiser.baselines();
        match (noiser, &self.shaping) {
            (Some(0), _) => Err(NoiserError::BaselineGroup(0).into()),
            (Some(group), _) if !self.population_size.is_multiple_of(group) => {
                Err(ConfigError::Group { group, population: self.population_size }.into())
            }
            (_, FitnessShaping::BaselineSubtraction { size }) if noiser != Some(*size) => {
                Err(ConfigError::Baselines { shaping: *size, noiser }.into())
            }
            _ => Ok(()),
        }
    }
}
