//! Products of matrices, and the tied head.

use super::{
    HostNoise, HostVector, RANKS, ROUNDINGS, found, integers, members, noises, oracle, transposed,
    with_portable_devices,
};
use crate::arithmetic::integer::{Rounding, product_divisor};
use crate::ops::integer::{IntegerNoise, head, linear};
use crate::rng::key::PairRange;
use crate::testing::conformance::{Implementation, implementations};
use burn::tensor::{Int, Tensor};

struct IntegerLinearCase {
    x: Vec<i8>,
    weight: Vec<i8>,
    shape: [usize; 2],
    noise: Option<HostNoise>,
    /// With [`Rounding::Nearest`], as the activation.
    bias: Option<HostVector>,
    activate: bool,
    rounding: Rounding,
}

impl IntegerLinearCase {
    /// Without a bias. `noise`: pairs, rank, sigma shift.
    fn new(shape: [usize; 2], rows: usize, noise: Option<(u32, usize, u32)>, rounding: Rounding) -> Self {
        let noise = noise.map(|(pairs, rank, sigma_shift)| {
            HostNoise::new(1, rank * (shape[0] + shape[1]), rank, sigma_shift, PairRange::new(5, pairs))
        });
        let rows = rows * members(noise.as_ref());
        let (x, weight) = (integers(rows * shape[0], 127, 1), integers(shape[0] * shape[1], 127, 2));
        Self { x, weight, shape, noise, bias: None, activate: false, rounding }
    }

    /// The same with a bias, perturbed where the weight is.
    fn with_bias(self) -> Self {
        let noise = self.noise.as_ref().map(|noise| (noise.pairs.count, noise.sigma_shift));
        Self { bias: Some(HostVector::new(self.shape[1], (0, 127), noise, 3)), ..self }
    }

    fn expected(&self) -> Vec<i8> {
        let of_bias = self.bias.as_ref().and_then(|bias| bias.noise.as_ref());
        let each = self.x.len() / self.shape[0] / members(self.noise.as_ref().or(of_bias));
        let row = |(r, x)| {
            let bias = self.bias.as_ref().map(|bias| bias.of(r / each, self.rounding));
            let noise = self.noise.as_ref().map(|noise| noise.member(r / each));
            oracle::linear(x, &self.weight, noise, bias.as_deref(), self.activate, self.rounding)
        };
        self.x.chunks(self.shape[0]).enumerate().flat_map(row).collect()
    }

    fn x(&self, on: &Implementation) -> Tensor<2, Int> {
        on.ints(&self.x, [self.x.len() / self.shape[0], self.shape[0]])
    }

    fn found(&self, on: &Implementation, noise: Option<&HostNoise>) -> Vec<i8> {
        let (weight, noise) = (on.ints(&self.weight, self.shape), noise.map(|noise| noise.on(on)));
        let bias = self.bias.as_ref().map(|bias| bias.on(on));
        found(on.integer_linear(self.x(on), weight, noise, bias, (self.activate, self.rounding)))
    }
}

/// [Sizes](super::SIZES) of a matrix, rows of a member, and pairs. There are 2 to 16 rows, where 16 are a tile. There are
/// several tiles across, partial tiles on both sides under several tiles of rows, and a deep sum into one column. More are in
/// [`many_rows_of_a_member`].
const SHAPES: [([usize; 2], usize, u32); 7] = [
    ([1, 19], 1, 1),
    ([19, 64], 3, 2),
    ([64, 257], 2, 4),
    ([257, 1], 1, 3),
    ([64, 64], 3, 1),
    ([64, 256], 1, 1),
    ([33, 70], 45, 1),
];

