//! Running mean and variance of observations.

use super::error::RolloutError;
use super::moments::Moments;
use super::statistics::EpisodeStatistics;
use burn::tensor::{Device, Tensor};
use eggroll_core::device_rollout::DeviceScaling as KernelScaling;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Normalized observations stay within so many standard deviations.
const LIMIT: f32 = 10.0;
/// Observations with a value farther from the mean are left out, as those that are not finite: f32 cannot sum up their squares.
const FARTHEST: f32 = 1e15;
/// Variances are never smaller.
const LEAST_VARIANCE: f64 = 1e-8;

/// Mean and variance of all observations so far: those that a policy sees are `(o − mean)/√variance`, within ±10.
///
/// The statistics of a generation enter when it is over ([`Rollouts::update_normalizer`](crate::Rollouts::update_normalizer)), so that all its members
/// see alike; they are sums over members in order, so that chunks and shards do not change them.
///
/// An observation with a value that is NaN, infinite, or farther than 10¹⁵ from the mean is left out of the statistics as a whole, and
/// counted ([`left_out`](Self::left_out)). Its episode continues: the policy sees the values that are no numbers as they are, and the
/// member's fitness is what follows from that.
///
/// # References
///
/// Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObservationNormalizer {
    count: f64,
    mean: Vec<f64>,
    /// Sums of squared distances to the mean.
    squares: Vec<f64>,
    #[serde(default)]
    left_out: u64,
}

impl ObservationNormalizer {
    pub(super) fn new(size: usize) -> Self {
        Self { count: 0.0, mean: vec![0.0; size], squares: vec![0.0; size], left_out: 0 }
    }

    /// Observations so far.
    pub fn count(&self) -> f64 {
        self.count
    }

    /// Observations that are not among them, since a value was not finite, or too far from the mean.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Their mean.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Their variance; 1 before the first.
    pub fn variance(&self) -> Vec<f64> {
        let variance = |squares: &f64| (squares / self.count).max(LEAST_VARIANCE);
        self.squares.iter().map(|squares| if self.count < 2.0 { 1.0 } else { variance(squares) }).collect()
    }

    /// Refuses statistics that no observations have.
    fn validate(&self) -> Result<(), RolloutError> {
        let finite = self.count >= 0.0 && self.mean.iter().chain(&self.squares).all(|number| number.is_finite());
        let fits = finite && self.count.is_finite() && self.squares.len() == self.mean.len();
        if fits { Ok(()) } else { Err(RolloutError::NormalizerNumbers(format!("{self:?}"))) }
    }

    pub(super) fn add(&mut self, moments: &Moments) {
        self.left_out += moments.left_out;
        if moments.count == 0.0 {
            return;
        }
        let count = self.count + moments.count;
        let sums = moments.sums.iter().zip(&moments.squares);
        for ((mean, squares), (sum, square)) in self.mean.iter_mut().zip(&mut self.squares).zip(sums) {
            let shift = sum / moments.count;
            *squares += square - sum * shift + shift * shift * self.count * moments.count / count;
            *mean += shift * moments.count / count;
        }
        self.count = count;
    }

    /// As numbers for the steps of a generation.
    pub(super) fn prepare(&self) -> Scaling {
        let scale = |variance: f64| (1.0 / variance.sqrt()) as f32;
        Scaling {
            mean: self.mean.iter().map(|mean| *mean as f32).collect(),
            scale: self.variance().into_iter().map(scale).collect(),
        }
    }
}

/// The statistics of whoever runs episodes, if it normalizes observations.
#[derive(Clone, Debug)]
pub(super) struct Normalization {
    /// Values of an observation.
    size: usize,
    statistics: Option<ObservationNormalizer>,
    /// The first generation that was evaluated; [`NONE`] before.
    first: Arc<AtomicU64>,
}

/// No generation.
const NONE: u64 = u64::MAX;

impl Normalization {
    pub(super) fn new(normalize: bool, size: usize) -> Self {
        Self {
            size,
            statistics: normalize.then(|| ObservationNormalizer::new(size)),
            first: Arc::new(AtomicU64::new(NONE)),
        }
    }

    pub(super) fn statistics(&self) -> Option<&ObservationNormalizer> {
        self.statistics.as_ref()
    }

    /// Continues with statistics that were saved; refuses those of other observations, or of none that are normalized.
    pub(super) fn restore(&mut self, saved: ObservationNormalizer) -> Result<(), RolloutError> {
        let (found, expected) = (saved.mean().len(), self.size);
        if found != expected {
            return Err(RolloutError::NormalizerSize { found, expected });
        }
        if self.statistics.is_none() {
            return Err(RolloutError::NotNormalized);
        }
        saved.validate()?;
        self.statistics = Some(saved);
        Ok(())
    }

