//! What the learning rate is relative to.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What the learning rate is relative to: if the schedule has the rate `η`, a step on parameter `p` has the rate `η_p`.
///
/// | scale | `η_p` |
/// |---|---|
/// | absolute | `η` |
/// | relative to sigma | `η·σ_p`, of the noise that the members of the generation had |
/// | relative to population | `η·σ_p·min(1, 10·N/n)`, for `N` members and `n` trained values |
///
/// For optimizers with steps of the length of the rate, such as Adam. Relative to sigma, a value moves by about `η·σ_p` in a generation: the rate stays
/// valid when σ or [`NoiseScale`](crate::NoiseScale) changes. The steps of SGD already follow σ with the default [`GradientScale`](crate::GradientScale).
///
/// The [expected cosine](crate::gradient_cosine()) between the estimate and the gradient is `c = √(P/(P + n))` for `P = N/2` pairs: the share of a
/// step along the gradient. `10·N/n` is about `20·c²`: if `c` is below 0.22, steps are shorter and average over more generations.
/// [`in_relative_units`](crate::EvolutionStrategyConfig::in_relative_units) uses this scale.
///
/// [`try_init`](crate::EvolutionStrategyConfig::try_init) refuses a relative rate for ClipUp and integer AdamW, which have one rate for all
/// parameters. Reports show `η`; [anchor decay](crate::EvolutionStrategyConfig::with_anchor_decay) uses `η·σ`.
///
/// # Example
///
/// Noise of two spreads of each parameter, and a rate of 0.6 of it:
///
/// ```
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::MlpConfig;
/// use eggroll_train::{EvolutionStrategyConfig, NoiseScale, OptimizerConfig, RateScale};
///
/// let policy = MlpConfig::new(vec![4, 32, 32, 2]).init(&burn::tensor::Device::flex());
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), OptimizerConfig::default())
///     .with_noise_scale(NoiseScale::RelativeToSpread)
///     .with_sigma(2.0)
///     .with_rate_scale(RateScale::RelativeToSigma)
///     .with_learning_rate(0.6);
/// assert!(config.try_init(&policy).is_ok());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateScale {
    /// The same rate for all parameters.
    #[default]
    Absolute,
    /// The rate times the noise scale of each parameter.
    RelativeToSigma,
    /// The same, times `min(1, 10·N/n)` for `N` members and `n` trained values.
    RelativeToPopulation,
}

impl RateScale {
    pub(super) fn is_absolute(&self) -> bool {
        *self == Self::Absolute
    }
}

/// The name, as in configuration files.
impl fmt::Display for RateScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
