//! Perturbed vector, and noise as a tensor.

use super::{DISTRIBUTIONS, distance, implementations, inputs, values};
use crate::ops::{DenseNoise, NoiseSource};
use crate::rng::NoiseDistribution;
use crate::rng::key::{NoiseKey, PairRange};
use crate::testing::reference::dense_noise;
use crate::testing::reference::floats::members::sign;

#[test]
fn equals_oracle() {
    for distribution in DISTRIBUTIONS {
        vector_equals_oracle(distribution);
    }
}

fn vector_equals_oracle(distribution: NoiseDistribution) {
    let key = NoiseKey::new(1, 2, 3).with_distribution(distribution);
    let (noise, pairs) = (DenseNoise::new(key, 0.7), PairRange::new(4, 5));
    for n in [1, 3, 17, 64, 255, 257] {
        let vector = inputs(n, 9);
        let member = |m: usize| {
            let drawn = dense_noise(noise.key, pairs.first + (m / 2) as u32, n);
            vector.iter().zip(drawn).map(|(v, e)| v + sign(m) * f64::from(noise.scale) * e).collect::<Vec<_>>()
        };
        let expected: Vec<f64> = (0..pairs.members()).flat_map(member).collect();
        for on in implementations() {
            let found = values(on.perturbed_vector(on.tensor(&vector, [n]), noise, NoiseSource::Drawn, pairs));
            assert!(distance(&found, &expected, 1) < 1.0, "{}, {n}", on.name);
            let shifted =
                values(on.perturbed_vector(on.tensor(&vector, [n]), noise, NoiseSource::Drawn, PairRange::new(5, 5)));
            assert!(distance(&shifted, &expected, 1) > 1000.0, "canary: {}, {n}", on.name);
        }
    }
}

/// Lengths around the groups of both streams, two of them, and the first and last pairs.
#[test]
fn noise_equals_oracle() {
    for distribution in DISTRIBUTIONS {
        let key = NoiseKey::new(u64::MAX - 5, 7, u32::MAX).with_distribution(distribution);
        for (first, n) in [(0, 1), (3, 17), (0, 513), (u32::MAX - 2, 2047), (9, 2049), (1, 4500)] {
            let pairs = PairRange::new(first, 3);
            let expected: Vec<f64> = (0..3).flat_map(|p| dense_noise(key, first + p, n)).collect();
            for on in implementations() {
                let found = values(on.noise(key, pairs, n));
                let exact = distribution == NoiseDistribution::Rademacher;
                let equal = found.iter().zip(&expected).all(|(f, e)| f64::from(*f) == *e);
                assert!(equal || !exact && distance(&found, &expected, 1) < 1.0, "{}, {distribution:?}, {n}", on.name);
                let other = values(on.noise(NoiseKey::new(1, 7, 0).with_distribution(distribution), pairs, n.max(17)));
                let expected = (0..3).flat_map(|p| dense_noise(key, first + p, n.max(17))).collect::<Vec<_>>();
                assert!(distance(&other, &expected, 1) > 1000.0, "canary: {}, {distribution:?}, {n}", on.name);
            }
        }
    }
}
