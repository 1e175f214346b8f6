//! Low-rank and dense estimates.

use super::{DISTRIBUTIONS, Implementation, distance, implementations, inputs, values};
use crate::ops::{self, DenseNoise, InputRows, LinearBias, LinearMembers, LowRankNoise, NoiseSource, PairRange};
use crate::rng::NoiseDistribution;
use crate::rng::key::NoiseKey;
use crate::testing::reference::floats::members::{self as oracle, OracleNoise};
use burn::tensor::{DType, Tensor};

/// Pairs, d_input, d_output, rank.
const CASES: [(usize, usize, usize, usize); 10] = [
    (1, 1, 1, 1),
    (3, 17, 3, 2),
    (300, 20, 33, 1),
    (70, 57, 10, 4),
    (5, 255, 17, 16),
    (2, 3, 257, 64),
    (9, 113, 64, 3),
    (2, 257, 255, 64),
    (4, 257, 1, 3),
    (3, 1, 255, 64),
];

/// The same for layers of several tiles on each side, whose noise devices draw once for a product. Rows start at groups of noise and
/// within them; one case has many terms.
const WIDE_CASES: [(usize, usize, usize, usize); 4] =
    [(12, 320, 450, 1), (5, 513, 257, 3), (6, 256, 320, 2), (1024, 256, 256, 1)];

fn found(on: &Implementation, noise: OracleNoise, weights: &[f64], first: u32, shape: [usize; 2]) -> Vec<f32> {
    let weights = on.tensor(weights, [weights.len()]);
    match noise {
        OracleNoise::LowRank(noise) => values(on.low_rank_estimate(weights, noise, NoiseSource::Drawn, first, shape)),
        OracleNoise::Dense(noise) => {
            values(on.dense_estimate(weights, noise, NoiseSource::Drawn, first, shape[0] * shape[1]))
        }
    }
}

#[test]
fn equals_explicit_sum() {
    for distribution in DISTRIBUTIONS {
        estimates_equal_explicit_sum(NoiseKey::new(77, 1, 0).with_distribution(distribution));
    }
}

fn estimates_equal_explicit_sum(key: NoiseKey) {
    for (index, (pairs, d_input, d_output, rank)) in CASES.into_iter().enumerate() {
        let (weights, shape) = (inputs(pairs, 4), [d_input, d_output]);
        let low_rank = LowRankNoise::new(key, rank, 0.2);
        let signs = LowRankNoise { signs: true, ..low_rank };
        for noise in
            [OracleNoise::LowRank(low_rank), OracleNoise::LowRank(signs), OracleNoise::Dense(DenseNoise::new(key, 0.2))]
        {
            let expected = oracle::estimate(&weights, noise, 3, shape);
            // A single sign may well be the next pair's too.
            let other = (4..).find(|first| oracle::estimate(&weights, noise, *first, shape) != expected);
            let other = other.expect("noise differs");
            for on in implementations() {
                let result = found(&on, noise, &weights, 3, shape);
                let off = on.distance(&result, &expected, pairs * rank);
                assert!(off < 1.0, "{}, case {index}: {off}", on.name);
                let shifted = found(&on, noise, &weights, other, shape);
                assert!(on.distance(&shifted, &expected, pairs * rank) > 10.0, "canary: {}, case {index}", on.name);
            }
        }
    }
}

#[test]
fn wide_layers() {
    for (index, (pairs, d_input, d_output, rank)) in WIDE_CASES.into_iter().enumerate() {
        let (weights, shape) = (inputs(pairs, 4), [d_input, d_output]);
        let key = NoiseKey::new(78, 1, 0).with_distribution(DISTRIBUTIONS[index % 2]);
        let noise = LowRankNoise { signs: index == 2, ..LowRankNoise::new(key, rank, 0.2) };
        let expected = oracle::estimate(&weights, OracleNoise::LowRank(noise), 3, shape);
        for on in implementations() {
            let result = found(&on, OracleNoise::LowRank(noise), &weights, 3, shape);
            let off = on.distance(&result, &expected, pairs * rank);
            assert!(off < 1.0, "{}, case {index}: {off}", on.name);
            let shifted = found(&on, OracleNoise::LowRank(noise), &weights, 4, shape);
            assert!(on.distance(&shifted, &expected, pairs * rank) > 10.0, "canary: {}, case {index}", on.name);
            let elements = rank * (d_input + d_output);
            let held = ops::noise(key, PairRange::new(2, pairs as u32 + 2), elements, &on.device, DType::F32);
            let source = NoiseSource::Cached { noise: held, first_pair: 2 };
            let cached = values(on.low_rank_estimate(on.tensor(&weights, [pairs]), noise, source, 3, shape));
            assert!(on.distance(&cached, &expected, pairs * rank) < 1.0, "{}, case {index}, cached", on.name);
        }
    }
}

