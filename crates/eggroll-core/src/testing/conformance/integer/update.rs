//! The update by votes.

use super::{RANKS, found, integers, transposed, with_portable_devices};
use crate::arithmetic::integer::{Votes, step_limit};
use crate::ops::integer::update;
use crate::rng::integer::fill_integers;
use crate::rng::key::NoiseKey;
use crate::testing::conformance::{Implementation, implementations};
use crate::testing::reference::integer as oracle;
use burn::tensor::{Int, Tensor};

struct UpdateCase {
    parameter: Vec<i8>,
    noise: Vec<i8>,
    scores: Vec<i8>,
    shape: [usize; 2],
    rank: usize,
}

impl UpdateCase {
    fn new(shape: [usize; 2], pairs: usize, rank: usize) -> Self {
        let [d_input, d_output] = shape;
        let elements = if rank == 0 { 2 * d_input * d_output } else { rank * (d_input + d_output) };
        let mut noise = vec![0; pairs * elements];
        for (pair, noise) in noise.chunks_mut(elements).enumerate() {
            fill_integers(NoiseKey::new(2, 2, 2), pair as u32, noise);
        }
        let mut parameter = integers(d_input * d_output, 127, 50);
        parameter.iter_mut().step_by(3).for_each(|value| *value = 127);
        parameter.iter_mut().skip(1).step_by(5).for_each(|value| *value = -127);
        Self { parameter, noise, scores: integers(pairs, 2, 51), shape, rank }
    }

    fn expected(&self, votes: Votes, limit: i32) -> Vec<i8> {
        let sums = oracle::votes(&self.noise, &self.scores, self.shape, self.rank, votes);
        self.parameter.iter().zip(sums).map(|(value, vote)| oracle::step(*value, vote, limit)).collect()
    }

    fn noise(&self, on: &Implementation) -> Tensor<2, Int> {
        on.ints(&self.noise, [self.scores.len(), self.noise.len() / self.scores.len()])
    }

    fn found(&self, on: &Implementation, scores: &[i8], votes: Votes, limit: i32) -> Vec<i8> {
        let (noise, scores) = (self.noise(on), on.ints(scores, [scores.len()]));
        let how = (self.rank, votes, limit);
        if self.rank == 0 {
            let parameter = on.ints(&self.parameter, [self.parameter.len()]);
            return found(on.integer_update(parameter, noise, scores, how));
        }
        found(on.integer_update(on.ints(&self.parameter, self.shape), noise, scores, how))
    }
}

/// [Sizes](super::SIZES) of a matrix, and pairs: one, fewer than shared memory holds at a time, and more.
const SHAPES: [([usize; 2], usize); 4] = [([1, 64], 1), ([19, 257], 7), ([64, 64], 70), ([257, 19], 7)];

/// A case for each of [`SHAPES`], as a matrix by [`RANKS`] and as a vector of its rows.
fn cases() -> impl Iterator<Item = UpdateCase> {
    SHAPES.into_iter().flat_map(|(shape, pairs)| {
        let of_rank = move |rank| UpdateCase::new(if rank == 0 { [1, shape[0]] } else { shape }, pairs, rank);
        RANKS.into_iter().chain([0]).map(of_rank)
    })
}

#[test]
fn equals_oracle() {
    for case in cases() {
        let (shape, rank) = (case.shape, case.rank);
        for (votes, limits) in [(Votes::Values, [1, i32::MAX]), (Votes::Signs, [0, 3])] {
            let step = step_limit(12, case.scores.len(), votes);
            for limit in [limits[0], limits[1], step] {
                let expected = case.expected(votes, limit);
                for on in implementations() {
                    let found = case.found(&on, &case.scores, votes, limit);
                    assert!(found == expected, "{}, {shape:?}, rank {rank}, {votes:?}, limit {limit}", on.name);
                }
            }
        }
    }
}

#[test]
fn sums_equal_oracle() {
    for case in cases() {
        let (shape, rank) = (case.shape, case.rank);
        for votes in [Votes::Values, Votes::Signs] {
            let expected = oracle::votes(&case.noise, &case.scores, shape, rank, votes);
            for on in implementations() {
                let sums = |scores: &[i8]| {
                    let scores = on.ints(scores, [scores.len()]);
                    let sums = on.integer_sum_votes(case.noise(&on), scores, (rank, votes), shape);
                    sums.into_iter().map(i64::from).collect::<Vec<_>>()
                };
                assert!(sums(&case.scores) == expected, "{}, {shape:?}, rank {rank}, {votes:?}", on.name);
                let negated: Vec<i8> = case.scores.iter().map(|score| -score).collect();
                let same = expected.iter().all(|vote| *vote == 0);
                assert!(same || sums(&negated) != expected, "canary: {}, {shape:?}, rank {rank}", on.name);
            }
        }
    }
}

/// Votes at a limit exactly, on both sides.
#[test]
fn limit_is_inclusive() {
    let case = UpdateCase::new([17, 32], 7, 1);
    let strongest = oracle::votes(&case.noise, &case.scores, case.shape, 1, Votes::Values);
    for side in [1, -1] {
        let limit = strongest.iter().map(|vote| side * vote).max().expect("votes") as i32;
        for on in implementations() {
            let at = case.found(&on, &case.scores, Votes::Values, limit);
            assert!(at == case.expected(Votes::Values, limit), "{}", on.name);
            let above = case.found(&on, &case.scores, Votes::Values, limit + 1);
            assert!(above == case.expected(Votes::Values, limit + 1), "{}", on.name);
        }
    }
}

/// No votes move nothing unless the limit is 0.
#[test]
fn ties_move_nothing() {
    for rank in [0, 1] {
        let case = UpdateCase::new([3, 17], 5, rank);
        for on in implementations() {
            assert!(case.found(&on, &[0; 5], Votes::Values, 1) == case.parameter, "{}", on.name);
            assert!(case.found(&on, &[0; 5], Votes::Values, 0) != case.parameter, "{}", on.name);
        }
    }
}

#[test]
fn canary_other_scores_fail() {
    for rank in [0, 1, 4] {
        let case = UpdateCase::new([17, 32], 7, rank);
        let negated: Vec<i8> = case.scores.iter().map(|score| -score).collect();
        for votes in [Votes::Values, Votes::Signs] {
            for on in implementations() {
                assert!(case.found(&on, &negated, votes, 1) != case.expected(votes, 1), "{}, {rank}", on.name);
            }
        }
    }
}

#[test]
fn strided_operands() {
    let case = UpdateCase::new([17, 35], 7, 4);
    let expected = case.expected(Votes::Values, 100);
    let elements = case.noise.len() / 7;
    for on in with_portable_devices() {
        let parameter = on.ints(&transposed(&case.parameter, 35), [35, 17]).transpose();
        let noise = on.ints(&transposed(&case.noise, elements), [elements, 7]).transpose();
        let how = (4, Votes::Values, 100);
        let found = found(on.integer_update(parameter, noise, on.ints(&case.scores, [7]), how));
        assert!(found == expected, "{}", on.name);
    }
}

#[test]
#[should_panic(expected = "the noise [7, 49] does not fit 6 scores and the parameter [17, 32] at rank 1")]
fn refuses_other_scores() {
    let (case, on) = (UpdateCase::new([17, 32], 7, 1), &implementations()[0]);
    update(on.ints(&case.parameter, [17, 32]), case.noise(on), on.ints(&[0; 6], [6]), 1, Votes::Values, 1);
}
