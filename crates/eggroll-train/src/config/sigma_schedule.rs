//! The noise scale by generation.

use super::Named;
use crate::error::ConfigError;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Noise scale σ by generation: a pure function, so that it needs no state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SigmaSchedule {
    /// The same σ always.
    Constant(f64),
    /// `σ·decayᵍ`
    Exponential {
        /// σ of generation 0.
        initial: f64,
        /// Factor for each generation, in (0, 1].
        decay: f64,
    },
    /// From `initial` to `last` along half a cosine over `generations`, then `last`.
    Cosine {
        /// σ of generation 0.
        initial: f64,
        /// σ from generation `generations` on.
        last: f64,
        /// Length of the schedule.
        generations: u64,
    },
    /// A function of the program.
    Custom(CustomSigma),
}

/// A sigma schedule of the program: a pure function of the generation, and the name that it is saved under. Two are equal if their
/// names are.
///
/// Files hold the name only. To continue a run, give the configuration with the function again
/// ([`with_functions_of`](crate::EvolutionStrategyConfig::with_functions_of); checkpoints of `eggroll-run` do it with the configuration that
/// they are given).
///
/// # Example
///
/// ```
/// use eggroll_train::{CustomSigma, SigmaSchedule};
///
/// let steps = CustomSigma::new("halved every 100", |generation| 0.1 * 0.5f64.powi((generation / 100) as i32));
/// assert_eq!(SigmaSchedule::from(steps).at(250), 0.025);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CustomSigma(Named<dyn Fn(u64) -> f64 + Send + Sync>);

impl CustomSigma {
    /// Takes a function from generations to noise scales.
    pub fn new(name: impl Into<String>, sigma: impl Fn(u64) -> f64 + Send + Sync + 'static) -> Self {
        Self(Named::new(name, Arc::new(sigma)))
    }
}

impl From<CustomSigma> for SigmaSchedule {
    fn from(custom: CustomSigma) -> Self {
        Self::Custom(custom)
    }
}

impl SigmaSchedule {
    /// σ of a generation.
    ///
    /// # Panics
    ///
    /// Panics if this is a custom schedule that was read from a file: no strategy can be made with it.
    pub fn at(&self, generation: u64) -> f64 {
        match *self {
            Self::Custom(ref custom) => match custom.0.function("sigma schedule") {
                Ok(sigma) => sigma(generation),
                Err(error) => panic!("{error}"),
            },
            Self::Constant(sigma) => sigma,
            Self::Exponential { initial, decay } => initial * decay.powf(generation as f64),
            Self::Cosine { initial, last, generations } => {
                let progress = generation.min(generations) as f64 / generations.max(1) as f64;
                last + (initial - last) * 0.5 * (1.0 + (std::f64::consts::PI * progress).cos())
            }
        }
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let check = |sigma: f64| if sigma > 0.0 && sigma.is_finite() { Ok(()) } else { Err(ConfigError::Sigma(sigma)) };
        match *self {
            Self::Custom(ref custom) => custom.0.function("sigma schedule").and_then(|sigma| check(sigma(0))),
            Self::Constant(sigma) => check(sigma),
            Self::Exponential { initial, decay } => {
                let fits = decay > 0.0 && decay <= 1.0;
                check(initial).and(if fits { Ok(()) } else { Err(ConfigError::SigmaDecay(decay)) })
            }
            Self::Cosine { initial, last, .. } => check(initial).and(check(last)),
        }
    }
}

impl From<f64> for SigmaSchedule {
    fn from(sigma: f64) -> Self {
        Self::Constant(sigma)
    }
}
