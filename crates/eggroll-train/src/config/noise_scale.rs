//! What the noise scale is relative to.

use crate::error::ConfigError;
use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What σ is relative to: the noise scale of parameter `p` is `σ_p = σ·τ_p`, times [its own factor](crate::EvolutionStrategyConfig::with_scales) if it
/// has one.
///
/// | scale | `τ_p` |
/// |---|---|
/// | absolute | 1 |
/// | relative to spread | standard deviation of the parameter's values when the strategy was made, `√(Σ(θ − mean)²/count)` |
/// | relative to population | the same, times `min(1, 10·N/n)^¼` for `N` members and `n` trained values of the model |
///
/// In a pretrained model the weights of one layer can be ten times as large as the weights of another: one σ does not suit both.
/// Relative noise perturbs each by the same share of its spread.
///
/// Strong noise escapes plateaus, which control tasks have, but a population that is small for the model averages little of it out. Relative
/// to population, the factor is 1 up to ten values for each member, and 0.5 at 160.
///
/// # The estimate
///
/// The factor multiplies the noise `E` of the parameter, for every noiser, and so its estimate: [`GradientScale`](crate::GradientScale) takes
/// the common σ, not `σ_p`. Let `g_p` be the score-function gradient of the parameter: the estimate from noise `σ_p` with the scale
/// `1/(N·σ_p²)`. Its expectation is the gradient of the smoothed loss. The last column is the root-mean-square step of a value under SGD with
/// learning rate `η`, for z-scored fitness without information (noise in every value: low-rank or dense):
///
/// | [`GradientScale`](crate::GradientScale) | estimate | step |
/// |---|---|---|
/// | `SqrtPopulation` | `√N·σ²·τ_p²·g_p` | `η·σ·τ_p` |
/// | `ScoreFunction` | `τ_p²·g_p` | `η·τ_p/(√N·σ)` |
/// | `InverseSigma` | `σ·τ_p²·g_p` | `η·τ_p/√N` |
///
/// This is the gradient preconditioned by `τ_p²`: absolute noise and SGD do the same to a model of the parameters `u_p = θ_p/τ_p`. An optimizer that normalizes
/// gradients, such as Adam, removes the factor again, except for its ε. Its steps have the same length for all parameters, unless [rates are relative to
/// sigma](crate::RateScale). [Clipping](crate::clip_norm()) measures the preconditioned gradient.
///
/// # State
///
/// The spreads are measured once, on the model given to [`try_init`](crate::EvolutionStrategyConfig::try_init), and then fixed: the noise
/// does not grow with the weights. They are part of the [record](crate::StrategyRecord) of a strategy, of checkpoints and of replay logs.
///
/// A trained parameter without spread counts with the smallest spread of the others. Examples are the gains of a new normalization
/// layer, which are all 1, and a bias of one value. `try_init` refuses a model in which no trained parameter has a spread, and trained
/// integer parameters, whose noise has no σ.
///
/// # Example
///
/// ```
/// use burn::module::Param;
/// use burn::optim::SgdConfig;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::Linear;
/// use eggroll_train::{EvolutionStrategyConfig, NoiseScale};
///
/// let device = Device::flex();
/// let weight = Tensor::<2>::from_floats([[0.25, -0.25], [-0.25, 0.25]], &device);
/// let mut model = Linear { weight: Param::from_tensor(weight), bias: Some(Param::from_tensor(Tensor::ones([2], &device))) };
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new())
///     .with_sigma(0.1) // a tenth of each parameter's spread
///     .with_noise_scale(NoiseScale::RelativeToSpread);
///
/// let strategy = config.try_init(&model).unwrap();
/// assert_eq!(strategy.ask().perturbation().parameter(0).sigma, 0.1 * 0.25);
/// assert_eq!(strategy.ask().perturbation().parameter(1).sigma, 0.1 * 0.25); // all values of the bias are 1
/// assert_eq!("relative_to_spread".parse::<NoiseScale>().unwrap(), strategy.config().noise_scale);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiseScale {
    /// The same σ for all parameters.
    #[default]
    Absolute,
    /// σ times the standard deviation of the parameter's values when the strategy is made.
    RelativeToSpread,
    /// The same, times `min(1, 10·N/n)^¼` for `N` members and `n` trained values.
    RelativeToPopulation,
}

impl NoiseScale {
    pub(super) fn is_absolute(&self) -> bool {
        *self == Self::Absolute
    }
}

/// The name, as in configuration files.
impl fmt::Display for NoiseScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The scale of that name, as in configuration files.
impl FromStr for NoiseScale {
    type Err = ConfigError;

    fn from_str(name: &str) -> Result<Self, ConfigError> {
        let name: StrDeserializer<'_, serde::de::value::Error> = name.into_deserializer();
        Self::deserialize(name).map_err(|error| ConfigError::NoiseScaleName(error.to_string()))
    }
}
