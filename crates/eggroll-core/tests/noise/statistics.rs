//! Statistics of the noise: normal in every direction of its address, and uncorrelated between all of them.
//!
//! Every bound is five standard deviations of the statistic under the null hypothesis, for the sample's own
//! size: a probability of 5.7e-7 for each of about a thousand statistics. The streams are fixed, so a test that passes
//! does so for good.

use eggroll_core::NoiseKey;
use eggroll_core::rng::normal::{GROUP, fill_normals};

/// Draws in a sample. A multiple of the group.
const DRAWS: usize = 1 << 20;
/// Standard deviations that a statistic may be away from its expectation.
const SIGMAS: f64 = 5.0;
/// The same for `√n·D` of Kolmogorov and Smirnov: `2·exp(−2k²) = 5.7e-7`, the two tails of five sigma.
const KOLMOGOROV: f64 = 2.745;

fn stream(key: NoiseKey, pair: u32) -> Vec<f32> {
    let mut out = vec![0.0; DRAWS];
    fill_normals(key, pair, 0, &mut out);
    out
}

/// The first group of each of many streams: as many addresses as a sample has room for.
fn across(address: impl Fn(u32) -> (NoiseKey, u32)) -> Vec<f32> {
    let mut out = vec![0.0; DRAWS];
    for (group, index) in out.chunks_exact_mut(GROUP).zip(0..) {
        let (key, pair) = address(index);
        fill_normals(key, pair, 0, group);
    }
    out
}

/// One sample along each direction of the address.
fn samples() -> Vec<(&'static str, Vec<f32>)> {
    vec![
        ("elements", stream(NoiseKey::new(1, 2, 3), 4)),
        ("elements of the zero address", stream(NoiseKey::new(0, 0, 0), 0)),
        ("pairs", across(|index| (NoiseKey::new(1, 2, 3), index))),
        ("generations", across(|index| (NoiseKey::new(1, 2, index), 4))),
        ("parameters", across(|index| (NoiseKey::new(1, index, 3), 4))),
        ("seeds", across(|index| (NoiseKey::new(index.into(), 2, 3), 4))),
        ("high halves of seeds", across(|index| (NoiseKey::new(u64::from(index) << 32, 2, 3), 4))),
    ]
}

/// `Φ(x)` by Marsaglia, "Evaluating the normal distribution", J. Stat. Softw. 11(4), 2004: absolute error ~1e-15.
fn normal_cdf(x: f64) -> f64 {
    if x.abs() > 8.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut sum, mut term, mut odd) = (x, x, 1.0);
    loop {
        odd += 2.0;
        term *= x * x / odd;
        let next = sum + term;
        if next == sum {
            return 0.5 + sum * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
        }
        sum = next;
    }
}

/// `√n·sup|F(x) − Φ(x)|`.
fn kolmogorov_smirnov(sample: &[f32]) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    let n = sorted.len() as f64;
    let distances = sorted.iter().enumerate().map(|(rank, x)| {
        let below = n * normal_cdf(f64::from(*x)) - rank as f64;
        below.max(1.0 - below)
    });
    distances.fold(0.0, f64::max) / n.sqrt()
}

/// Mean, variance, skewness and excess kurtosis, each over its standard deviation: `√(1/n)`, `√(2/n)`, `√(6/n)`,
/// `√(24/n)`.
fn moment_sigmas(sample: &[f32]) -> [f64; 4] {
    let n = sample.len() as f64;
    let mean = sample.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
    let central = sample.iter().fold([0.0; 3], |[second, third, fourth], x| {
        let d = f64::from(*x) - mean;
        let square = d * d;
        [second + square, third + square * d, fourth + square * square]
    });
    let [variance, third, fourth] = central.map(|sum| sum / n);
    let skewness = third / variance.powf(1.5);
    let kurtosis = fourth / (variance * variance) - 3.0;
    [mean * n.sqrt(), (variance - 1.0) * (n / 2.0).sqrt(), skewness * (n / 6.0).sqrt(), kurtosis * (n / 24.0).sqrt()]
}

/// Draws beyond `limit` on one side, over the binomial standard deviation: `(upper, lower)`.
fn tail_sigmas(sample: &[f32], limit: f32) -> [f64; 2] {
    let n = sample.len() as f64;
    let p = normal_cdf(f64::from(-limit));
    let upper = sample.iter().filter(|x| **x > limit).count();
    let lower = sample.iter().filter(|x| **x < -limit).count();
    [upper, lower].map(|count| (count as f64 - n * p) / (n * p * (1.0 - p)).sqrt())
}

