//! Units of scores, noise and rates: builder methods.

use super::{Credit, EvolutionStrategyConfig, NoiseScale, RateScale};

impl EvolutionStrategyConfig {
    /// Sets whether weights learn from the score of every part or from the mean.
    pub fn with_credit(mut self, credit: Credit) -> Self {
        self.credit = credit;
        self
    }

    /// Sets what the noise scale is relative to: nothing, or the spread of each parameter.
    pub fn with_noise_scale(mut self, scale: NoiseScale) -> Self {
        self.noise_scale = scale;
        self
    }

    /// Sets what the learning rate is relative to: nothing, or the noise scale of each parameter.
    pub fn with_rate_scale(mut self, scale: RateScale) -> Self {
        self.rate_scale = scale;
        self
    }

    /// Noise and learning rate that need no search: a [σ](crate::NoiseScale) of 2 and a [rate](crate::RateScale) of 0.6, both relative to the
    /// population and constant. Up to ten values for each member, σ is two spreads of each parameter and a step is 0.6 of that; beyond, both
    /// fall. A later `with_sigma` or `with_learning_rate` is in these units: for a run of known length, a schedule from 0.6 to 0.
    ///
    /// For new models, with Adam or an optimizer with steps of the same length. docs/benchmarks.md compares it with settings that were searched for each
    /// task.
    ///
    /// # Example
    ///
    /// ```
    /// use eggroll_core::EggrollConfig;
    /// use eggroll_nn::MlpConfig;
    /// use eggroll_train::{EvolutionStrategyConfig, FitnessShaping, OptimizerConfig};
    ///
    /// let policy = MlpConfig::new(vec![4, 32, 32, 2]).init(&burn::tensor::Device::flex());
    /// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), OptimizerConfig::default())
    ///     .in_relative_units()
    ///     .with_shaping(FitnessShaping::CenteredRank);
    /// assert!(config.try_init(&policy).is_ok());
    /// ```
    pub fn in_relative_units(self) -> Self {
        self.with_noise_scale(NoiseScale::RelativeToPopulation)
            .with_sigma(2.0)
            .with_rate_scale(RateScale::RelativeToPopulation)
            .with_learning_rate(0.6)
    }
}
