//! Votes of parts, each on its own row.

use super::integers;
use crate::arithmetic::integer::Votes;
use crate::ops::Input;
use crate::ops::integer::sum_part_votes;
use crate::rng::integer::fill_integers;
use crate::rng::key::NoiseKey;
use crate::testing::conformance::{Implementation, implementations};
use crate::testing::reference::integer::{self as oracle, PartRows};
use burn::tensor::{Int, Tensor, TensorData};

struct PartCase {
    noise: Vec<i8>,
    votes: Vec<i8>,
    given: PartRows,
    shape: [usize; 2],
    rank: usize,
}

impl PartCase {
    fn new(shape: [usize; 2], [rows, pairs, rank]: [usize; 3], given: impl Fn(usize) -> PartRows) -> Self {
        let elements = rank * (shape[0] + shape[1]);
        let mut noise = vec![0; pairs * elements];
        for (pair, noise) in noise.chunks_mut(elements).enumerate() {
            fill_integers(NoiseKey::new(2, 5, 2), pair as u32, noise);
        }
        Self { noise, votes: integers(rows * pairs, 7, 61), given: given(rows), shape, rank }
    }

    /// Int8 rows of this width, the second of zeros.
    fn rows(rows: usize, width: usize) -> Vec<i8> {
        let mut x = integers(rows * width, 90, 62);
        x.iter_mut().skip(width).take(width).for_each(|value| *value = 0);
        x
    }

    fn found(&self, on: &Implementation, votes: &[i8], kind: Votes) -> Vec<f64> {
        let elements = self.rank * (self.shape[0] + self.shape[1]);
        let noise = on.ints(&self.noise, [self.noise.len() / elements, elements]);
        let device = noise.device();
        let rows = |x: &[i8], width: usize| {
            Tensor::<2>::from_data(TensorData::new(x.to_vec(), [x.len() / width, width]).convert::<f32>(), &device)
        };
        let input = match &self.given {
            PartRows::Rows(x) => Input::Rows(rows(x, self.shape[0])),
            PartRows::Transposed(x) => Input::Transposed(rows(x, self.shape[1])),
            PartRows::Indices(indices) => {
                let indices: Vec<i32> = indices.iter().map(|index| *index as i32).collect();
                Input::Indices(Tensor::<1, Int>::from_ints(indices.as_slice(), &device))
            }
        };
        sum_part_votes(noise, votes, &[input], self.rank, kind, self.shape).into_data().iter::<f64>().collect()
    }
}

/// Each input, and more terms than a product takes at a time: of inputs, of pairs and of rows.
fn cases() -> Vec<PartCase> {
    let rows = |width: usize| move |rows| PartRows::Rows(PartCase::rows(rows, width));
    vec![
        PartCase::new([19, 257], [7, 3, 1], rows(19)),
        PartCase::new([1100, 3], [5, 2, 1], rows(1100)),
        PartCase::new([8, 5], [1500, 40, 4], rows(8)),
        PartCase::new([64, 19], [6, 3, 4], |rows| PartRows::Transposed(PartCase::rows(rows, 19))),
        PartCase::new([11, 64], [30, 5, 1], |rows| PartRows::Indices((0..rows).map(|row| row * 7 % 11).collect())),
    ]
}

#[test]
fn equals_oracle() {
    for case in cases() {
        for kind in [Votes::Values, Votes::Signs] {
            let expected = oracle::part_votes(&case.noise, &case.votes, &case.given, case.shape, case.rank, kind);
            for on in implementations() {
                let name = format!("{}, {:?}, rank {}, {kind:?}", on.name, case.shape, case.rank);
                assert!(case.found(&on, &case.votes, kind) == expected, "{name}");
                // The canary: the votes of another part on each row.
                let mut shuffled = case.votes.clone();
                shuffled.rotate_left(case.votes.len() / 2 + 1);
                assert!(case.found(&on, &shuffled, kind) != expected, "canary: {name}");
            }
        }
    }
}

#[test]
#[should_panic = "a vote of -8 is not within ±7"]
fn refuses_a_larger_vote() {
    let mut case = PartCase::new([4, 3], [2, 2, 1], |rows| PartRows::Rows(PartCase::rows(rows, 4)));
    case.votes[1] = -8;
    case.found(&implementations()[0], &case.votes, Votes::Values);
}

#[test]
#[should_panic = "4 votes of 2 pairs do not fit 3 rows"]
fn refuses_votes_of_other_rows() {
    let case = PartCase::new([4, 3], [2, 2, 1], |rows| PartRows::Rows(PartCase::rows(rows + 1, 4)));
    case.found(&implementations()[0], &case.votes, Votes::Values);
}
