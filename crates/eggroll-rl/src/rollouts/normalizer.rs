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
/// Observations with a value farther from the mean are left out, as are observations that are not finite: f32 cannot sum up
/// their squares.
const FARTHEST: f32 = 1e15;
/// Episodes whose first observation may be the one that distances are measured from.
const MOST_ASKED: usize = 16;
/// Variances are never smaller.
const LEAST_VARIANCE: f64 = 1e-8;

/// Mean and variance of all observations so far. A policy sees `(o − mean)/√variance`, within ±10.
///
/// The statistics of a generation enter when it is over ([`Rollouts::update_normalizer`](crate::Rollouts::update_normalizer)), so that all its members
/// see alike. They are sums over members in order, so that chunks and shards do not change them. The distance to the mean so far is summed, in the
/// first generation the distance to the first observation. So a value that is far from 0 and varies little, such as a pressure in pascals, keeps its
/// variance.
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

    /// Refuses statistics that no observations have. Sums of squares that roundings have made negative are 0.
    fn validate(mut self) -> Result<Self, RolloutError> {
        let finite = self.count >= 0.0 && self.mean.iter().chain(&self.squares).all(|number| number.is_finite());
        let rounded = |squares: &f64| *squares >= -LEAST_VARIANCE * self.count;
        let fits = finite && self.count.is_finite() && self.squares.len() == self.mean.len();
        if !fits || !self.squares.iter().all(rounded) {
            return Err(RolloutError::NormalizerNumbers(format!("{self:?}")));
        }
        self.squares.iter_mut().for_each(|squares| *squares = squares.max(0.0));
        Ok(self)
    }

    pub(super) fn add(&mut self, moments: &Moments) {
        self.left_out += moments.left_out;
        if moments.count == 0.0 {
            return;
        }
        let count = self.count + moments.count;
        for ((mean, squares), (new, spread)) in self.mean.iter_mut().zip(&mut self.squares).zip(moments.spreads()) {
            let shift = new - *mean;
            *squares += spread + shift * shift * self.count * moments.count / count;
            *mean += shift * moments.count / count;
        }
        self.count = count;
    }

    /// As numbers for the steps of a generation; `first` gives observations that it begins with.
    pub(super) fn prepare(&self, first: impl Iterator<Item = Vec<f32>>) -> Scaling {
        let scale = |variance: f64| (1.0 / variance.sqrt()) as f32;
        let mean: Vec<f32> = self.mean.iter().map(|mean| *mean as f32).collect();
        let center = if self.count > 0.0 { mean.clone() } else { center(first).unwrap_or_else(|| mean.clone()) };
        Scaling { mean, scale: self.variance().into_iter().map(scale).collect(), center }
    }
}

/// The first observation whose values are all numbers that count; else what counts of the first, with 0 for other values.
fn center(observations: impl Iterator<Item = Vec<f32>>) -> Option<Vec<f32>> {
    let counts = |value: &f32| value.abs() <= FARTHEST;
    let mut first = None;
    for mut observation in observations.take(MOST_ASKED) {
        if observation.iter().all(counts) {
            return Some(observation);
        }
        observation.iter_mut().filter(|value| !counts(value)).for_each(|value| *value = 0.0);
        first.get_or_insert(observation);
    }
    first
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

    /// Continues with saved statistics. Refuses statistics of other observations, and any where observations are not
    /// normalized.
    pub(super) fn restore(&mut self, saved: ObservationNormalizer) -> Result<(), RolloutError> {
        let (found, expected) = (saved.mean().len(), self.size);
        if found != expected {
            return Err(RolloutError::NormalizerSize { found, expected });
        }
        if self.statistics.is_none() {
            return Err(RolloutError::NotNormalized);
        }
        self.statistics = Some(saved.validate()?);
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
    ///
    /// # Panics
    ///
    /// Panics if the episodes are of rollouts that have not normalized such observations.
    #[track_caller]
    pub(super) fn update(&mut self, episodes: &EpisodeStatistics) {
        if let Some(statistics) = &mut self.statistics {
            let found = episodes.moments.size();
            assert!(
                found == self.size || episodes.lengths().is_empty(),
                "update_normalizer: the episodes have statistics of {found} observed values, and observations here have {}: give the \
                 episodes that these rollouts have run",
                self.size
            );
            statistics.add(&episodes.moments);
        }
    }

    pub(super) fn scaling(&self, first: impl Iterator<Item = Vec<f32>>) -> Option<Scaling> {
        self.statistics().map(|statistics| statistics.prepare(first))
    }

    /// Numbers of an episode's row: its return, its length, and the sums of the statistics.
    pub(super) fn row_width(&self) -> usize {
        2 + self.statistics().map_or(0, |_| Scaling::sums(self.size))
    }
}

/// `(o − mean)·scale` within limits, and sums of `d = o − center`.
#[derive(Clone, Debug)]
pub(super) struct Scaling {
    mean: Vec<f32>,
    scale: Vec<f32>,
    center: Vec<f32>,
}

impl Scaling {
    /// Sums of an environment: of `d` and `d²` for each value of an observation, and of observations that are left out.
    pub(super) fn sums(size: usize) -> usize {
        2 * size + 1
    }

    /// What distances are measured from.
    pub(super) fn center(&self) -> &[f32] {
        &self.center
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
            if counts {
                let distance = *value - self.center[i];
                sums[i] += distance;
                squares[i] += distance * distance;
            }
            *value = ((*value - self.mean[i]) * self.scale[i]).clamp(-LIMIT, LIMIT);
        }
        left_out[0] += if counts { 0.0 } else { 1.0 };
    }

    /// For the kernel of a device.
    pub(super) fn in_kernel(&self) -> KernelScaling<'_> {
        let Self { mean, scale, center } = self;
        KernelScaling { mean, scale, center, limit: LIMIT, farthest: FARTHEST }
    }

    /// On a device, for rows of observations.
    pub(super) fn on_device(&self, device: &Device) -> DeviceScaling {
        let row = |values: &Vec<f32>| Tensor::<1>::from_floats(values.as_slice(), device).unsqueeze::<2>(); // [1, size]
        DeviceScaling { mean: row(&self.mean), scale: row(&self.scale), center: row(&self.center) }
    }
}

/// [`Scaling`] on a device.
pub(super) struct DeviceScaling {
    mean: Tensor<2>,
    scale: Tensor<2>,
    center: Tensor<2>,
}

impl DeviceScaling {
    /// Normalizes observations `[rows, size]`. Also returns `[rows, 2 · size + 1]`: `[d, d², 0]`, `[0, 0, 1]` of an
    /// observation that is left out, and zeros where `live` is 0.
    pub(super) fn apply(&self, observations: Tensor<2>, live: Tensor<1>) -> (Tensor<2>, Tensor<2>) {
        let distance = observations.clone() - self.mean.clone();
        // Shaders need not compare NaN as IEEE 754 does: it is asked for.
        let far = distance.clone().abs().greater_elem(FARTHEST).bool_or(distance.clone().is_nan());
        let left_out = far.float().max_dim(1); // [rows, 1]
        let without = left_out.clone().greater_elem(0.0).expand(distance.dims());
        let summed = (observations - self.center.clone()).mask_fill(without, 0.0);
        let sums = Tensor::cat(vec![summed.clone(), summed.clone() * summed, left_out], 1);
        let normalized = (distance * self.scale.clone()).clamp(-LIMIT, LIMIT);
        // What stands still is not seen again.
        let frozen = live.equal_elem(0.0).unsqueeze_dim::<2>(1).expand(sums.dims());
        (normalized, sums.mask_fill(frozen, 0.0))
    }
}
