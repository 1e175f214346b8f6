//! Perturbed vector.

use super::oracle::sign;
use super::{distance, implementations, inputs, values};
use crate::key::{NoiseKey, PairRange};
use crate::ops::{DenseNoise, NoiseSource};
use crate::reference::dense_noise;

#[test]
fn equals_oracle() {
    let (noise, pairs) = (DenseNoise::new(NoiseKey::new(1, 2, 3), 0.7), PairRange::new(4, 5));
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
