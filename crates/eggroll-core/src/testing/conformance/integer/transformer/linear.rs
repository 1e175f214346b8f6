//! Products, and the tied head.

use super::{Held, HostVector, PairRange, found, integers, members, oracle, with_portable_devices};
use crate::ops::integer::transformer::{head, linear};
use crate::testing::conformance::{Implementation, implementations};

/// Matrices and rows of a member: below a word, a tile exactly, several tiles across, a rest on both sides under
/// several tiles of rows, and a deep sum into one column.
const SHAPES: [([usize; 2], usize); 5] = [([1, 3], 1), ([64, 64], 3), ([64, 256], 1), ([33, 70], 45), ([255, 1], 3)];

struct Case {
    x: Vec<i8>,
    weight: Vec<i8>,
    shape: [usize; 2],
    noise: Option<Held>,
    bias: Option<HostVector>,
    activate: bool,
}

impl Case {
    /// `noise`: pairs, rank, sigma shift.
    fn new(shape: [usize; 2], rows: usize, noise: Option<(u32, usize, u32)>, bias: bool, activate: bool) -> Self {
        let [d_input, d_output] = shape;
        let held = noise.map(|(pairs, rank, sigma_shift)| {
            Held::new(1, rank * (d_input + d_output), rank, sigma_shift, PairRange::new(5, pairs))
        });
        let of_bias = noise.map(|(pairs, _, sigma_shift)| (pairs, sigma_shift));
        let rows = rows * members(held.as_ref());
        Self {
            x: integers(rows * d_input, 127, 1),
            weight: integers(d_input * d_output, 127, 2),
            shape,
            noise: held,
            bias: bias.then(|| HostVector::new(d_output, (0, 127), of_bias, 3)),
            activate,
        }
    }

    fn expected(&self) -> Vec<i8> {
        let each = self.x.len() / self.shape[0] / members(self.noise.as_ref());
        let row = |(r, x)| {
            let bias = self.bias.as_ref().map(|bias| bias.of(r / each));
            let noise = self.noise.as_ref().map(|noise| noise.member(r / each));
            oracle::linear(x, &self.weight, noise, bias.as_deref(), self.activate)
        };
        self.x.chunks(self.shape[0]).enumerate().flat_map(row).collect()
    }

    fn found(&self, on: &Implementation, noise: Option<&Held>) -> Vec<i8> {
        let x = on.ints(&self.x, [self.x.len() / self.shape[0], self.shape[0]]);
        let weight = on.ints(&self.weight, self.shape);
        let bias = self.bias.as_ref().map(|bias| bias.on(on));
        found(on.transformer_linear(x, weight, noise.map(|noise| noise.on(on)), bias, self.activate))
    }
}

#[test]
fn equals_oracle() {
    for (shape, rows) in SHAPES {
        // A bias is perturbed where the weight is.
        let plain = [(None, false, false), (None, true, true)];
        let perturbed = [(Some((1, 1, 4)), false, true), (Some((2, 3, 0)), true, false)];
        for (noise, bias, activate) in plain.into_iter().chain(perturbed) {
            let case = Case::new(shape, rows, noise, bias, activate);
            let expected = case.expected();
            for on in with_portable_devices() {
                let found = case.found(&on, case.noise.as_ref());
                assert!(found == expected, "{}, {shape:?}, {noise:?}, {bias}, {activate}", on.name);
            }
        }
    }
}

/// The largest sums that int32 must hold, values of −128, and noise that a sigma shift of 24 makes vanish.
#[test]
fn extremes() {
    for (shape, rank, sigma_shift) in [([8192, 33], 1, 0), ([64, 40], 128, 0), ([64, 40], 2, 24)] {
        let mut case = Case::new(shape, 1, Some((1, rank, sigma_shift)), true, false);
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
        assert_eq!(
            on.transformer_linear(x, on.ints(&[1; 16], [8, 2]), None, None, false).dims(),
            [0, 2],
            "{}",
            on.name
        );
    }
    let on = &implementations()[0];
    assert_eq!(linear(on.ints(&[0; 24], [3, 8]), on.ints(&[], [8, 0]), None, None, false).dims(), [3, 0]);
    assert_eq!(head(on.ints(&[0; 24], [3, 8]), on.ints(&[], [0, 8]), None).dims(), [3, 0]);
}

