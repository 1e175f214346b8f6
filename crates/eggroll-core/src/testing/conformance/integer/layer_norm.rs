//! Layer norm by the mean magnitude.

use super::{Held, NOISES, SIZES, found, integers, members, transposed, with_portable_devices};
use crate::ops::integer::IntegerNoise;
use crate::rng::key::PairRange;
use crate::testing::conformance::{Implementation, implementations};
use crate::testing::reference::integer as oracle;

struct Case {
    x: Vec<i8>,
    weight: Vec<i8>,
    noise: Option<Held>,
}

impl Case {
    /// `largest` is the largest magnitude of an input: a small one makes means of 0.
    fn new(n: usize, rows: usize, largest: i8, noise: Option<(u32, u32)>) -> Self {
        let noise = noise.map(|(pairs, sigma_shift)| Held::new(3, 2 * n, 1, sigma_shift, PairRange::new(9, pairs)));
        let rows = rows * members(noise.as_ref());
        let mut x = integers(rows * n, largest, 4);
        if largest == 0 {
            x.iter_mut().step_by(n + 2).for_each(|x| *x = 1);
        }
        Self { x, weight: integers(n, 127, 5), noise }
    }

    fn expected(&self) -> Vec<i8> {
        let n = self.weight.len();
        let each = self.x.len() / n / members(self.noise.as_ref());
        let row = |(r, x)| {
            let noise = self.noise.as_ref().map(|noise| noise.member(r / each));
            oracle::layer_norm(x, &oracle::vector(&self.weight, noise))
        };
        self.x.chunks(n).enumerate().flat_map(row).collect()
    }

    fn found(&self, on: &Implementation, noise: Option<IntegerNoise>) -> Vec<i8> {
        let n = self.weight.len();
        found(on.integer_layer_norm(on.ints(&self.x, [self.x.len() / n, n]), on.ints(&self.weight, [n]), noise))
    }
}

#[test]
fn equals_oracle() {
    for (index, n) in SIZES.into_iter().enumerate() {
        // Means of every size, of one and of 0, each with other noise than at the size before.
        for (of_largest, largest) in [127, 1, 0].into_iter().enumerate() {
            let [a, b] = NOISES.map(|(_, shift)| Some((1 + index as u32 % 3, shift)));
            let noise = [None, a, b][(index + of_largest) % 3];
            let case = Case::new(n, 1 + index % 4, largest, noise);
            let expected = case.expected();
            for on in implementations() {
                let held = case.noise.as_ref().map(|noise| noise.on(&on));
                assert!(case.found(&on, held) == expected, "{}, {n}, up to {largest}, {noise:?}", on.name);
            }
        }
    }
}

/// All results of a mean of 0 are there to be compared.
#[test]
fn means_of_zero_occur() {
    let expected = Case::new(17, 3, 0, None).expected();
    assert!(expected.contains(&-1) && expected.contains(&-2));
}

#[test]
fn canary_other_noise_fails() {
    let case = Case::new(32, 2, 127, Some((3, 0)));
    let noise = case.noise.as_ref().expect("a case with noise");
    for on in implementations() {
        assert!(case.found(&on, Some(noise.shifted().on(&on))) != case.expected(), "{}: neighboring pairs", on.name);
        assert!(case.found(&on, None) != case.expected(), "{}: no noise", on.name);
    }
}

#[test]
fn chunks_change_no_bit() {
    let case = Case::new(33, 3, 127, Some((4, 0)));
    let noise = case.noise.as_ref().expect("a case with noise");
    for on in implementations() {
        let chunk = |first: u32| {
            let x = on.ints(&case.x[33 * 6 * first as usize..33 * 6 * (first as usize + 2)], [12, 33]);
            let noise = IntegerNoise { pairs: PairRange::new(noise.pairs.first + first, 2), ..noise.on(&on) };
            found(on.integer_layer_norm(x, on.ints(&case.weight, [33]), Some(noise)))
        };
        assert!([chunk(0), chunk(2)].concat() == case.expected(), "{}", on.name);
    }
}

#[test]
fn strided_operands() {
    let case = Case::new(17, 3, 127, Some((2, 0)));
    let noise = case.noise.as_ref().expect("a case with noise");
    for on in with_portable_devices() {
        let x = on.ints(&transposed(&case.x, 17), [17, case.x.len() / 17]).transpose();
        let found = found(on.integer_layer_norm(x, on.ints(&case.weight, [17]), Some(noise.strided_on(&on))));
        assert!(found == case.expected(), "{}", on.name);
    }
}
