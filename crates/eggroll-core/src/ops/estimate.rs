//! Weighted sums of noise, the terms of the gradient estimate.

use super::{DenseNoise, LowRankNoise, NoiseSource, PairRange, PerturbedOps};
use crate::work::counters;
use crate::work::profile::{self, Component};
use burn::backend::Dispatch;
use burn::tensor::{DType, Tensor};

/// `Σ_q w_q·c·B_q·A_qᵀ` over the pairs `first_pair, first_pair + 1, …`, `c = σ/√r`; `sign(B_q)·sign(A_q)ᵀ` in place of the product
/// if the noise says so, where the sign of 0 is 0.
///
/// Both members of a pair share their factors, so their fitness is folded first, `w_q = f_{2q} − f_{2q+1}`:
/// half the work.
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
/// Panics if the rank is 0, the noise is that of a transpose, or `source` does not hold the noise.
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
    assert!(noise.rank > 0, "low-rank estimate: rank 0");
    assert!(!noise.transposed, "low-rank estimate: of a parameter {shape:?}, not of its transpose");
    let [d_input, d_output] = shape;
    source.check(PairRange::new(first_pair, weights.dims()[0] as u32), noise.rank * (d_input + d_output));
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
/// Panics if the noise is that of a transpose or `source` does not hold the noise.
#[track_caller]
pub fn dense_estimate(
    weights: Tensor<1>,
    noise: DenseNoise,
    source: NoiseSource,
    first_pair: u32,
    elements: usize,
    dtype: DType,
) -> Tensor<1> {
    assert!(!noise.transposed, "dense estimate: of a parameter of {elements} elements, not of its transpose");
    source.check(PairRange::new(first_pair, weights.dims()[0] as u32), elements);
    let span = profile::span(Component::Estimate, 0);
    let (weights, source) = (weights.into_dispatch(), source.into_primitive());
    counters::add_launch();
    let sum = Dispatch::dense_estimate(weights, noise, source, first_pair, elements, dtype);
    let sum = Tensor::<1>::from_dispatch(sum);
    span.end_waiting(|| drop(sum.device().sync()));
    sum
}
