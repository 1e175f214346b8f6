//! Weighted sums of noise, the terms of the gradient estimate.

use super::checks::{check_range, len, low_rank_elements};
use super::{DenseNoise, LowRankNoise, NoiseSource, PairRange, PerturbedOps};
use crate::work::counters;
use crate::work::profile::{self, Component};
use burn::backend::Dispatch;
use burn::tensor::{DType, Tensor};

/// `Σ_q w_q·c·B_q·A_qᵀ` over the pairs `first_pair, first_pair + 1, …`, `c = σ/√r`. If the noise says so, `sign(B_q)·sign(A_q)ᵀ`
/// replaces the product; the sign of 0 is 0.
///
/// Both members of a pair share their factors, so their fitness is folded first, `w_q = f_{2q} − f_{2q+1}`,
/// which halves the work.
///
/// Noise and output have the type `dtype`, that of the parameter; weights and sums are float32, or float64 if `dtype` is.
///
/// # Shapes
///
/// - weights: `[pairs]`
/// - output: `shape = [d_input, d_output]`
///
/// # Panics
///
/// Panics if the rank is 0, the noise is for a transpose, or `source` does not hold the noise.
///
/// # References
///
/// Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652, Eq. 6.
#[track_caller]
pub fn low_rank_estimate(
    weights: Tensor<1>,
    noise: LowRankNoise,
    source: NoiseSource,
    first_pair: u32,
    shape: [usize; 2],
    dtype: DType,
) -> Tensor<2> {
    let (name, [d_input, d_output]) = ("low-rank estimate", shape);
    assert!(!noise.transposed, "{name}: of a parameter {shape:?}, not of its transpose");
    len(name, &shape);
    source.check(pairs_of(name, first_pair, &weights), low_rank_elements(name, noise.rank, shape));
    let span = profile::span(Component::Estimate, 0);
    let (weights, source) = (weights.into_dispatch(), source.into_primitive());
    counters::add_launch();
    let sum = Dispatch::low_rank_estimate(weights, noise, source, first_pair, d_input, d_output, dtype);
    let sum = Tensor::<2>::from_dispatch(sum);
    span.end_waiting(|| drop(sum.device().sync()));
    sum
}

/// `Σ_q w_q·σ·ε_q` over the pairs `first_pair, first_pair + 1, …`, flat.
///
/// Noise and output have the type `dtype`, that of the parameter; weights and sums are float32, or float64 if `dtype` is.
///
/// # Shapes
///
/// - weights: `[pairs]`
/// - output: `[elements]`
///
/// # Panics
///
/// Panics if the noise is for a transpose or `source` does not hold the noise.
#[track_caller]
pub fn dense_estimate(
    weights: Tensor<1>,
    noise: DenseNoise,
    source: NoiseSource,
    first_pair: u32,
    elements: usize,
    dtype: DType,
) -> Tensor<1> {
    let name = "dense estimate";
    assert!(!noise.transposed, "{name}: of a parameter of {elements} elements, not of its transpose");
    len(name, &[elements]);
    source.check(pairs_of(name, first_pair, &weights), elements);
    let span = profile::span(Component::Estimate, 0);
    let (weights, source) = (weights.into_dispatch(), source.into_primitive());
    counters::add_launch();
    let sum = Dispatch::dense_estimate(weights, noise, source, first_pair, elements, dtype);
    let sum = Tensor::<1>::from_dispatch(sum);
    span.end_waiting(|| drop(sum.device().sync()));
    sum
}

/// The pairs of the weights.
#[track_caller]
fn pairs_of(operation: &str, first: u32, weights: &Tensor<1>) -> PairRange {
    let count = u32::try_from(weights.dims()[0]).unwrap_or(u32::MAX);
    let pairs = PairRange::new(first, count);
    check_range(operation, pairs);
    pairs
}