    /// Notes that a generation is evaluated.
    ///
    /// # Panics
    ///
    /// Panics if it is a later one than the first, and the statistics have never been updated.
    #[track_caller]
    pub(super) fn begin(&self, generation: u64) {
        let Some(statistics) = &self.statistics else { return };
        let first = self.first.fetch_min(generation, Relaxed).min(generation);
        assert!(
            generation == first || statistics.count > 0.0 || statistics.left_out > 0,
            "observations are normalized, but their statistics were never updated since generation {first}: call \
             rollouts.update_normalizer(&outcome.episodes) after every generation"
        );
    }

    /// Adds the observations of a generation.
    pub(super) fn update(&mut self, episodes: &EpisodeStatistics) {
        if let Some(statistics) = &mut self.statistics {
            statistics.add(&episodes.moments);
        }
    }

    pub(super) fn scaling(&self) -> Option<Scaling> {
        self.statistics().map(ObservationNormalizer::prepare)
    }

    /// Numbers of an episode's row: its return, its length, and the sums of the statistics.
    pub(super) fn row_width(&self) -> usize {
        2 + self.statistics().map_or(0, |_| Scaling::sums(self.size))
    }
}

/// `d = o − mean`, and `d·scale` within limits.
#[derive(Clone, Debug)]
pub(super) struct Scaling {
    mean: Vec<f32>,
    scale: Vec<f32>,
}

impl Scaling {
    /// Sums of an environment: of `d` and `d²` for each value of an observation, and of observations that are left out.
    pub(super) fn sums(size: usize) -> usize {
        2 * size + 1
    }

    /// Normalizes one observation; adds `d` and `d²` to the sums of its environment, or 1 to what is left out.
    #[inline]
    pub(super) fn apply(&self, observation: &mut [f32], sums: &mut [f32]) {
        let (sums, rest) = sums.split_at_mut(observation.len());
        let (squares, left_out) = rest.split_at_mut(observation.len());
        // NaN is not near either.
        let near = |(value, mean): (&f32, &f32)| (*value - *mean).abs() <= FARTHEST;
        let counts = observation.iter().zip(&self.mean).all(near);
        for (i, value) in observation.iter_mut().enumerate() {
            let distance = *value - self.mean[i];
            if counts {
                sums[i] += distance;
                squares[i] += distance * distance;
            }
            *value = (distance * self.scale[i]).clamp(-LIMIT, LIMIT);
        }
        left_out[0] += if counts { 0.0 } else { 1.0 };
    }

    /// For the kernel of a device.
    pub(super) fn in_kernel(&self) -> KernelScaling<'_> {
        KernelScaling { mean: &self.mean, scale: &self.scale, limit: LIMIT, farthest: FARTHEST }
    }

    /// On a device, for rows of observations.
    pub(super) fn on_device(&self, device: &Device) -> DeviceScaling {
        let row = |values: &Vec<f32>| Tensor::<1>::from_floats(values.as_slice(), device).unsqueeze::<2>(); // [1, size]
        DeviceScaling { mean: row(&self.mean), scale: row(&self.scale) }
    }
}

/// [`Scaling`] on a device.
pub(super) struct DeviceScaling {
    mean: Tensor<2>,
    scale: Tensor<2>,
}

impl DeviceScaling {
    /// Normalizes observations `[rows, size]`; also returns `[d, d², 0]`, or `[0, 0, 1]` of those that are left out,
    /// `[rows, 2 · size + 1]`, zeros where `live` is 0.
    pub(super) fn apply(&self, observations: Tensor<2>, live: Tensor<1>) -> (Tensor<2>, Tensor<2>) {
        let distance = observations - self.mean.clone();
        // Shaders need not compare NaN as IEEE 754 does: it is asked for.
        let far = distance.clone().abs().greater_elem(FARTHEST).bool_or(distance.clone().is_nan());
        let left_out = far.float().max_dim(1); // [rows, 1]
        let without = left_out.clone().greater_elem(0.0).expand(distance.dims());
        let summed = distance.clone().mask_fill(without, 0.0);
        let sums = Tensor::cat(vec![summed.clone(), summed.clone() * summed, left_out], 1);
        let normalized = (distance * self.scale.clone()).clamp(-LIMIT, LIMIT);
        // What stands still is not seen again.
        let frozen = live.equal_elem(0.0).unsqueeze_dim::<2>(1).expand(sums.dims());
        (normalized, sums.mask_fill(frozen, 0.0))
    }
}
