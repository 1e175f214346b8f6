//! The noise scale by generation.

use crate::error::ConfigError;
use serde::{Deserialize, Serialize};

/// Noise scale σ by generation: a pure function, so that it needs no state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
}

impl SigmaSchedule {
    /// σ of a generation.
    pub fn at(&self, generation: u64) -> f64 {
        match *self {
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
