//! Perturbed linear with low-rank noise.

use super::checks::{check_linear, low_rank_elements};
use super::{LinearBias, LinearMembers, LowRankNoise, NoiseSource, PerturbedOps};
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::Tensor;

/// Linear operation under the weights `W + s·c·B·Aᵀ` of every member, none of which is formed:
///
/// `y = x·W + b + s·c·(x·B)·Aᵀ`, `c = σ/√r`, `s = ±1` for even and odd members.
///
/// # Shapes
///
/// - x: `[members · rows, d_input]`, or `[rows, d_input]` if `members.input` is shared
/// - weight: `[d_input, d_output]`, bias: `[d_output]`
/// - output: `[members · rows, d_output]`, member-major
///
/// # Panics
///
/// Panics, with both shapes, if they do not fit, the rows are not a multiple of the members, or `source` does not hold the noise. Also if the
/// rank is 0 or the noise counts signs.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::ops::{InputRows, LinearBias, LinearMembers, LowRankNoise, NoiseSource, PairRange, low_rank_linear};
/// use eggroll_core::NoiseKey;
///
/// let device = Device::flex();
/// let x = Tensor::<2>::ones([5, 3], &device);
/// let weight = Tensor::<2>::ones([3, 2], &device);
/// let noise = LowRankNoise::new(NoiseKey::new(0, 0, 0), 1, 0.1);
/// let members = LinearMembers { pairs: PairRange::new(0, 4), input: InputRows::Shared };
/// let y = low_rank_linear(x, weight, LinearBias::None, noise, NoiseSource::Drawn, members);
/// assert_eq!(y.dims(), [8 * 5, 2]);
/// ```
///
/// # References
///
/// Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652, Eq. 4.
#[track_caller]
pub fn low_rank_linear(
    x: Tensor<2>,
    weight: Tensor<2>,
    bias: LinearBias,
    noise: LowRankNoise,
    source: NoiseSource,
    members: LinearMembers,
) -> Tensor<2> {
    check_linear(&x, &weight, &bias, &members);
    assert!(!noise.signs, "perturbed linear: signs of factors are for estimates");
    source.check(members.pairs, low_rank_elements("perturbed linear", noise.rank, weight.dims()));
    counters::add_launch();
    Tensor::from_dispatch(Dispatch::low_rank_linear(
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_primitive(),
        noise,
        source.into_primitive(),
        members,
    ))
}
