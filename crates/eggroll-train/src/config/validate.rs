//! What a configuration cannot be, whatever the model.

use super::EvolutionStrategyConfig;
use crate::episode;
use crate::error::Error;
use crate::fitness::FitnessShaping;
use burn::lr_scheduler::LrSchedulerConfig;
use eggroll_core::NoiserError;

impl EvolutionStrategyConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        if self.population < 2 || !self.population.is_multiple_of(2) || self.population / 2 > u32::MAX as usize {
            return Err(Error::Population(self.population));
        }
        if self.chunk == Some(0) {
            return Err(Error::Chunk(0));
        }
        if let Some(norm) = self.clip_norm
            && !(norm > 0.0 && norm.is_finite())
        {
            return Err(Error::ClipNorm(norm));
        }
        match self.learning_rate {
            LrSchedulerConfig::Constant(rate) if !(rate >= 0.0 && rate.is_finite()) => {
                return Err(Error::LearningRate(rate));
            }
            _ => {}
        }
        self.sigma.validate()?;
        episode::validate(self)?;
        self.shaping.validate(self.population)?;
        self.validate_baselines()
    }

    fn validate_baselines(&self) -> Result<(), Error> {
        let noiser = self.noiser.baselines();
        match (noiser, self.shaping) {
            (Some(0), _) => Err(NoiserError::BaselineGroup(0).into()),
            (Some(group), _) if !self.population.is_multiple_of(group) => {
                Err(Error::Group { group, population: self.population })
            }
            (_, FitnessShaping::Baseline { size }) if noiser != Some(size) => {
                Err(Error::Baselines { shaping: size, noiser })
            }
            _ => Ok(()),
        }
    }
}
