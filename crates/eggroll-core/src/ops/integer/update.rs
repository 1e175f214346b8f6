//! The update of an integer parameter by votes.

use super::{IntegerOps, check_votes, traced};
use crate::arithmetic::integer::Votes;
use crate::work::counters;
use crate::work::profile::Component;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// Moves every weight with a strong enough vote by one. With `Z = Σ_q f_q·B_q·A_qᵀ` (the product of its two factors for a
/// vector; signs of the factors for [`Votes::Signs`]),
///
/// `θ' = θ` if `|Z| < limit`, else `clip(θ + 1)` if `Z > 0`, else `clip(θ − 1)`.
///
/// The limit comes from [`crate::arithmetic::integer::step_limit`]; `Z` is int32 and wraps.
///
/// # Shapes
///
/// - parameter: any; a matrix `[d_input, d_output]` for `rank > 0`, taken as a vector of `n` elements for rank 0
/// - noise: `[pairs, rank·(d_input + d_output)]` or `[pairs, 2·n]`
/// - scores: `[pairs]`, small: int8 holds their products with noise
/// - output: as the parameter
///
/// # Panics
///
/// Panics if shapes do not fit, with the shapes.
#[track_caller]
pub fn update<const D: usize>(
    parameter: Tensor<D, Int>,
    noise: Tensor<2, Int>,
    scores: Tensor<1, Int>,
    rank: usize,
    votes: Votes,
    limit: i32,
) -> Tensor<D, Int> {
    check_votes("integer update", &noise, &scores, rank, &parameter.dims());
    counters::add_launch();
    traced(Component::Optimizer, || {
        let (parameter, noise, scores) = (parameter.into_dispatch(), noise.into_dispatch(), scores.into_dispatch());
        Tensor::from_dispatch(Dispatch::integer_update(parameter, noise, scores, rank, votes, limit))
    })
}
