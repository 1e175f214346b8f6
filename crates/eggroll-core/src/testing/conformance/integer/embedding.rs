//! Rows of a table.

use super::{Held, SIZES, found, integers, members, noises, transposed, with_portable_devices};
use crate::ops::integer::IntegerNoise;
use crate::rng::key::PairRange;
use crate::testing::conformance::{Implementation, implementations};
use crate::testing::reference::integer as oracle;

struct Case {
    tokens: Vec<i32>,
    weight: Vec<i8>,
    vocab: usize,
    width: usize,
    noise: Option<Held>,
}

impl Case {
    fn new(vocab: usize, width: usize, rows: usize, noise: Option<(u32, usize, u32)>) -> Self {
        let noise = noise.map(|(pairs, rank, sigma_shift)| {
            Held::new(2, rank * (vocab + width), rank, sigma_shift, PairRange::new(3, pairs))
        });
        let rows = rows * members(noise.as_ref());
        let tokens = (0..rows).map(|r| ((r * 7 + 2) % vocab) as i32).collect();
        Self { tokens, weight: integers(vocab * width, 127, 3), vocab, width, noise }
    }

    fn expected(&self) -> Vec<i8> {
        let each = self.tokens.len() / members(self.noise.as_ref());
        let row = |(r, token): (usize, &i32)| {
            let noise = self.noise.as_ref().map(|noise| noise.member(r / each));
            oracle::embedding(*token as usize, &self.weight, self.width, noise)
        };
        self.tokens.iter().enumerate().flat_map(row).collect()
    }

    fn found(&self, on: &Implementation, noise: Option<IntegerNoise>) -> Vec<i8> {
        let weight = on.ints(&self.weight, [self.vocab, self.width]);
        found(on.integer_embedding(on.indices(&self.tokens), weight, noise))
    }
}

#[test]
fn equals_oracle() {
    for (index, vocab) in SIZES.into_iter().enumerate() {
        let width = SIZES[(index + 3) % SIZES.len()];
        for noise in noises(1 + index as u32 % 3) {
            // A unit takes 4 rows of a member: fewer, as many, and more.
            let case = Case::new(vocab, width, [1, 3, 4, 5][index], noise);
            let expected = case.expected();
            for on in implementations() {
                let held = case.noise.as_ref().map(|noise| noise.on(&on));
                assert!(case.found(&on, held) == expected, "{}, {vocab} × {width}, {noise:?}", on.name);
            }
        }
    }
}

#[test]
fn canary_other_noise_fails() {
    let case = Case::new(17, 32, 3, Some((3, 1, 0)));
    let noise = case.noise.as_ref().expect("a case with noise");
    let expected = case.expected();
    for on in implementations() {
        assert!(case.found(&on, Some(noise.shifted().on(&on))) != expected, "{}: neighboring pairs", on.name);
        assert!(case.found(&on, None) != expected, "{}: no noise", on.name);
    }
}

#[test]
fn chunks_change_no_bit() {
    let case = Case::new(17, 32, 3, Some((4, 4, 0)));
    let noise = case.noise.as_ref().expect("a case with noise");
    for on in implementations() {
        let chunk = |first: u32| {
            let tokens = &case.tokens[6 * first as usize..6 * (first as usize + 2)];
            let noise = IntegerNoise { pairs: PairRange::new(noise.pairs.first + first, 2), ..noise.on(&on) };
            found(on.integer_embedding(on.indices(tokens), on.ints(&case.weight, [17, 32]), Some(noise)))
        };
        assert!([chunk(0), chunk(2)].concat() == case.expected(), "{}", on.name);
    }
}

#[test]
fn strided_operands() {
    let case = Case::new(17, 33, 3, Some((2, 4, 0)));
    let noise = case.noise.as_ref().expect("a case with noise");
    for on in with_portable_devices() {
        let weight = on.ints(&transposed(&case.weight, 33), [33, 17]).transpose();
        let found = found(on.integer_embedding(on.indices(&case.tokens), weight, Some(noise.strided_on(&on))));
        assert!(found == case.expected(), "{}", on.name);
    }
}