/// Correlation of the values and of their squares, both times `√n`.
///
/// Mean and variance are taken to be 0 and 1 (and 1 and 2 for the squares), so the terms of either sum have
/// variance 1 under independence.
fn correlation_sigmas<'a>(pairs: impl Iterator<Item = (&'a f32, &'a f32)>) -> [f64; 2] {
    let (values, squares, n) = pairs.fold((0.0, 0.0, 0usize), |(values, squares, n), (x, y)| {
        let (x, y) = (f64::from(*x), f64::from(*y));
        (values + x * y, squares + (x * x - 1.0) * (y * y - 1.0), n + 1)
    });
    let root = (n as f64).sqrt();
    [values / root, 0.5 * squares / root]
}

#[track_caller]
fn assert_uncorrelated<'a>(pairs: impl Iterator<Item = (&'a f32, &'a f32)>, name: &str) {
    let [values, squares] = correlation_sigmas(pairs);
    assert!(values.abs() < SIGMAS, "{name}: values correlate by {values} sigma");
    assert!(squares.abs() < SIGMAS, "{name}: squares correlate by {squares} sigma");
}

/// Known values to 16 digits, of which the far tails have fewer in absolute terms.
#[test]
fn the_cdf_is_right() {
    let known = [
        (0.0, 0.5),
        (1.0, 0.841_344_746_068_542_9),
        (-1.0, 0.158_655_253_931_457_05),
        (1.959_963_984_540_054, 0.975),
        (-3.0, 1.349_898_031_630_094_6e-3),
        (-4.0, 3.167_124_183_311_992e-5),
        (5.0, 0.999_999_713_348_428_1),
    ];
    for (x, expected) in known {
        let actual = normal_cdf(x);
        assert!((actual - expected).abs() < 1e-14, "{x}: {actual:e}, not {expected:e}");
    }
}

#[test]
fn noise_follows_the_normal_distribution() {
    for (name, sample) in samples() {
        let distance = kolmogorov_smirnov(&sample);
        assert!(distance < KOLMOGOROV, "{name}: {distance}");
    }
}

/// Canary: a mean of 0.01 is `√n·0.01·φ(0) ≈ 4.1` for this sample size, a scale of 1.02 is `√n·0.02·φ(1) ≈ 5`.
#[test]
fn kolmogorov_smirnov_sees_shift_and_scale() {
    for (name, sample) in samples() {
        let shifted: Vec<f32> = sample.iter().map(|x| x + 0.01).collect();
        let scaled: Vec<f32> = sample.iter().map(|x| x * 1.02).collect();
        for (change, sample) in [("shift", shifted), ("scale", scaled)] {
            let distance = kolmogorov_smirnov(&sample);
            assert!(distance > KOLMOGOROV, "{name}, {change}: {distance}");
        }
    }
}

#[test]
fn moments_are_those_of_a_normal() {
    for (name, sample) in samples() {
        for (moment, sigmas) in ["mean", "variance", "skewness", "kurtosis"].iter().zip(moment_sigmas(&sample)) {
            assert!(sigmas.abs() < SIGMAS, "{name}: {moment} is {sigmas} sigma away");
        }
    }
}

/// Canary: each moment sees the smallest change that is made for it, about ten sigma.
#[test]
fn moments_see_changes() {
    let sample = stream(NoiseKey::new(1, 2, 3), 4);
    let changed = |change: fn(f32) -> f32| moment_sigmas(&sample.iter().map(|x| change(*x)).collect::<Vec<_>>());
    assert!(changed(|x| x + 0.01)[0] > SIGMAS);
    assert!(changed(|x| x * 1.01)[1] > SIGMAS);
    assert!(changed(|x| x + 0.005 * x * x)[2] > SIGMAS);
    assert!(changed(|x| x + 0.003 * x * x * x)[3] > SIGMAS);
}

/// Expected for each side: 1415 draws beyond 3, 33 beyond 4.
#[test]
fn tails_are_those_of_a_normal() {
    for (name, sample) in samples() {
        for limit in [3.0, 4.0] {
            for sigmas in tail_sigmas(&sample, limit) {
                assert!(sigmas.abs() < SIGMAS, "{name}: tail beyond {limit} is {sigmas} sigma away");
            }
        }
    }
}

