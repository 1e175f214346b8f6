//! Whether a browser draws the noise that other machines draw.

use eggroll::core::rng::fill_noise;
use eggroll::core::{NoiseDistribution, NoiseKey};

/// Of the noise that every machine draws.
const CHECKSUM: u32 = 0x50ee_3eed;

/// Whether 131,072 elements of noise, Gaussian and Rademacher, have the bits that they have on every other machine: replay and workers rely on it.
pub fn draws_the_same_noise() -> bool {
    checksum(NoiseKey::new(1, 2, 3)) == CHECKSUM
}

fn checksum(key: NoiseKey) -> u32 {
    let mut noise = vec![0.0; 1 << 16];
    let mut sum = 0u32;
    for distribution in [NoiseDistribution::Normal, NoiseDistribution::Rademacher] {
        fill_noise(key.with_distribution(distribution), 4, 5, &mut noise);
        for value in &noise {
            sum = sum.rotate_left(5).wrapping_mul(0x9e37_79b1) ^ value.to_bits();
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_known_and_other_noise_is_not() {
        assert_eq!(checksum(NoiseKey::new(1, 2, 3)), CHECKSUM);
        assert_ne!(checksum(NoiseKey::new(1, 2, 4)), CHECKSUM);
    }
}
