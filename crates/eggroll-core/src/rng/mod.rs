//! Bits and noise: `philox` makes words, `normal`, `rademacher` and `integer` turn them into values, `sparse` into places.

pub mod integer;
pub mod normal;
pub mod philox;
pub mod rademacher;
pub mod sparse;

use crate::key::NoiseKey;
use serde::{Deserialize, Serialize};

/// The distribution of every noise element: mean 0, variance 1, all independent, so that the formulas of perturbation and
/// estimate are the same for all.
///
/// | distribution | an element is | Philox words for 128 elements | choose it |
/// |---|---|---|---|
/// | normal | N(0, 1) | 128 | for the method as published: moments of every order as in Eq. 4 of the paper |
/// | Rademacher | −1 or +1, equally likely | 4 | where drawing the noise on the fly is a large share of the time: small layers, few rows for each member, high ranks, OpenES |
///
/// Both estimates have the gradient as their expectation for a linear or quadratic fitness, and differ for others in terms of
/// order σ². For a linear fitness that of signs has the smaller variance, as the mean of `ε⁴` is 1 and not 3. Signs explore
/// corners only: every weight moves by exactly ±σ under dense noise or rank 1.
///
/// # Example
///
/// ```
/// use eggroll_core::{EggrollConfig, NoiseDistribution};
///
/// let config = EggrollConfig::new().with_distribution(NoiseDistribution::Rademacher);
/// let json = serde_json::to_string(&config).unwrap();
/// assert_eq!(json, r#"{"rank":1,"freeze_non_matrix":false,"distribution":"rademacher"}"#);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiseDistribution {
    /// Standard normals: [`normal`].
    #[default]
    Normal,
    /// Random signs: [`rademacher`].
    Rademacher,
}

impl NoiseDistribution {
    /// Version of the distribution's stream: a change of any value is a new version, and old checkpoints are refused.
    pub fn stream_version(&self) -> u32 {
        match self {
            Self::Normal => normal::STREAM_VERSION,
            Self::Rademacher => rademacher::STREAM_VERSION,
        }
    }

    /// Whether it is the default, which configurations do not write.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Writes elements `start .. start + out.len()` of the stream of `key` and `pair`, in the distribution of the key: zeros for a
/// baseline ([`NoiseKey::with_baselines`]).
///
/// # Example
///
/// ```
/// use eggroll_core::{NoiseDistribution, NoiseKey, rng::fill_noise};
///
/// let key = NoiseKey::new(1, 0, 0).with_distribution(NoiseDistribution::Rademacher);
/// let mut signs = [0.0; 100];
/// fill_noise(key, 7, 0, &mut signs);
/// assert!(signs.iter().all(|sign| sign.abs() == 1.0));
/// ```
///
/// # Panics
///
/// Panics if the range ends beyond the stream.
#[track_caller]
pub fn fill_noise(key: NoiseKey, pair: u32, start: usize, out: &mut [f32]) {
    if key.is_baseline(pair) {
        return out.fill(0.0);
    }
    match key.distribution() {
        NoiseDistribution::Normal => normal::fill_normals(key, pair, start, out),
        NoiseDistribution::Rademacher => rademacher::fill_signs(key, pair, start, out),
    }
}

/// Panics if `key` is one of another distribution than `drawn`.
#[track_caller]
fn check_distribution(key: NoiseKey, drawn: NoiseDistribution) {
    let found = key.distribution();
    assert!(found == drawn, "the noise of this key is {found:?}, not {drawn:?}");
}
