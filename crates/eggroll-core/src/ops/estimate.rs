//! Weighted sums of noise: what the gradient estimate is made of.

use super::{DenseNoise, LowRankNoise, PerturbedOps};
use crate::counters;
use burn::backend::Dispatch;
use burn::tensor::Tensor;

/// `Σ_q w_q·c·B_q·A_qᵀ` over the pairs `first_pair, first_pair + 1, …`, `c = σ/√r`.
///
/// Both members of a pair share their factors, so their fitness is folded first, `w_q = f_{2q} − f_{2q+1}`:
/// half the work.
///
/// # Shapes
///
/// - weights: `[pairs]`
/// - output: `shape = [d_input, d_output]`
///
/// # Panics
///
/// Panics if the rank is 0.
///
/// # References
///
/// Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652, Eq. 6.
#[track_caller]
pub fn low_rank_estimate(weights: Tensor<1>, noise: LowRankNoise, first_pair: u32, shape: [usize; 2]) -> Tensor<2> {
    assert!(noise.rank > 0, "low-rank estimate: rank 0");
    let [d_input, d_output] = shape;
    let weights = weights.into_dispatch();
    counters::add_launch();
    Tensor::from_dispatch(Dispatch::low_rank_estimate(weights, noise, first_pair, d_input, d_output))
}

/// `Σ_q w_q·σ·ε_q` over the pairs `first_pair, first_pair + 1, …`, flat.
///
/// # Shapes
///
/// - weights: `[pairs]`
/// - output: `[elements]`
pub fn dense_estimate(weights: Tensor<1>, noise: DenseNoise, first_pair: u32, elements: usize) -> Tensor<1> {
    let weights = weights.into_dispatch();
    counters::add_launch();
    Tensor::from_dispatch(Dispatch::dense_estimate(weights, noise, first_pair, elements))
}
