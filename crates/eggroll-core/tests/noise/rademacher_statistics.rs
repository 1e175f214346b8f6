//! Statistics of Rademacher noise: balanced in every direction of its address, and uncorrelated between all of them.
//!
//! As in `statistics.rs`, every bound is five standard deviations of the statistic under the null hypothesis, for the
//! sample's own size, and the streams are fixed.

use eggroll_core::rng::rademacher::GROUP;
use eggroll_core::rng::{fill_noise, normal, rademacher};
use eggroll_core::{NoiseDistribution, NoiseKey};

/// Draws in a sample. A multiple of the group.
const DRAWS: usize = 1 << 20;
/// Standard deviations that a statistic may be away from its expectation.
const SIGMAS: f64 = 5.0;
/// Signs taken from each stream where a sample goes across many.
const EACH: usize = 64;

fn key(seed: u64, parameter: u32, generation: u32) -> NoiseKey {
    NoiseKey::new(seed, parameter, generation).with_distribution(NoiseDistribution::Rademacher)
}

fn stream(key: NoiseKey, pair: u32) -> Vec<f32> {
    let mut out = vec![0.0; DRAWS];
    rademacher::fill_signs(key, pair, 0, &mut out);
    out
}

/// The first signs of each of many streams.
fn across(address: impl Fn(u32) -> (NoiseKey, u32)) -> Vec<f32> {
    let mut out = vec![0.0; DRAWS];
    for (part, index) in out.chunks_exact_mut(EACH).zip(0..) {
        let (key, pair) = address(index);
        rademacher::fill_signs(key, pair, 0, part);
    }
    out
}

/// One sample along each direction of the address.
fn samples() -> Vec<(&'static str, Vec<f32>)> {
    vec![
        ("elements", stream(key(1, 2, 3), 4)),
        ("elements of the zero address", stream(key(0, 0, 0), 0)),
        ("pairs", across(|index| (key(1, 2, 3), index))),
        ("generations", across(|index| (key(1, 2, index), 4))),
        ("parameters", across(|index| (key(1, index, 3), 4))),
        ("seeds", across(|index| (key(index.into(), 2, 3), 4))),
        ("high halves of seeds", across(|index| (key(u64::from(index) << 32, 2, 3), 4))),
    ]
}

/// A sum of independent signs over its standard deviation `√n`.
fn sigmas(terms: impl Iterator<Item = f32>) -> f64 {
    let (sum, n) = terms.fold((0.0, 0usize), |(sum, n), term| (sum + f64::from(term), n + 1));
    sum / (n as f64).sqrt()
}

fn correlation<'a>(a: impl IntoIterator<Item = &'a f32>, b: impl IntoIterator<Item = &'a f32>) -> f64 {
    sigmas(a.into_iter().zip(b).map(|(a, b)| a * b))
}

#[track_caller]
fn assert_small(found: f64, name: &str) {
    assert!(found.abs() < SIGMAS, "{name}: {found} sigma");
}

#[test]
fn signs_are_balanced() {
    for (name, sample) in samples() {
        assert!(sample.iter().all(|sign| sign.abs() == 1.0), "{name}");
        assert_small(sigmas(sample.iter().copied()), name);
    }
}

/// Each of the 128 bits of a block, over many blocks, and each of the 16 blocks of a group.
#[test]
fn every_bit_is_balanced() {
    let sample = stream(key(1, 2, 3), 4);
    for row in 0..GROUP / 16 {
        let of_row = sample.chunks_exact(GROUP).flat_map(|group| &group[16 * row..16 * (row + 1)]);
        assert_small(sigmas(of_row.copied()), &format!("bit {row}"));
    }
    for lane in 0..16 {
        assert_small(sigmas(sample.iter().skip(lane).step_by(16).copied()), &format!("block {lane}"));
    }
}

/// All patterns of eight consecutive elements, and of eight consecutive bits of a block, are as frequent.
#[test]
fn patterns_are_equally_frequent() {
    let sample = stream(key(1, 2, 3), 4);
    for step in [1, 16] {
        let excess = pattern_excess(&sample, step);
        assert!(excess < SIGMAS, "every {step}th: {excess} sigma");
    }
    // Canary: one sign in fifty is that of its neighbor.
    let mut copied = sample.clone();
    (0..DRAWS - 1).step_by(50).for_each(|i| copied[i] = copied[i + 1]);
    assert!(pattern_excess(&copied, 1) > SIGMAS);
}

