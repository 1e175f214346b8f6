//! Half precision, where a backend has it: kernels compute in f32, so only their inputs and outputs round.

use super::{Implementation, implementations, inputs, values};
use crate::ops::{self, DenseNoise, InputRows, LinearBias, LinearMembers, LowRankNoise, NoiseSource, SparseNoise};
use crate::rng::key::{NoiseKey, PairRange};
use crate::testing::reference::floats::members::{self as oracle, OracleNoise};
use crate::testing::reference::{dense_noise, floats};
use burn::tensor::{DType, Int, Tensor, TensorData};

/// Types, and the distance from 1 to the next number in each.
const TYPES: [(DType, f64); 2] = [(DType::F16, 1.0 / 1024.0), (DType::BF16, 1.0 / 128.0)];

const PAIRS: PairRange = PairRange { first: 5, count: 3 };
const ROWS: usize = 7;
/// Matrices whose noise starts anywhere in a group of the stream, and on one.
const SHAPES: [[usize; 2]; 2] = [[33, 17], [64, 192]];
const CLASSES: usize = 19;

/// Inputs that all types hold exactly.
fn coarse(len: usize, salt: u32) -> Vec<f64> {
    inputs(len, salt).iter().map(|value| (value * 64.0).floor() / 64.0).collect()
}

fn key(generation: u32) -> NoiseKey {
    NoiseKey::new(21, 1, generation)
}

fn low_rank(generation: u32) -> LowRankNoise {
    LowRankNoise::new(key(generation), 4, 0.5)
}

fn dense(generation: u32) -> DenseNoise {
    DenseNoise::new(key(generation), 0.5)
}

fn targets() -> Vec<i64> {
    (0..ROWS).map(|row| (row * 5 % CLASSES) as i64).collect()
}

/// What an operation gives, what it should give, and the terms of its sums.
struct Result {
    operation: &'static str,
    found: Vec<f32>,
    expected: Vec<f64>,
    terms: usize,
}

impl Result {
    /// Largest distance in units of what is allowed: a sum of products, each of which rounds both its factors and the sum.
    fn distance(&self, epsilon: f64) -> f64 {
        let allowed = |expected: f64| 8.0 * epsilon * (expected.abs() + (self.terms as f64).sqrt());
        let distance = |(found, expected): (&f32, &f64)| (f64::from(*found) - expected).abs() / allowed(*expected);
        assert_eq!(self.found.len(), self.expected.len(), "{}", self.operation);
        self.found.iter().zip(&self.expected).map(distance).fold(0.0, f64::max)
    }
}

/// Every operation that takes noise, with that of `generation`; expected is that of generation 0.
fn noisy(on: &Implementation, dtype: DType, generation: u32, shape: [usize; 2]) -> Vec<Result> {
    let half = |values: &[f64], shape| on.tensor(values, shape).cast(dtype);
    let vector = |len, salt| on.tensor(&coarse(len, salt), [len]).cast(dtype);
    let (w, bias, weights) = (coarse(shape[0] * shape[1], 2), coarse(shape[1], 3), coarse(PAIRS.count as usize, 4));
    let [d_input, d_output] = shape;
    let mut results = Vec::new();
    let mut add = |operation, found: Tensor<1>, expected, terms| {
        assert_eq!(found.dtype(), dtype, "{}, {operation}", on.name);
        results.push(Result { operation, found: values(found.cast(DType::F32)), expected, terms });
    };
    for input in [InputRows::PerMember, InputRows::Shared] {
        let members = LinearMembers { pairs: PAIRS, input };
        let rows = if input == InputRows::Shared { ROWS } else { ROWS * PAIRS.members() };
        let x = coarse(rows * d_input, 1);
        let expected = |noise| oracle::linear(&x, &w, Some((&bias, Some(dense(0)))), noise, members, shape);
        let perturbed = || LinearBias::Perturbed(vector(d_output, 3), dense(generation), NoiseSource::Drawn);
        let operands = || (half(&x, [rows, d_input]), half(&w, shape));
        let (x, w) = operands();
        let y = on.low_rank_linear(x, w, perturbed(), low_rank(generation), NoiseSource::Drawn, members);
        add("low-rank linear", y.flatten(0, 1), expected(OracleNoise::LowRank(low_rank(0))), 2 * d_input);
        let (x, w) = operands();
        let y = on.dense_linear(x, w, perturbed(), dense(generation), NoiseSource::Drawn, members);
        add("dense linear", y.flatten(0, 1), expected(OracleNoise::Dense(dense(0))), 2 * d_input);
    }
    let y = on.perturbed_vector(vector(257, 5), dense(generation), NoiseSource::Drawn, PAIRS);
    add("vector", y.flatten(0, 1), expected_vector(&coarse(257, 5)), 1);
    let weights = || half_weights(on, &weights, dtype);
    let estimate = |noise| oracle::estimate(&coarse(PAIRS.count as usize, 4), noise, PAIRS.first, shape);
    let g = on.low_rank_estimate(weights(), low_rank(generation), NoiseSource::Drawn, PAIRS.first, shape);
    add("low-rank estimate", g.flatten(0, 1), estimate(OracleNoise::LowRank(low_rank(0))), 1);
    let g = on.dense_estimate(weights(), dense(generation), NoiseSource::Drawn, PAIRS.first, d_input * d_output);
    add("dense estimate", g, estimate(OracleNoise::Dense(dense(0))), 1);
    if !on.portable {
        let noise = ops::noise(key(generation), PAIRS, 257, &on.device, dtype).flatten(0, 1);
        let expected = (0..PAIRS.count).flat_map(|pair| dense_noise(key(0), PAIRS.first + pair, 257)).collect();
        add("normals", noise, expected, 1);
    }
    results
}

