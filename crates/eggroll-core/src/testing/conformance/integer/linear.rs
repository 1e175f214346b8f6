//! Product of matrices.

use super::{Held, RANKS, found, integers, members, noises, transposed, with_portable_devices};
use crate::arithmetic::integer::product_divisor;
use crate::ops::integer::{IntegerNoise, linear};
use crate::rng::key::PairRange;
use crate::testing::conformance::{Implementation, implementations};
use crate::testing::reference::integer as oracle;
use burn::tensor::{Int, Tensor};

struct Case {
    x: Vec<i8>,
    weight: Vec<i8>,
    shape: [usize; 2],
    noise: Option<Held>,
}

impl Case {
    fn new(shape: [usize; 2], rows: usize, noise: Option<(u32, usize, u32)>) -> Self {
        let noise = noise.map(|(pairs, rank, sigma_shift)| {
            Held::new(1, rank * (shape[0] + shape[1]), rank, sigma_shift, PairRange::new(5, pairs))
        });
        let rows = rows * members(noise.as_ref());
        Self { x: integers(rows * shape[0], 127, 1), weight: integers(shape[0] * shape[1], 127, 2), shape, noise }
    }

    fn expected(&self, noise: Option<&Held>) -> Vec<i8> {
        let each = self.x.len() / members(noise); // values of a member
        let row = |(m, x): (usize, &[i8])| oracle::linear(x, &self.weight, noise.map(|noise| noise.member(m)));
        let rows = self.x.chunks(self.shape[0]).enumerate();
        rows.flat_map(|(r, x)| row((r * self.shape[0] / each, x))).collect()
    }

    fn x(&self, on: &Implementation) -> Tensor<2, Int> {
        on.ints(&self.x, [self.x.len() / self.shape[0], self.shape[0]])
    }

    fn found(&self, on: &Implementation, noise: Option<&Held>) -> Vec<i8> {
        let noise = noise.map(|noise| noise.on(on));
        found(on.integer_linear(self.x(on), on.ints(&self.weight, self.shape), noise))
    }
}

/// [Sizes](super::SIZES) of a matrix, rows of a member, and pairs: 2 to 16 rows, of which 16 are a tile; more are in
/// [`many_rows_of_a_member`].
const SHAPES: [([usize; 2], usize, u32); 5] =
    [([1, 19], 1, 1), ([19, 64], 3, 2), ([64, 257], 2, 4), ([257, 1], 1, 3), ([64, 64], 3, 1)];

#[test]
fn equals_oracle() {
    for (shape, rows, pairs) in SHAPES {
        for noise in noises(pairs) {
            let case = Case::new(shape, rows, noise);
            let expected = case.expected(case.noise.as_ref());
            for on in implementations() {
                assert!(case.found(&on, case.noise.as_ref()) == expected, "{}, {shape:?}, {noise:?}", on.name);
            }
        }
    }
}

/// Above a tile of the largest height; columns above a tile.
#[test]
fn many_rows_of_a_member() {
    let case = Case::new([33, 70], 130, Some((2, 4, 0)));
    let expected = case.expected(case.noise.as_ref());
    for on in implementations() {
        assert!(case.found(&on, case.noise.as_ref()) == expected, "{}", on.name);
    }
}

/// One more column than kernels take at a time, and several times as many.
#[test]
fn high_rank() {
    for rank in [5, 16] {
        let case = Case::new([33, 20], 3, Some((3, rank, 0)));
        let expected = case.expected(case.noise.as_ref());
        for on in implementations() {
            assert!(case.found(&on, case.noise.as_ref()) == expected, "{}, rank {rank}", on.name);
        }
    }
}