/// Weights as small as fitness over many members are lost to f16, were they multiplied into factors of that type.
#[test]
fn small_weights_of_wide_layers() {
    let (shape, small) = ([256, 257], 1.0 / 1024.0);
    let noise = LowRankNoise::new(NoiseKey::new(79, 1, 0), 1, small);
    let weights: Vec<f64> = (0..1024).map(|pair| if pair % 3 == 0 { small } else { -small }).collect();
    let expected = oracle::estimate(&weights, OracleNoise::LowRank(noise), 0, shape);
    let largest = expected.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    for on in implementations() {
        for (dtype, epsilon) in [(DType::F16, 1.0 / 1024.0), (DType::BF16, 1.0 / 128.0)] {
            if !on.device.supports_dtype(dtype) {
                continue;
            }
            let weights = on.tensor(&weights, [1024]).cast(dtype);
            let sum = on.low_rank_estimate(weights, noise, NoiseSource::Drawn, 0, shape);
            let sum = values(sum.cast(DType::F32));
            let off = sum.iter().zip(&expected).map(|(sum, expected)| (f64::from(*sum) - expected).abs());
            assert!(off.fold(0.0, f64::max) < 4.0 * epsilon * largest, "{}, {dtype:?}", on.name);
        }
    }
}

/// Signs of Gaussian values differ from the values; signs are their own signs; zeros of a cache have none.
#[test]
fn signs_of_factors() {
    let shape = [19, 35];
    for distribution in DISTRIBUTIONS {
        let low_rank = LowRankNoise::new(NoiseKey::new(4, 1, 2).with_distribution(distribution), 2, 1.0);
        let signs = LowRankNoise { signs: true, ..low_rank };
        for on in implementations() {
            let weights = inputs(7, 4);
            let of = |noise| found(&on, OracleNoise::LowRank(noise), &weights, 0, shape);
            assert_eq!(of(low_rank) == of(signs), distribution == NoiseDistribution::Rademacher, "{}", on.name);
            let noise = Tensor::zeros([7, 2 * (19 + 35)], &on.device);
            let source = NoiseSource::Cached { noise, first_pair: 0 };
            let none = values(on.low_rank_estimate(on.tensor(&weights, [7]), signs, source, 0, shape));
            assert!(none.iter().all(|value| *value == 0.0), "{}", on.name);
        }
    }
}

#[test]
#[should_panic(expected = "signs of factors are for estimates")]
fn refuses_a_product_with_signs() {
    let on = &implementations()[0];
    let noise = LowRankNoise { signs: true, ..LowRankNoise::new(NoiseKey::new(1, 1, 1), 1, 1.0) };
    let members = LinearMembers { pairs: PairRange::new(0, 1), input: InputRows::Shared };
    let (x, w) = (Tensor::zeros([1, 3], &on.device), Tensor::zeros([3, 2], &on.device));
    ops::low_rank_linear(x, w, LinearBias::None, noise, NoiseSource::Drawn, members);
}

/// Zero weights: nothing, exactly. A tied pair adds nothing to the others either.
#[test]
fn ties_cancel() {
    let noise = LowRankNoise::new(NoiseKey::new(1, 1, 1), 2, 1.0);
    for on in implementations() {
        let estimate = |weights: &[f64]| found(&on, OracleNoise::LowRank(noise), weights, 0, [19, 5]);
        assert!(estimate(&[0.0; 6]).iter().all(|value| *value == 0.0), "{}", on.name);
        let alone: Vec<f64> = estimate(&[0.5]).into_iter().map(f64::from).collect();
        assert!(distance(&estimate(&[0.5, 0.0, 0.0]), &alone, 2) < 0.1, "{}", on.name);
    }
}