fn half_weights(on: &Implementation, weights: &[f64], dtype: DType) -> Tensor<1> {
    on.tensor(weights, [weights.len()]).cast(dtype)
}

fn expected_vector(vector: &[f64]) -> Vec<f64> {
    let member = |m: usize| {
        let drawn = dense_noise(key(0), PAIRS.first + (m / 2) as u32, vector.len());
        let scale = oracle::sign(m) * f64::from(dense(0).scale);
        vector.iter().zip(drawn).map(|(value, e)| value + scale * e).collect::<Vec<_>>()
    };
    (0..PAIRS.members()).flat_map(member).collect()
}

/// The operations without noise; `salt` is 0 for the inputs that the expected results are of.
fn quiet(on: &Implementation, dtype: DType, salt: u32, shape: [usize; 2]) -> Vec<Result> {
    let members = PAIRS.members();
    let logits = |salt| coarse(members * ROWS * CLASSES, 6 + salt);
    let data = TensorData::new(targets(), [ROWS]);
    let losses = on.member_cross_entropy(
        on.tensor(&logits(salt), [members * ROWS, CLASSES]).cast(dtype),
        Tensor::<1, Int>::from_data(data, &on.device),
        members,
    );
    let [d_input, d_output] = shape;
    let (x, gradient) = (coarse(ROWS * d_input, 7), |salt| coarse(d_input * d_output, 9 + salt));
    let projected =
        on.row_projection(on.tensor(&gradient(salt), shape).cast(dtype), on.tensor(&x, [ROWS, d_input]).cast(dtype));
    assert!(losses.dtype() == dtype && projected.dtype() == dtype, "{}", on.name);
    vec![
        Result {
            operation: "cross-entropy",
            found: values(losses.cast(DType::F32)),
            expected: floats::rows::cross_entropy(&logits(0), &targets(), CLASSES),
            terms: 1,
        },
        Result {
            operation: "row projection",
            found: values(projected.flatten::<1>(0, 1).cast(DType::F32)),
            expected: floats::projection::onto_rows(&gradient(0), &x, d_input, d_output),
            terms: 1,
        },
    ]
}

#[test]
fn equals_oracle() {
    for (dtype, epsilon) in TYPES {
        for on in implementations().iter().filter(|on| on.device.supports_dtype(dtype)) {
            for shape in SHAPES {
                for result in noisy(on, dtype, 0, shape).iter().chain(&quiet(on, dtype, 0, shape)) {
                    let off = result.distance(epsilon);
                    assert!(off < 1.0, "{}, {dtype:?}, {}: {off}", on.name, result.operation);
                }
                for result in noisy(on, dtype, 1, shape).iter().chain(&quiet(on, dtype, 1, shape)) {
                    // Losses of other random logits are not far off: ln 19 and a little.
                    let far = if result.operation == "cross-entropy" { 0.2 } else { 2.0 };
                    let off = result.distance(epsilon);
                    assert!(off > far, "canary: {}, {dtype:?}, {}: {off}", on.name, result.operation);
                }
            }
        }
    }
}