#[test]
fn canary_other_noise_fails() {
    for rank in RANKS {
        let case = Case::new([17, 64], 3, Some((3, rank, 0)));
        let noise = case.noise.as_ref().expect("a case with noise");
        let expected = case.expected(Some(noise));
        let finer = Held { sigma_shift: 1, ..noise.clone() };
        for on in implementations() {
            assert!(case.found(&on, Some(&noise.shifted())) != expected, "{}: neighboring pairs", on.name);
            assert!(case.found(&on, Some(&finer)) != expected, "{}: another sigma", on.name);
            assert!(case.found(&on, None) != expected, "{}: no noise", on.name);
        }
    }
}

/// Division that cuts towards zero, or shifts before the sign, would show.
#[test]
fn canary_truncation_fails() {
    let case = Case::new([17, 64], 3, None);
    let truncated: Vec<i8> = case
        .x
        .chunks(17)
        .flat_map(|x| {
            (0..64).map(|o| (0..17).map(|i| i32::from(x[i]) * i32::from(case.weight[i * 64 + o])).sum::<i32>())
        })
        .map(|sum| (sum / product_divisor(17)).clamp(-127, 127) as i8)
        .collect();
    for on in implementations() {
        assert!(case.found(&on, None) != truncated, "{}", on.name);
    }
}

#[test]
fn chunks_change_no_bit() {
    let case = Case::new([64, 33], 3, Some((4, 4, 0)));
    let noise = case.noise.as_ref().expect("a case with noise");
    for on in implementations() {
        let whole = case.found(&on, Some(noise));
        let chunk = |first: u32| {
            let rows = 6 * first as usize..6 * (first as usize + 2);
            let noise = IntegerNoise { pairs: PairRange::new(noise.pairs.first + first, 2), ..noise.on(&on) };
            found(on.integer_linear(case.x(&on).slice(rows), on.ints(&case.weight, case.shape), Some(noise)))
        };
        assert!([chunk(0), chunk(2)].concat() == whole, "{}", on.name);
    }
}

#[test]
fn strided_operands() {
    let case = Case::new([17, 35], 3, Some((2, 4, 4)));
    let noise = case.noise.as_ref().expect("a case with noise");
    let expected = case.expected(Some(noise));
    for on in with_portable_devices() {
        let x = on.ints(&transposed(&case.x, 17), [17, case.x.len() / 17]).transpose();
        let weight = on.ints(&transposed(&case.weight, 35), [35, 17]).transpose();
        assert!(found(on.integer_linear(x, weight, Some(noise.strided_on(&on)))) == expected, "{}", on.name);
    }
}

fn call(x: [usize; 2], weight: [usize; 2], noise: Option<Held>) {
    let on = &implementations()[0];
    let zeros = |shape: [usize; 2]| on.ints(&vec![0; shape[0] * shape[1]], shape);
    linear(zeros(x), zeros(weight), noise.map(|noise| noise.on(on)));
}

#[test]
#[should_panic(expected = "the input [4, 5] does not fit the weight [6, 2]")]
fn refuses_other_width() {
    call([4, 5], [6, 2], None);
}

#[test]
#[should_panic(expected = "5 rows are not a multiple of 4 members")]
fn refuses_uneven_rows() {
    call([5, 6], [6, 2], Some(Held::new(1, 8, 1, 0, PairRange::new(1, 2))));
}

#[test]
#[should_panic(expected = "the noise [4, 7] of pairs 0..4 is not that of pairs 1..3 with 8 elements")]
fn refuses_noise_of_another_parameter() {
    call([4, 6], [6, 2], Some(Held::new(1, 7, 1, 0, PairRange::new(1, 2))));
}

#[test]
#[should_panic(expected = "the noise [4, 8] of pairs 0..4 is not that of pairs 3..5 with 8 elements")]
fn refuses_pairs_that_are_not_held() {
    let noise = Held::new(1, 8, 1, 0, PairRange::new(1, 2));
    call([4, 6], [6, 2], Some(noise.shifted().shifted()));
}

#[test]
#[should_panic(expected = "a sigma shift of 25 is above 24")]
fn refuses_large_sigma_shift() {
    call([4, 6], [6, 2], Some(Held::new(1, 8, 1, 25, PairRange::new(1, 2))));
}
