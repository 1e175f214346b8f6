//! Bits and noise: `philox` makes words, `normal`, `rademacher` and `integer` turn them into values, `sparse` into places. [`PhiloxRng`]
//! gives words to `rand`.

pub(crate) mod group;
pub mod integer;
pub(crate) mod key;
pub mod normal;
pub mod philox;
mod philox_rng;
pub mod rademacher;
pub mod sparse;

pub use crate::rng::key::NoiseDistribution;
pub use crate::rng::philox_rng::PhiloxRng;

use crate::rng::key::NoiseKey;

/// Marks, above the parameter's index, the counters whose words address a table.
pub(crate) const TABLE_ADDRESS: u32 = 1 << 24;

impl NoiseDistribution {
    /// Version of the distribution's stream: a change of any value is a new version, and old checkpoints are refused.
    pub fn stream_version(&self) -> u32 {
        match self {
            Self::Normal => normal::STREAM_VERSION,
            Self::Rademacher => rademacher::STREAM_VERSION,
        }
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