/// Held noise has the precision of its type, but drawn noise may have float32's: both are within roundings of the oracle.
#[test]
fn held_noise_rounds() {
    let ([d_input, d_output], members) = (SHAPES[1], LinearMembers { pairs: PAIRS, input: InputRows::PerMember });
    let rows = ROWS * PAIRS.members();
    let (x, w) = (coarse(rows * d_input, 1), coarse(d_input * d_output, 2));
    let expected = oracle::linear(&x, &w, None, OracleNoise::LowRank(low_rank(0)), members, SHAPES[1]);
    for (dtype, epsilon) in TYPES {
        for on in implementations().iter().filter(|on| !on.portable && on.device.supports_dtype(dtype)) {
            let off = |generation| {
                let noise = ops::noise(key(generation), PAIRS, 4 * (d_input + d_output), &on.device, dtype);
                let held = NoiseSource::Cached { noise, first_pair: PAIRS.first };
                let (x, w) = (on.tensor(&x, [rows, d_input]).cast(dtype), on.tensor(&w, SHAPES[1]).cast(dtype));
                let y = on.low_rank_linear(x, w, LinearBias::None, low_rank(generation), held, members);
                let found = values(y.flatten::<1>(0, 1).cast(DType::F32));
                let operation = "low-rank linear, held";
                Result { operation, found, expected: expected.clone(), terms: 2 * d_input }.distance(epsilon)
            };
            assert!(off(0) < 1.0, "{}, {dtype:?}: {}", on.name, off(0));
            assert!(off(1) > 2.0, "canary: {}, {dtype:?}: {}", on.name, off(1));
        }
    }
}

/// Held sparse noise of the parameter's type is multiplied with weights of another, as drawn noise is.
#[test]
fn sparse_noise_has_the_type_of_the_parameter() {
    let (shape, pairs) = ([33, 17], PairRange::new(0, 3));
    let estimate = |on: &Implementation, dtype, key: NoiseKey, source| {
        let noise = SparseNoise::new(key, 0.5);
        let sum = ops::sparse_estimate(on.tensor(&[0.5, -1.0, 0.7], [3]), noise, source, 0, shape, dtype);
        assert_eq!(sum.dtype(), dtype, "{}", on.name);
        values(sum.cast(DType::F32))
    };
    for (dtype, _) in TYPES {
        for on in implementations().iter().filter(|on| !on.portable && on.device.supports_dtype(dtype)) {
            let noise = ops::noise(key(0), pairs, 33, &on.device, dtype);
            let held = estimate(on, dtype, key(0), NoiseSource::Cached { noise, first_pair: 0 });
            assert_eq!(held, estimate(on, dtype, key(0), NoiseSource::Drawn), "{}, {dtype:?}", on.name);
            assert_ne!(held, estimate(on, dtype, key(1), NoiseSource::Drawn), "canary: {}, {dtype:?}", on.name);
        }
    }
}

/// Weights of pairs keep the digits that the parameter's type does not have: the sum is as much larger as they say.
#[test]
fn weights_are_not_rounded() {
    let growth = |on: &Implementation, dtype, shape: [usize; 2], weight: f64| {
        let estimates = |weight: f64| {
            let weights = || on.tensor(&[weight], [1]);
            let (first, all) = (PAIRS.first, shape[0] * shape[1]);
            let low_rank = ops::low_rank_estimate(weights(), low_rank(0), NoiseSource::Drawn, first, shape, dtype);
            let dense = ops::dense_estimate(weights(), dense(0), NoiseSource::Drawn, first, all, dtype);
            [low_rank.flatten(0, 1), dense].map(|sum| values(sum.cast(DType::F32)))
        };
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
        // Products with 1 would be numbers of the type, to which those with a little more round.
        let (one, more) = (estimates(0.7), estimates(0.7 * weight));
        [0, 1].map(|which| product(&one[which], &more[which]) / product(&one[which], &one[which]))
    };
    for (dtype, epsilon) in TYPES {
        for on in implementations().iter().filter(|on| !on.portable && on.device.supports_dtype(dtype)) {
            // Sizes of both kernels of the estimate.
            for shape in [[64, 96], [512, 640]] {
                let (weight, rounded) = (1.0 + epsilon / 4.0, 1.0);
                for found in growth(on, dtype, shape, weight) {
                    assert!((found - weight).abs() < epsilon / 16.0, "{}, {dtype:?}, {shape:?}: {found}", on.name);
                }
                for found in growth(on, dtype, shape, rounded) {
                    assert!(
                        (found - weight).abs() > epsilon / 8.0,
                        "canary: {}, {dtype:?}, {shape:?}: {found}",
                        on.name
                    );
                }
            }
        }
    }
}
