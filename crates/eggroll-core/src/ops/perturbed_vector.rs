//! Perturbed vector.

use super::checks::check_pairs;
use super::{DenseNoise, NoiseSource, PairRange, PerturbedOps};
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::Tensor;

/// A vector parameter under every member's noise: `θ + s·σ·ε`.
///
/// # Shapes
///
/// - vector: `[n]`
/// - output: `[members, n]`
///
/// # Panics
///
/// Panics if there are no members or `source` does not hold the noise.
#[track_caller]
pub fn perturbed_vector(vector: Tensor<1>, noise: DenseNoise, source: NoiseSource, pairs: PairRange) -> Tensor<2> {
    check_pairs("perturbed vector", pairs);
    source.check(pairs, vector.dims()[0]);
    counters::add_launch();
    Tensor::from_dispatch(Dispatch::perturbed_vector(vector.into_dispatch(), noise, source.into_primitive(), pairs))
}
