//! Perturbed vector.

use super::{DenseNoise, PairRange, PerturbedOps};
use crate::counters;
use burn::backend::Dispatch;
use burn::tensor::Tensor;

/// A vector parameter as every member sees it: `θ + s·σ·ε`.
///
/// # Shapes
///
/// - vector: `[n]`
/// - output: `[members, n]`
///
/// # Panics
///
/// Panics if there are no members.
#[track_caller]
pub fn perturbed_vector(vector: Tensor<1>, noise: DenseNoise, pairs: PairRange) -> Tensor<2> {
    assert!(pairs.count > 0, "perturbed vector: no members");
    counters::add_launch();
    Tensor::from_dispatch(Dispatch::perturbed_vector(vector.into_dispatch(), noise, pairs))
}
