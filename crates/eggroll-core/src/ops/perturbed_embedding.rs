//! Perturbed embedding.

use super::checks::{check_rows, low_rank_elements};
use super::{LinearMembers, MatrixNoise, NoiseSource, PerturbedOps};
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// Rows of the weights `W + s·c·B·Aᵀ`, or `W + s·σ·ε`, of every member, none of which is formed:
///
/// `y = W[k] + s·c·B[k]·Aᵀ`, or `W[k] + s·σ·ε[k]`, for every index `k`; `s = ±1` for even and odd members.
///
/// The noise is the same as in a linear operation with the same weight. With
/// [`LowRankNoise::transposed`](super::LowRankNoise::transposed) the output layer tied to an embedding has the same members.
///
/// # Shapes
///
/// - weight: `[count, d_model]`
/// - indices: `[members · rows]`, or `[rows]` if `members.input` is shared; each below `count`
/// - output: `[members · rows, d_model]`, member-major
///
/// # Panics
///
/// Panics, with both shapes, if the indices are not a multiple of the members, or `source` does not hold the noise. Also if there are no
/// members, the rank is 0, or the noise is for a transpose or counts signs. An index outside the rows panics on the CPU and gives NaN or
/// wrong values elsewhere, as in Burn's select.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use eggroll_core::ops::{InputRows, LinearMembers, LowRankNoise, MatrixNoise, NoiseSource, PairRange, perturbed_embedding};
/// use eggroll_core::NoiseKey;
///
/// let device = Device::flex();
/// let weight = Tensor::<2>::ones([5, 3], &device);
/// let tokens = Tensor::<1, Int>::from_ints([4, 0, 4], &device);
/// let noise = MatrixNoise::LowRank(LowRankNoise::new(NoiseKey::new(0, 0, 0), 1, 0.1));
/// let members = LinearMembers { pairs: PairRange::new(0, 2), input: InputRows::Shared };
/// let y = perturbed_embedding(weight, tokens, noise, NoiseSource::Drawn, members);
/// assert_eq!(y.dims(), [4 * 3, 3]);
/// ```
///
/// # References
///
/// Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652, Eq. 4.
#[track_caller]
pub fn perturbed_embedding(
    weight: Tensor<2>,
    indices: Tensor<1, Int>,
    noise: MatrixNoise,
    source: NoiseSource,
    members: LinearMembers,
) -> Tensor<2> {
    let (name, [rows], shape) = ("perturbed embedding", indices.dims(), weight.dims());
    check_rows(name, rows, shape[1], &members);
    assert!(!noise.is_transposed(), "{name}: rows are of the weight {shape:?} itself, not of its transpose");
    let elements = match noise {
        MatrixNoise::LowRank(noise) => {
            assert!(!noise.signs, "{name}: signs of factors are for estimates");
            low_rank_elements(name, noise.rank, shape)
        }
        MatrixNoise::Dense(_) => shape[0] * shape[1],
    };
    source.check(members.pairs, elements);
    counters::add_launch();
    let (weight, indices) = (weight.into_dispatch(), indices.into_dispatch());
    Tensor::from_dispatch(Dispatch::perturbed_embedding(weight, indices, noise, source.into_primitive(), members))
}
