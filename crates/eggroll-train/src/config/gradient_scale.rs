//! The scale of the estimated gradient.

use serde::{Deserialize, Serialize};

/// How the weighted sum of noise is scaled into a gradient: `G = −scale·Σ_m f_m s_m E_m`, where `E_m` is the noise added to the
/// parameter (`(σ/√r)·B·Aᵀ`, or `σ·ε`). If noise is relative to the spread of parameters, σ here is the common one;
/// [`NoiseScale`](crate::NoiseScale) says what the scales mean then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GradientScale {
    /// `√N/N`, as the JAX reference HyperscaleES does: σ multiplies.
    #[default]
    SqrtPopulation,
    /// `1/(N·σ²)`: the score-function gradient, in units of the fitness per unit of the parameter.
    ///
    /// With raw fitness and dense normals, its expectation is the gradient of the fitness smoothed by the noise. Low-rank noise uses the
    /// Gaussian score `E/σ²` in place of its own (arXiv 2511.16652). That is exact for linear and quadratic fitness; for others the error
    /// is of order `1/r` at rank `r`. For the fitness `ΣW³` the estimate is `3W² + (3 + 6/r)·σ²`, the smoothed gradient `3W² + 3σ²`. Dense
    /// signs are also exact for linear and quadratic fitness. The error vanishes with σ.
    ScoreFunction,
    /// `1/(N·σ)`: Eq. 6 of arXiv 2511.16652, neither σ nor √N.
    InverseSigma,
}

impl GradientScale {
    /// The factor for a population of `members` and noise scale `sigma`.
    pub fn factor(&self, members: usize, sigma: f64) -> f64 {
        let n = members as f64;
        match self {
            Self::SqrtPopulation => n.sqrt() / n,
            Self::ScoreFunction => 1.0 / (n * sigma * sigma),
            Self::InverseSigma => 1.0 / (n * sigma),
        }
    }
}