/// `χ²` of 256 patterns with 255 degrees of freedom, over its standard deviation `√(2·255)`.
fn pattern_excess(sample: &[f32], step: usize) -> f64 {
    let mut counts = [0u32; 256];
    for block in sample.chunks_exact(8 * step) {
        for first in 0..step {
            let bits = (0..8).fold(0, |bits, i| bits << 1 | usize::from(block[first + i * step] < 0.0));
            counts[bits] += 1;
        }
    }
    let expected = (sample.len() / 8) as f64 / 256.0;
    let chi: f64 = counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
    (chi - 255.0) / 510f64.sqrt()
}

/// Streams whose addresses differ in one bit, for every bit of the address.
#[test]
fn streams_of_different_addresses_are_uncorrelated() {
    let base = stream(key(1, 2, 3), 4);
    let check = |name: &str, other: Vec<f32>| assert_small(correlation(&base, &other), name);
    for bit in 0..64 {
        check(&format!("seed bit {bit}"), stream(key(1 ^ 1 << bit, 2, 3), 4));
    }
    for bit in 0..32 {
        check(&format!("generation bit {bit}"), stream(key(1, 2, 3 ^ 1 << bit), 4));
        check(&format!("pair bit {bit}"), stream(key(1, 2, 3), 4 ^ 1 << bit));
    }
    for bit in 0..24 {
        check(&format!("parameter bit {bit}"), stream(key(1, 2 ^ 1 << bit, 3), 4));
    }
    check("swapped halves of the seed", stream(key(1 << 32, 2, 3), 4));
    check("swapped generation and parameter", stream(key(1, 3, 2), 4));
    check("swapped pair and generation", stream(key(1, 2, 4), 3));
}

/// The same elements of neighboring addresses, over many addresses: what the estimate of a gradient sums over.
#[test]
fn neighboring_addresses_are_uncorrelated() {
    for (name, sample) in samples() {
        for distance in [1, 2, 3, 4, 8, 16, 32, 256] {
            let found = correlation(&sample, &sample[distance * EACH..]);
            assert_small(found, &format!("{name}, {distance} streams apart"));
        }
    }
}

/// Consecutive elements, neighboring bits and words of a block, rows of usual matrices.
#[test]
fn lagged_elements_are_uncorrelated() {
    let sample = stream(key(1, 2, 3), 4);
    let lags = (1..=128).chain([255, 256, 257, 512, 784, 1023, 1024, 1025, 1536, 2047, 2048, 2049, 4096, 65536]);
    for lag in lags {
        assert_small(correlation(&sample, &sample[lag..]), &format!("lag {lag}"));
    }
}

/// The Gaussian values of the same address come from other words.
#[test]
fn signs_and_normals_of_one_address_are_uncorrelated() {
    let signs = stream(key(1, 2, 3), 4);
    let mut normals = vec![0.0; DRAWS];
    fill_noise(NoiseKey::new(1, 2, 3), 4, 0, &mut normals);
    assert_small(correlation(&signs, &normals), "by element");
    let first = normals.chunks_exact(normal::GROUP).map(|group| &group[0]);
    let of_block = signs.chunks_exact(GROUP).map(|group| &group[0]);
    assert_small(correlation(of_block, first), "by block");
}

/// Canary: a bias of one in a hundred, a duplicate, a negative, and a stream that shares a hundredth are seen.
#[test]
fn changes_are_seen() {
    let (sample, other) = (stream(key(1, 2, 3), 4), stream(key(1, 2, 3), 5));
    let mut biased = sample.clone();
    biased.iter_mut().step_by(100).for_each(|sign| *sign = 1.0);
    assert!(sigmas(biased.iter().copied()) > SIGMAS);
    assert!(correlation(&sample, &sample) > SIGMAS);
    let negative: Vec<f32> = sample.iter().map(|sign| -sign).collect();
    assert!(correlation(&sample, &negative) < -SIGMAS);
    let mut partly = other;
    partly.iter_mut().zip(&sample).step_by(100).for_each(|(target, source)| *target = *source);
    assert!(correlation(&sample, &partly) > SIGMAS);
}
