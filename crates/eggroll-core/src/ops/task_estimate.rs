//! Weighted sums of noise where every task has weights and an input row of its own.

use super::{LowRankNoise, NoiseSource, PairRange};
use crate::counters;
use crate::profile::{self, Component};
use burn::tensor::{DType, Tensor};

/// Elements of noise, or of what it makes of the rows, that are held at a time.
const MOST_ELEMENTS: usize = 1 << 24;

/// `Σ_t P_t·Σ_q w_tq·c·B_q·A_qᵀ` over tasks and the pairs `first_pair, first_pair + 1, …`, `c = σ/√r` and `P_t = x_tᵀ·x_t / |x_t|²`:
/// the estimate of every task from its own weights, projected onto the only row that the task gave the layer. A row of zeros gives nothing.
///
/// With signs in place of values if the noise says so. Composed of ordinary operations, in float32, which hold
/// 2²⁴ elements of factors at a time: `c·Σ_t x_tᵀ/|x_t|²·Σ_q w_tq·(x_t·B_q)·A_qᵀ`.
///
/// # Shapes
///
/// - weights: `[tasks, pairs]`, x: `[tasks, d_input]`
/// - output: `[d_input, d_output]`, of type `dtype`
///
/// # Panics
///
/// Panics if the shapes do not fit, the rank is 0, the noise is that of a transpose, or `source` does not hold the noise.
#[track_caller]
pub fn low_rank_task_estimate(
    weights: Tensor<2>,
    x: Tensor<2>,
    noise: LowRankNoise,
    source: &NoiseSource,
    first_pair: u32,
    d_output: usize,
    dtype: DType,
) -> Tensor<2> {
    assert!(noise.rank > 0, "task estimate: rank 0");
    assert!(!noise.transposed, "task estimate: of a parameter, not of its transpose");
    let _span = profile::span(Component::Estimate, 0);
    let ([tasks, pairs], [_, d_input], device) = (weights.dims(), x.dims(), x.device());
    check(&weights, &x);
    counters::add_launch();
    let (rank, x) = (noise.rank, x.cast(DType::F32));
    let elements = rank * (d_input + d_output);
    let sums = in_runs(pairs, elements.max(tasks * rank), |first, count| {
        let run = PairRange::new(first_pair + first as u32, count as u32);
        let drawn = source.noise(noise.key, run, elements, (&device, dtype)).cast(DType::F32);
        let drawn = if noise.signs { drawn.sign() } else { drawn };
        let b = drawn.clone().slice_dim(1, 0..rank * d_input).reshape([count * rank, d_input]);
        let a = drawn.slice_dim(1, rank * d_input..elements).reshape([count * rank, d_output]);
        let weights = weights.clone().slice_dim(1, first..first + count).unsqueeze_dim::<3>(2); // [tasks, count, 1]
        let weights = weights.expand([tasks, count, rank]).reshape([tasks, count * rank]);
        (x.clone().matmul(b.transpose()) * weights).matmul(a) // [tasks, d_output]
    });
    on_rows(sums.mul_scalar(noise.scale), x).cast(dtype)
}

/// The sum over runs of pairs that hold so many elements each.
pub(crate) fn in_runs<T: std::ops::Add<Output = T>>(
    pairs: usize,
    elements: usize,
    run: impl Fn(usize, usize) -> T,
) -> T {
    let most = (MOST_ELEMENTS / elements.max(1)).max(1);
    let runs = (0..pairs).step_by(most).map(|first| run(first, most.min(pairs - first)));
    runs.reduce(|sum, next| sum + next).expect("task estimate: no pairs")
}

/// `Σ_t x_tᵀ·y_t / |x_t|²` for `y : [tasks, d_output]`.
pub(crate) fn on_rows(y: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
    let squares = x.clone().square().sum_dim(1); // [tasks, 1]
    let inverse = squares.clone().clamp_min(f32::MIN_POSITIVE).recip();
    let inverse = inverse.mask_fill(squares.equal_elem(0.0), 0.0);
    x.transpose().matmul(y * inverse)
}

#[track_caller]
pub(crate) fn check(weights: &Tensor<2>, x: &Tensor<2>) {
    assert!(
        weights.dims()[0] == x.dims()[0],
        "task estimate: weights {:?} of tasks do not fit one input row for each task, {:?}",
        weights.dims(),
        x.dims()
    );
}
