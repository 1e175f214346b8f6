//! What the learning rate is relative to.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What the learning rate is relative to: with the rate `η` of the schedule, a step on parameter `p` has the rate `η_p`.
///
/// | scale | `η_p` |
/// |---|---|
/// | absolute | `η` |
/// | relative to sigma | `η·σ_p`, of the noise that the members of the generation had |
/// | relative to population | `η·σ_p·min(1, 10·N/n)`, for `N` members and `n` trained values |
///
/// For optimizers whose steps are as long as the rate, as Adam's: relative to sigma, a value moves by about `η·σ_p` in a generation, so
/// that the rate needs no new choice where σ, or [`NoiseScale`](crate::NoiseScale), is another one. The steps of SGD follow σ without it, with the default
/// [`GradientScale`](crate::GradientScale).
///
/// The [cosine to expect](crate::gradient_cosine()) between the estimate and the gradient is `c = √(P/(P + n))` for `P = N/2` pairs: the share of a
/// step that goes where the fitness says. `10·N/n` is about `20·c²`: where `c` is below 0.22 steps are short, and average over more generations.
/// [`in_relative_units`](crate::EvolutionStrategyConfig::in_relative_units) is made of it.
///
/// [`try_init`](crate::EvolutionStrategyConfig::try_init) refuses a relative rate for ClipUp and integer AdamW, which have one rate for all
/// parameters. Reports have `η`, and [anchor decay](crate::EvolutionStrategyConfig::with_anchor_decay) takes `η·σ`.
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
