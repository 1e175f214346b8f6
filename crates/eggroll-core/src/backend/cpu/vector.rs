//! `θ + s·σ·ε` for every member.

use super::linear::BiasSlice;
use crate::ops::{DenseNoise, PairRange};
use rayon::prelude::*;

/// Writes `y : [members, n]`.
pub(crate) fn perturbed_vector(vector: &[f32], noise: DenseNoise, pairs: PairRange, y: &mut [f32]) {
    if y.is_empty() {
        return;
    }
    let bias = BiasSlice::Perturbed(vector, noise);
    y.par_chunks_exact_mut(2 * vector.len()).enumerate().for_each(|(p, y)| bias.fill_pair(pairs.first + p as u32, y));
}