/// A frozen matrix under a bias that is perturbed, over several tasks.
#[test]
fn noise_of_the_bias_alone() {
    let case = Case { noise: None, ..Case::new([16, 40], 50, Some((3, 1, 0)), true, false) };
    let bias = case.bias.as_ref().expect("a bias");
    let row = |(r, x)| oracle::linear(x, &case.weight, None, Some(&bias.of(r / 50)), false);
    let expected: Vec<i8> = case.x.chunks(16).enumerate().flat_map(row).collect();
    for on in with_portable_devices() {
        assert!(case.found(&on, None) == expected, "{}", on.name);
    }
}

#[test]
fn canary_other_noise_fails() {
    let case = Case::new([64, 33], 3, Some((3, 1, 0)), false, false);
    let noise = case.noise.as_ref().expect("a case with noise");
    let finer = Held { sigma_shift: 1, ..noise.clone() };
    for on in implementations() {
        for other in [Some(&noise.shifted()), Some(&finer), None] {
            assert!(case.found(&on, other) != case.expected(), "{}", on.name);
        }
    }
}

/// What noise adds before clipping is the same for both members, with opposite signs: with one row for both and weights of 0.
#[test]
fn members_of_a_pair_are_antithetic() {
    let mut case = Case::new([64, 40], 1, Some((2, 3, 1)), false, false);
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
fn head_equals_oracle() {
    // Below a word, whole words in several tiles, and a rest on both sides.
    for ([vocab, width], rows) in [([3, 2], 1), ([256, 64], 3), ([41, 17], 45)] {
        for noise in [None, Some((1, 1, 4)), Some((2, 3, 0))] {
            let held = noise.map(|(pairs, rank, sigma_shift)| {
                Held::new(4, rank * (vocab + width), rank, sigma_shift, PairRange::new(3, pairs))
            });
            let rows = rows * members(held.as_ref());
            let (x, weight) = (integers(rows * width, 127, 5), integers(vocab * width, 127, 6));
            let each = rows / members(held.as_ref());
            let row = |(r, x)| oracle::head(x, &weight, held.as_ref().map(|noise| noise.member(r / each)));
            let expected: Vec<i32> = x.chunks(width).enumerate().flat_map(row).collect();
            for on in with_portable_devices() {
                let (x, weight) = (on.ints(&x, [rows, width]), on.ints(&weight, [vocab, width]));
                let found = on.transformer_head(x, weight, held.as_ref().map(|noise| noise.on(&on)));
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
        let found = on.transformer_head(on.ints(&x, [1, 4096]), on.ints(&weight, [1, 4096]), None);
        assert_eq!(found, [32767], "{}", on.name);
    }
}

#[test]
#[should_panic(expected = "the input [4, 5] does not fit the weight [6, 2]")]
fn refuses_other_width() {
    let on = &implementations()[0];
    linear(on.ints(&[0; 20], [4, 5]), on.ints(&[0; 12], [6, 2]), None, None, false);
}

#[test]
#[should_panic(expected = "noise of rank 100 over 256 values: int32 holds the sums of a rank from 1 to 32")]
fn refuses_noise_that_int32_does_not_hold() {
    let on = &implementations()[0];
    let noise = Held::new(1, 100 * (256 + 2), 100, 0, PairRange::new(1, 1));
    head(on.ints(&[0; 512], [2, 256]), on.ints(&[0; 512], [2, 256]), Some(noise.on(on)));
}

#[test]
#[should_panic(expected = "the bias [3] does not fit rows of 2")]
fn refuses_another_bias() {
    let on = &implementations()[0];
    let bias = HostVector::new(3, (0, 5), None, 1).on(on);
    linear(on.ints(&[0; 24], [4, 6]), on.ints(&[0; 12], [6, 2]), None, Some(bias), false);
}
