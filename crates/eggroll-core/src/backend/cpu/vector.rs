//! Noise by element: `θ + s·σ·ε` for every member, and the noise itself.

use super::linear::BiasSlice;
use super::source::SourceSlice;
use crate::ops::{DenseNoise, PairRange};
use crate::rng::fill_noise;
use crate::rng::key::NoiseKey;
use crate::work::profile::{self, Component};
use rayon::prelude::*;

/// Writes `y : [members, n]`.
pub(crate) fn perturbed_vector(
    vector: &[f32],
    noise: DenseNoise,
    source: SourceSlice,
    pairs: PairRange,
    y: &mut [f32],
) {
    if y.is_empty() {
        return;
    }
    let bias = BiasSlice::Perturbed(vector, noise, source);
    let traced = profile::enabled();
    y.par_chunks_exact_mut(2 * vector.len()).enumerate().for_each(|(p, y)| {
        let _span = profile::task(traced, Component::Noise, 4 * y.len());
        bias.fill_pair(pairs.first + p as u32, y);
    });
}

/// Writes `noise : [pairs, elements]`, in tasks of whole noise groups, so that one long row has many.
pub(crate) fn noise(key: NoiseKey, pairs: PairRange, elements: usize, noise: &mut [f32]) {
    const TASK: usize = 64 * 1024;
    if elements == 0 {
        return;
    }
    let traced = profile::enabled();
    noise.par_chunks_exact_mut(elements).enumerate().for_each(|(p, noise)| {
        let pair = pairs.first + p as u32;
        noise.par_chunks_mut(TASK).enumerate().for_each(|(task, noise)| {
            let _span = profile::task(traced, Component::Noise, 4 * noise.len());
            fill_noise(key, pair, task * TASK, noise);
        });
    });
}
