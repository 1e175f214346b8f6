//! Perturbed linear with dense noise.

use super::checks::check_linear;
use super::{DenseNoise, LinearBias, LinearMembers, NoiseSource, PerturbedOps};
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::Tensor;

/// Linear operation under the weights `W + s·σ·ε` of every member, none of which is formed:
///
/// `y = x·W + b + s·σ·x·ε`, `ε` i.i.d. N(0, 1), `s = ±1` for even and odd members.
///
/// # Shapes
///
/// - x: `[members · rows, d_input]`, or `[rows, d_input]` if `members.input` is shared
/// - weight: `[d_input, d_output]`, bias: `[d_output]`
/// - output: `[members · rows, d_output]`, member-major
///
/// # Panics
///
/// Panics if shapes do not fit, the rows are not a multiple of the members, or `source` does not hold the noise, with both shapes.
///
/// # References
///
/// Salimans et al., "Evolution Strategies as a Scalable Alternative to Reinforcement Learning", arXiv 1703.03864,
/// Algorithm 1.
#[track_caller]
pub fn dense_linear(
    x: Tensor<2>,
    weight: Tensor<2>,
    bias: LinearBias,
    noise: DenseNoise,
    source: NoiseSource,
    members: LinearMembers,
) -> Tensor<2> {
    check_linear(&x, &weight, &bias, &members);
    source.check(members.pairs, weight.dims()[0] * weight.dims()[1]);
    counters::add_launch();
    Tensor::from_dispatch(Dispatch::dense_linear(
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_primitive(),
        noise,
        source.into_primitive(),
        members,
    ))
}