#[test]
fn equals_oracle() {
    for (shape, rows, pairs) in SHAPES {
        for noise in noises(pairs) {
            let floor = IntegerLinearCase::new(shape, rows, noise, Rounding::Floor);
            // Plain; with a bias, that is perturbed where the weight is; with the activation.
            let nearest = || IntegerLinearCase::new(shape, rows, noise, Rounding::Nearest);
            let activated = IntegerLinearCase { activate: true, ..nearest() };
            for case in [floor, nearest(), nearest().with_bias(), activated] {
                let expected = case.expected();
                for on in with_portable_devices() {
                    let found = case.found(&on, case.noise.as_ref());
                    assert!(found == expected, "{}, {shape:?}, {noise:?}, {:?}", on.name, case.rounding);
                }
            }
        }
    }
}

/// Above a tile of the largest height; columns above a tile.
#[test]
fn many_rows_of_a_member() {
    for rounding in ROUNDINGS {
        let case = IntegerLinearCase::new([33, 70], 130, Some((2, 4, 0)), rounding);
        let expected = case.expected();
        for on in implementations() {
            assert!(case.found(&on, case.noise.as_ref()) == expected, "{}, {rounding:?}", on.name);
        }
    }
}

/// One more column than kernels take at a time, and several times as many.
#[test]
fn high_rank() {
    for (rank, rounding) in [5, 16].into_iter().flat_map(|rank| ROUNDINGS.map(|rounding| (rank, rounding))) {
        let case = IntegerLinearCase::new([33, 20], 3, Some((3, rank, 0)), rounding);
        let expected = case.expected();
        for on in implementations() {
            assert!(case.found(&on, case.noise.as_ref()) == expected, "{}, rank {rank}, {rounding:?}", on.name);
        }
    }
}

/// The largest sums that int32 must hold, values of −128, and noise that a sigma shift of 24 makes vanish.
#[test]
fn extremes() {
    for (shape, rank, sigma_shift) in [([8192, 33], 1, 0), ([64, 40], 128, 0), ([64, 40], 2, 24)] {
        let mut case = IntegerLinearCase::new(shape, 1, Some((1, rank, sigma_shift)), Rounding::Nearest).with_bias();
        case.x.fill(127);
        case.weight.fill(127);
        case.x[..shape[0]].iter_mut().step_by(2).for_each(|value| *value = -128);
        let noise = case.noise.as_mut().expect("a case with noise");
        noise.values.fill(127);
        if sigma_shift > 0 {
            noise.values.iter_mut().step_by(3).for_each(|value| *value = -127);
        }
        let expected = case.expected();
        for on in with_portable_devices() {
            assert!(case.found(&on, case.noise.as_ref()) == expected, "{}, {shape:?}, rank {rank}", on.name);
        }
    }
}

/// Nothing is multiplied, and nothing written.
#[test]
fn empty_operands() {
    for on in with_portable_devices() {
        let x = on.ints(&[], [0, 8]);
        for rounding in ROUNDINGS {
            let y = on.integer_linear(x.clone(), on.ints(&[1; 16], [8, 2]), None, None, (false, rounding));
            assert_eq!(y.dims(), [0, 2], "{}, {rounding:?}", on.name);
        }
    }
    let on = &implementations()[0];
    for rounding in ROUNDINGS {
        let y = linear(on.ints(&[0; 24], [3, 8]), on.ints(&[], [8, 0]), None, None, false, rounding);
        assert_eq!(y.dims(), [3, 0], "{rounding:?}");
    }
    assert_eq!(head(on.ints(&[0; 24], [3, 8]), on.ints(&[], [0, 8]), None).dims(), [3, 0]);
}

/// A frozen matrix under a bias that is perturbed, over several tasks.
#[test]
fn noise_of_the_bias_alone() {
    let case = IntegerLinearCase {
        noise: None,
        ..IntegerLinearCase::new([16, 40], 50, Some((3, 1, 0)), Rounding::Nearest).with_bias()
    };
    let expected = case.expected();
    for on in with_portable_devices() {
        assert!(case.found(&on, None) == expected, "{}", on.name);
    }
}

