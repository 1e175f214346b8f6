//! Rows of a table.

use super::{
    HostNoise, HostVector, ROUNDINGS, SIZES, found, integers, members, noises, oracle, transposed,
    with_portable_devices,
};
use crate::arithmetic::integer::Rounding;
use crate::ops::integer::IntegerNoise;
use crate::rng::key::PairRange;
use crate::testing::conformance::{Implementation, implementations};

struct IntegerEmbeddingCase {
    tokens: Vec<i32>,
    weight: Vec<i8>,
    vocab: usize,
    width: usize,
    noise: Option<HostNoise>,
    /// With [`Rounding::Nearest`].
    bias: Option<HostVector>,
    rounding: Rounding,
}

impl IntegerEmbeddingCase {
    fn new([vocab, width]: [usize; 2], rows: usize, noise: Option<(u32, usize, u32)>, rounding: Rounding) -> Self {
        let of_bias = noise.map(|(pairs, _, sigma_shift)| (pairs, sigma_shift));
        let bias = (rounding == Rounding::Nearest).then(|| HostVector::new(width, (0, 60), of_bias, 7));
        let noise = noise.map(|(pairs, rank, sigma_shift)| {
            HostNoise::new(2, rank * (vocab + width), rank, sigma_shift, PairRange::new(3, pairs))
        });
        let rows = rows * members(noise.as_ref());
        let tokens = (0..rows).map(|r| ((r * 7 + 2) % vocab) as i32).collect();
        Self { tokens, weight: integers(vocab * width, 127, 3), vocab, width, noise, bias, rounding }
    }

    fn expected(&self) -> Vec<i8> {
        let each = self.tokens.len() / members(self.noise.as_ref());
        let row = |(r, token): (usize, &i32)| {
            let noise = self.noise.as_ref().map(|noise| noise.member(r / each));
            let bias = self.bias.as_ref().map(|bias| bias.of(r / each, self.rounding));
            oracle::embedding(*token as usize, &self.weight, self.width, noise, bias.as_deref(), self.rounding)
        };
        self.tokens.iter().enumerate().flat_map(row).collect()
    }

    fn found(&self, on: &Implementation, noise: Option<IntegerNoise>) -> Vec<i8> {
        let weight = on.ints(&self.weight, [self.vocab, self.width]);
        let bias = self.bias.as_ref().map(|bias| bias.on(on));
        found(on.integer_embedding(on.indices(&self.tokens), weight, noise, bias, self.rounding))
    }
}

#[test]
fn equals_oracle() {
    for (index, vocab) in SIZES.into_iter().enumerate() {
        let width = SIZES[(index + 3) % SIZES.len()];
        for noise in noises(1 + index as u32 % 3) {
            for rounding in ROUNDINGS {
                // A unit takes 4 rows of a member: fewer, as many, and more.
                let case = IntegerEmbeddingCase::new([vocab, width], [1, 3, 4, 5][index], noise, rounding);
                let expected = case.expected();
                for on in implementations() {
                    let found = case.found(&on, case.noise.as_ref().map(|noise| noise.on(&on)));
                    assert!(found == expected, "{}, {vocab} × {width}, {noise:?}, {rounding:?}", on.name);
                }
            }
        }
    }
}

#[test]
fn canary_other_noise_fails() {
    let case = IntegerEmbeddingCase::new([17, 32], 3, Some((3, 1, 0)), Rounding::Floor);
    let noise = case.noise.as_ref().expect("a case with noise");
    let expected = case.expected();
    for on in implementations() {
        assert!(case.found(&on, Some(noise.shifted().on(&on))) != expected, "{}: neighboring pairs", on.name);
        assert!(case.found(&on, None) != expected, "{}: no noise", on.name);
    }
}

#[test]
fn chunks_change_no_bit() {
    let case = IntegerEmbeddingCase::new([17, 32], 3, Some((4, 4, 0)), Rounding::Floor);
    let noise = case.noise.as_ref().expect("a case with noise");
    for on in implementations() {
        let chunk = |first: u32| {
            let tokens = &case.tokens[6 * first as usize..6 * (first as usize + 2)];
            let noise = IntegerNoise { pairs: PairRange::new(noise.pairs.first + first, 2), ..noise.on(&on) };
            let weight = on.ints(&case.weight, [17, 32]);
            found(on.integer_embedding(on.indices(tokens), weight, Some(noise), None, case.rounding))
        };
        assert!([chunk(0), chunk(2)].concat() == case.expected(), "{}", on.name);
    }
}

#[test]
fn strided_operands() {
    let case = IntegerEmbeddingCase::new([17, 33], 3, Some((2, 4, 0)), Rounding::Floor);
    let noise = case.noise.as_ref().expect("a case with noise");
    for on in with_portable_devices() {
        let weight = on.ints(&transposed(&case.weight, 33), [33, 17]).transpose();
        let noise = Some(noise.strided_on(&on));
        let y = on.integer_embedding(on.indices(&case.tokens), weight, noise, None, case.rounding);
        assert!(found(y) == case.expected(), "{}", on.name);
    }
}
