//! The update of a parameter by votes.

use super::{at_least, clip, constant, not, reshape, wide};
use crate::arithmetic::integer::Votes;
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::{IntDType, Shape, Slice};

pub(crate) fn update<B: Backend>(
    parameter: IntTensor<B>,
    noise: IntTensor<B>,
    scores: IntTensor<B>,
    rank: usize,
    votes: Votes,
    limit: i32,
) -> IntTensor<B> {
    let (shape, dtype) = (parameter.shape(), parameter.dtype());
    let votes = B::int_reshape(votes_of_pairs::<B>(noise, scores, &shape, rank, votes), shape);
    // A limit of 0 also moves weights without votes: down.
    let limit = limit.max(0);
    let up = at_least::<B>(votes.clone(), limit.max(1));
    let down = not::<B>(at_least::<B>(votes, 1 - limit));
    let (by, moves) = (B::int_sub(up.clone(), down.clone()), B::int_add(up, down));
    let parameter = wide::<B>(parameter);
    let moved = clip::<B>(B::int_add(parameter.clone(), by));
    let change = B::int_mul(B::int_sub(moved, parameter.clone()), moves);
    B::int_cast(B::int_add(parameter, change), dtype.into())
}

/// `Z` of every weight of a parameter `[d_input, d_output]`, int32.
pub(crate) fn sum_votes<B: Backend>(
    noise: IntTensor<B>,
    scores: IntTensor<B>,
    rank: usize,
    votes: Votes,
    shape: [usize; 2],
) -> IntTensor<B> {
    let sums = votes_of_pairs::<B>(noise, scores, &shape, rank, votes);
    B::int_cast(B::int_reshape(sums, Shape::new(shape)), IntDType::I32)
}

/// `Z` of every weight.
fn votes_of_pairs<B: Backend>(
    noise: IntTensor<B>,
    scores: IntTensor<B>,
    shape: &[usize],
    rank: usize,
    votes: Votes,
) -> IntTensor<B> {
    let (pairs, n) = (scores.shape()[0], shape.iter().product());
    if pairs == 0 {
        return constant::<B, 1>(vec![0; n], [n], &scores.device());
    }
    let noise = match votes {
        Votes::Values => wide::<B>(noise),
        Votes::Signs => B::int_clamp(wide::<B>(noise), Scalar::from(-1), Scalar::from(1)),
    };
    let part = |start: usize, len: usize| {
        B::int_slice(noise.clone(), &[Slice::from(0..pairs), Slice::from(start..start + len)])
    };
    let scores = reshape::<B, 2>(wide::<B>(scores), [pairs, 1]);
    if rank == 0 {
        let product = B::int_mul(part(0, n), part(n, n)); // [pairs, n]
        return B::int_sum_dim(B::int_mul(product, scores), 0);
    }
    let (d_input, d_output) = (shape[0], shape[1]);
    let b = reshape::<B, 2>(part(0, rank * d_input), [pairs * rank, d_input]);
    let a = B::int_mul(part(rank * d_input, rank * d_output), scores);
    B::int_matmul(B::int_swap_dims(b, 0, 1), reshape::<B, 2>(a, [pairs * rank, d_output]))
}