#[test]
fn canary_other_noise_fails() {
    for (rank, rounding) in RANKS.into_iter().flat_map(|rank| ROUNDINGS.map(|rounding| (rank, rounding))) {
        let case = IntegerLinearCase::new([17, 64], 3, Some((3, rank, 0)), rounding);
        let noise = case.noise.as_ref().expect("a case with noise");
        let expected = case.expected();
        let finer = HostNoise { sigma_shift: 1, ..noise.clone() };
        for on in implementations() {
            let differs = |other: Option<&HostNoise>| case.found(&on, other) != expected;
            assert!(differs(Some(&noise.shifted())), "{}: neighboring pairs, {rounding:?}", on.name);
            assert!(differs(Some(&finer)), "{}: another sigma, {rounding:?}", on.name);
            assert!(differs(None), "{}: no noise, {rounding:?}", on.name);
        }
    }
}

/// Division that cuts towards zero, or shifts before the sign, would show.
#[test]
fn canary_truncation_fails() {
    let case = IntegerLinearCase::new([17, 64], 3, None, Rounding::Floor);
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

/// What noise adds before clipping is the same for both members, with opposite signs: with one row for both and weights of 0.
#[test]
fn members_of_a_pair_are_antithetic() {
    let mut case = IntegerLinearCase::new([64, 40], 1, Some((2, 3, 1)), Rounding::Nearest);
    case.weight.fill(0);
    let row: Vec<i8> = case.x[..64].to_vec();
    case.x = row.repeat(4);
    for on in with_portable_devices() {
        let y = case.found(&on, case.noise.as_ref());
        for pair in y.chunks(80) {
            assert!((0..40).all(|c| pair[c] == -pair[40 + c]), "{}", on.name);
            assert!(pair.iter().any(|value| *value != 0), "{}: canary", on.name);
        }
    }
}

#[test]
fn chunks_change_no_bit() {
    let case = IntegerLinearCase::new([64, 33], 3, Some((4, 4, 0)), Rounding::Floor);
    let noise = case.noise.as_ref().expect("a case with noise");
    for on in implementations() {
        let whole = case.found(&on, Some(noise));
        let chunk = |first: u32| {
            let rows = 6 * first as usize..6 * (first as usize + 2);
            let noise = IntegerNoise { pairs: PairRange::new(noise.pairs.first + first, 2), ..noise.on(&on) };
            let (x, weight) = (case.x(&on).slice(rows), on.ints(&case.weight, case.shape));
            found(on.integer_linear(x, weight, Some(noise), None, (false, case.rounding)))
        };
        assert!([chunk(0), chunk(2)].concat() == whole, "{}", on.name);
    }
}

#[test]
fn strided_operands() {
    let case = IntegerLinearCase::new([17, 35], 3, Some((2, 4, 4)), Rounding::Floor);
    let noise = case.noise.as_ref().expect("a case with noise");
    let expected = case.expected();
    for on in with_portable_devices() {
        let x = on.ints(&transposed(&case.x, 17), [17, case.x.len() / 17]).transpose();
        let weight = on.ints(&transposed(&case.weight, 35), [35, 17]).transpose();
        let y = on.integer_linear(x, weight, Some(noise.strided_on(&on)), None, (false, case.rounding));
        assert!(found(y) == expected, "{}", on.name);
    }
}

#[test]
fn head_equals_oracle() {
    // Below a word, whole words in several tiles, and a rest on both sides.
    for ([vocab, width], rows) in [([3, 2], 1), ([256, 64], 3), ([41, 17], 45)] {
        for noise in [None, Some((1, 1, 4)), Some((2, 3, 0))] {
            let held = noise.map(|(pairs, rank, sigma_shift)| {
                HostNoise::new(4, rank * (vocab + width), rank, sigma_shift, PairRange::new(3, pairs))
            });
            let rows = rows * members(held.as_ref());
            let (x, weight) = (integers(rows * width, 127, 5), integers(vocab * width, 127, 6));
            let each = rows / members(held.as_ref());
            let row = |(r, x)| oracle::head(x, &weight, held.as_ref().map(|noise| noise.member(r / each)));
            let expected: Vec<i32> = x.chunks(width).enumerate().flat_map(row).collect();
            for on in with_portable_devices() {
                let (x, weight) = (on.ints(&x, [rows, width]), on.ints(&weight, [vocab, width]));
                let found = on.integer_head(x, weight, held.as_ref().map(|noise| noise.on(&on)));
                assert!(found == expected, "{}, {vocab} × {width}, {noise:?}", on.name);
            }
        }
    }
}

/// Logits beyond ±32767 are held there.
#[test]
fn logits_saturate() {
    let (x, weight) = (vec![127; 4096], vec![127; 4096]);
    for on in with_portable_devices() {
        let found = on.integer_head(on.ints(&x, [1, 4096]), on.ints(&weight, [1, 4096]), None);
        assert_eq!(found, [32767], "{}", on.name);
    }
}

fn call(x: [usize; 2], weight: [usize; 2], noise: Option<HostNoise>) {
    let on = &implementations()[0];
    let zeros = |shape: [usize; 2]| on.ints(&vec![0; shape[0] * shape[1]], shape);
    linear(zeros(x), zeros(weight), noise.map(|noise| noise.on(on)), None, false, Rounding::Floor);
}

#[test]
#[should_panic(expected = "the input [4, 5] does not fit the weight [6, 2]")]
fn refuses_other_width() {
    call([4, 5], [6, 2], None);
}

#[test]
#[should_panic(expected = "5 rows are not a multiple of 4 members")]
fn refuses_uneven_rows() {
    call([5, 6], [6, 2], Some(HostNoise::new(1, 8, 1, 0, PairRange::new(1, 2))));
}

#[test]
#[should_panic(expected = "the noise [4, 7] of pairs 0..4 is not that of pairs 1..3 with 8 elements")]
fn refuses_noise_of_another_parameter() {
    call([4, 6], [6, 2], Some(HostNoise::new(1, 7, 1, 0, PairRange::new(1, 2))));
}

#[test]
#[should_panic(expected = "the noise [4, 8] of pairs 0..4 is not that of pairs 3..5 with 8 elements")]
fn refuses_pairs_that_are_not_held() {
    let noise = HostNoise::new(1, 8, 1, 0, PairRange::new(1, 2));
    call([4, 6], [6, 2], Some(noise.shifted().shifted()));
}

#[test]
#[should_panic(expected = "a sigma shift of 25 is above 24")]
fn refuses_large_sigma_shift() {
    call([4, 6], [6, 2], Some(HostNoise::new(1, 8, 1, 25, PairRange::new(1, 2))));
}

#[test]
#[should_panic(expected = "noise of rank 100 over 256 values: int32 holds the sums of a rank from 1 to 32")]
fn refuses_noise_that_int32_does_not_hold() {
    let on = &implementations()[0];
    let noise = HostNoise::new(1, 100 * (256 + 2), 100, 0, PairRange::new(1, 1));
    head(on.ints(&[0; 512], [2, 256]), on.ints(&[0; 512], [2, 256]), Some(noise.on(on)));
}

#[test]
#[should_panic(expected = "the bias [3] does not fit rows of 2")]
fn refuses_another_bias() {
    let on = &implementations()[0];
    let bias = HostVector::new(3, (0, 5), None, 1).on(on);
    linear(on.ints(&[0; 24], [4, 6]), on.ints(&[0; 12], [6, 2]), None, Some(bias), false, Rounding::Nearest);
}

#[test]
#[should_panic(expected = "there is no bias with Floor")]
fn refuses_a_bias_that_is_not_there() {
    let on = &implementations()[0];
    let bias = HostVector::new(2, (0, 5), None, 1).on(on);
    linear(on.ints(&[0; 24], [4, 6]), on.ints(&[0; 12], [6, 2]), None, Some(bias), false, Rounding::Floor);
}

#[test]
#[should_panic(expected = "there is no activation with Floor")]
fn refuses_an_activation_that_is_not_there() {
    let on = &implementations()[0];
    linear(on.ints(&[0; 24], [4, 6]), on.ints(&[0; 12], [6, 2]), None, None, true, Rounding::Floor);
}