/// Canary: tails cut at 3, and a scale of 1.1, are seen.
#[test]
fn tail_counts_see_changes() {
    let sample = stream(NoiseKey::new(1, 2, 3), 4);
    let cut: Vec<f32> = sample.iter().map(|x| x.clamp(-3.0, 3.0)).collect();
    let wide: Vec<f32> = sample.iter().map(|x| x * 1.1).collect();
    for limit in [3.0, 4.0] {
        assert!(tail_sigmas(&cut, limit).iter().all(|sigmas| *sigmas < -SIGMAS), "cut at 3, beyond {limit}");
        assert!(tail_sigmas(&wide, limit).iter().all(|sigmas| *sigmas > SIGMAS), "wide, beyond {limit}");
    }
}

/// Streams whose addresses differ in one bit, for every bit of the address.
#[test]
fn streams_of_different_addresses_are_uncorrelated() {
    let base = stream(NoiseKey::new(1, 2, 3), 4);
    let check = |name: &str, other: Vec<f32>| assert_uncorrelated(base.iter().zip(&other), name);
    for bit in 0..64 {
        check(&format!("seed bit {bit}"), stream(NoiseKey::new(1 ^ 1 << bit, 2, 3), 4));
    }
    for bit in 0..32 {
        check(&format!("generation bit {bit}"), stream(NoiseKey::new(1, 2, 3 ^ 1 << bit), 4));
        check(&format!("pair bit {bit}"), stream(NoiseKey::new(1, 2, 3), 4 ^ 1 << bit));
    }
    for bit in 0..24 {
        check(&format!("parameter bit {bit}"), stream(NoiseKey::new(1, 2 ^ 1 << bit, 3), 4));
    }
    check("swapped halves of the seed", stream(NoiseKey::new(1 << 32, 2, 3), 4));
    check("swapped generation and parameter", stream(NoiseKey::new(1, 3, 2), 4));
    check("swapped pair and generation", stream(NoiseKey::new(1, 2, 4), 3));
}

/// The same elements of neighboring addresses, over many addresses: what the estimate of a gradient sums over.
#[test]
fn neighboring_addresses_are_uncorrelated() {
    for (name, sample) in samples() {
        for distance in [1, 2, 3, 4, 8, 16, 256] {
            let lag = distance * GROUP;
            assert_uncorrelated(sample.iter().zip(&sample[lag..]), &format!("{name}, {distance} groups apart"));
        }
    }
}

/// Consecutive elements, both sides of a vector, both Gaussian values of a word pair, rows of usual matrices.
#[test]
fn lagged_elements_are_uncorrelated() {
    let sample = stream(NoiseKey::new(1, 2, 3), 4);
    let lags = (1..=2 * GROUP).chain([255, 256, 257, 512, 784, 1023, 1024, 1025, 4096, 65536]);
    for lag in lags {
        assert_uncorrelated(sample.iter().zip(&sample[lag..]), &format!("lag {lag}"));
    }
}

/// The four Gaussian values of one block stand 16 elements apart in a group; two of them share a radius and an angle.
#[test]
fn normals_of_one_block_are_uncorrelated() {
    let sample = stream(NoiseKey::new(1, 2, 3), 4);
    let lane = |lane: usize| sample.chunks_exact(GROUP).flat_map(move |group| &group[16 * lane..16 * (lane + 1)]);
    for (first, second) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
        assert_uncorrelated(lane(first).zip(lane(second)), &format!("normals {first} and {second} of a block"));
    }
}

/// Canary: a duplicated and a negated stream, one that shares a hundredth of its elements, and one that shares
/// magnitudes only, which is for the squares to see.
#[test]
fn correlations_are_seen() {
    let sample = stream(NoiseKey::new(1, 2, 3), 4);
    let other = stream(NoiseKey::new(1, 2, 3), 5);
    let sigmas = |changed: &[f32]| correlation_sigmas(sample.iter().zip(changed));
    assert!(sigmas(&sample).iter().all(|sigmas| *sigmas > SIGMAS));

    let negated: Vec<f32> = sample.iter().map(|x| -x).collect();
    assert!(sigmas(&negated)[0] < -SIGMAS);

    let mut partly = other.clone();
    partly.iter_mut().zip(&sample).step_by(100).for_each(|(target, source)| *target = *source);
    assert!(sigmas(&partly).iter().all(|sigmas| *sigmas > SIGMAS));

    let signs: Vec<f32> = sample.iter().zip(&other).map(|(x, sign)| x.abs().copysign(*sign)).collect();
    let [values, squares] = sigmas(&signs);
    assert!(values.abs() < SIGMAS && squares > SIGMAS, "{values}, {squares}");
}
