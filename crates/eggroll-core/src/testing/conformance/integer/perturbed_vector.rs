//! Vectors as members see them.

use super::{HostNoise, NOISES, SIZES, found, integers};
use crate::arithmetic::integer::Rounding;
use crate::ops::integer::{IntegerNoise, perturbed_vector};
use crate::rng::key::PairRange;
use crate::testing::conformance::{Implementation, implementations};
use crate::testing::reference::integer as oracle;

fn case(n: usize, pairs: u32, sigma_shift: u32) -> (Vec<i8>, HostNoise) {
    (integers(n, 127, 5), HostNoise::new(4, 2 * n, 0, sigma_shift, PairRange::new(3, pairs)))
}

fn values(on: &Implementation, vector: &[i8], noise: IntegerNoise) -> Vec<i8> {
    found(perturbed_vector(on.ints(vector, [vector.len()]), noise))
}

fn expected(vector: &[i8], noise: &HostNoise) -> Vec<i8> {
    (0..noise.pairs.members()).flat_map(|m| oracle::vector(vector, Some(noise.member(m)), Rounding::Floor)).collect()
}

#[test]
fn equals_oracle() {
    for (index, n) in SIZES.into_iter().enumerate() {
        let (vector, noise) = case(n, 1 + index as u32 % 3, NOISES[index % 2].1);
        for on in implementations() {
            let same = values(&on, &vector, noise.on(&on)) == expected(&vector, &noise);
            assert!(same, "{}, {n} elements", on.name);
            let strided = values(&on, &vector, noise.strided_on(&on)) == expected(&vector, &noise);
            assert!(strided, "{}, {n} elements, transposed memory", on.name);
        }
    }
}

#[test]
fn canary_other_noise_fails() {
    let (vector, noise) = case(33, 2, 0);
    for on in implementations() {
        assert!(values(&on, &vector, noise.shifted().on(&on)) != expected(&vector, &noise), "{}", on.name);
    }
}
