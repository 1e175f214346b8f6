//! The votes of an integer parameter, without the step.

use super::{IntegerOps, check_votes, traced};
use crate::arithmetic::integer::Votes;
use crate::work::counters;
use crate::work::profile::Component;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// The votes `Z` that [`update`](super::update()) compares with its limit, for other kinds of updates.
///
/// # Shapes
///
/// - noise and scores as in [`update`](super::update()), for a parameter of the given shape
/// - output: `shape`, of type I32
///
/// # Panics
///
/// Panics if shapes do not fit, with the shapes.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use eggroll_core::integer::Votes;
/// use eggroll_core::ops::integer::sum_votes;
///
/// let device = Device::flex();
/// let noise = Tensor::<2, Int>::from_ints([[1, 2, 10, 20, 30], [3, 4, 1, 1, 1]], &device); // B of two rows, A of three
/// let scores = Tensor::<1, Int>::from_ints([1, -1], &device);
/// let votes = sum_votes(noise, scores, 1, Votes::Values, [2, 3]);
/// assert_eq!(votes.into_data().try_to_vec::<i32>().unwrap(), [7, 17, 27, 16, 36, 56]);
/// ```
#[track_caller]
pub fn sum_votes<const D: usize>(
    noise: Tensor<2, Int>,
    scores: Tensor<1, Int>,
    rank: usize,
    votes: Votes,
    shape: [usize; D],
) -> Tensor<D, Int> {
    check_votes("sum of votes", &noise, &scores, rank, &shape);
    let [d_input, d_output] = if rank > 0 { [shape[0], shape[1]] } else { [1, shape.iter().product()] };
    counters::add_launch();
    let sums = traced(Component::Optimizer, || {
        let (noise, scores) = (noise.into_dispatch(), scores.into_dispatch());
        Tensor::<2, Int>::from_dispatch(Dispatch::integer_sum_votes(noise, scores, rank, votes, d_input, d_output))
    });
    sums.reshape(shape)
}
