//! Updates by votes: `nano_update.npz`.

use super::{assert_differs, assert_equal, integers};
use crate::devices;
use crate::loader::{Array, Golden};
use burn::tensor::{Device, Int, Tensor};
use eggroll::core::integer::{Votes, step_limit};
use eggroll::core::ops::integer::update;

const THRESHOLDS: [u32; 4] = [0, 4, 16, 26];

/// A limit at which every update of the file comes out differently.
fn wrong_limit(limit: i32) -> i32 {
    if limit == 0 { i32::MAX } else { 0 }
}

/// Votes by their number in the file.
const VOTES: [Votes; 2] = [Votes::Signs, Votes::Values];

#[test]
fn matrices() {
    let golden = Golden::open("nano_update.npz");
    let (weight, scores) = (golden.array("W").flipped(), golden.array("scores"));
    let pairs = scores.shape[0];
    for rank in [1, 4] {
        let noise = golden.array(&format!("noise_W_r{rank}")).integer_factors(weight.shape[0]);
        for (number, votes) in VOTES.into_iter().enumerate() {
            for threshold in THRESHOLDS {
                let limit = step_limit(threshold, pairs, votes);
                let name = format!("W_r{rank}_clt{number}_thr{threshold}");
                let expected = golden.array(&name).flipped().values;
                for device in devices() {
                    let found = |scores: Tensor<1, Int>, limit| {
                        let (weight, noise) = (weight.integers::<2>(&device), noise.integers(&device));
                        integers(update(weight, noise, scores, rank, votes, limit))
                    };
                    let scores = scores.integers::<1>(&device);
                    assert_equal(&name, &found(scores.clone(), limit), &expected);
                    assert_differs(&name, &found(scores.clone(), wrong_limit(limit)), &expected);
                    // At the highest thresholds hardly any vote moves a weight.
                    if threshold < 16 {
                        assert_differs(&name, &found(-scores, limit), &expected);
                    }
                }
            }
        }
    }
}

#[test]
fn vectors() {
    let golden = Golden::open("nano_update.npz");
    let (bias, noise) = (golden.array("bias"), golden.array("noise_bias").integer_vector());
    let scores = golden.array("scores");
    for (number, votes) in VOTES.into_iter().enumerate() {
        for threshold in THRESHOLDS {
            let limit = step_limit(threshold, scores.shape[0], votes);
            let name = format!("bias_clt{number}_thr{threshold}");
            for device in devices() {
                let found = |scores: Tensor<1, Int>, limit| {
                    integers(update(bias.integers::<1>(&device), noise.integers(&device), scores, 0, votes, limit))
                };
                let (scores, expected) = (scores.integers::<1>(&device), golden.values(&name));
                assert_equal(&name, &found(scores.clone(), limit), expected);
                assert_differs(&name, &found(scores.clone(), wrong_limit(limit)), expected);
                if threshold < 16 {
                    assert_differs(&name, &found(-scores, limit), expected);
                }
            }
        }
    }
}

/// Noise of a vector and scores of 1 whose votes are `sums`: pairs of `±127·127` as far as they go, then two for the rest.
fn noise_with_votes(sums: &[f64]) -> Array {
    const FULL: i32 = 127 * 127;
    let largest = sums.iter().map(|sum| sum.abs() as i32).max().expect("votes");
    let full = largest / FULL;
    let mut rows = Vec::new();
    for pair in 0..full + 2 {
        let factors = |sum: &f64| {
            let (sign, size) = (sum.signum(), sum.abs() as i32);
            let rest = size % FULL;
            let (first, second) = match pair - full {
                0 => (rest / 127, 127),
                1 => (rest % 127, 1),
                _ if pair < size / FULL => (127, 127),
                _ => (0, 0),
            };
            (sign * f64::from(first), f64::from(second))
        };
        let (first, second): (Vec<f64>, Vec<f64>) = sums.iter().map(factors).unzip();
        rows.extend([first, second]);
    }
    Array { shape: vec![(full + 2) as usize, 2 * sums.len()], values: rows.concat() }
}

fn common(golden: &Golden, limit: i32, device: &Device) -> Vec<f64> {
    let noise = noise_with_votes(golden.values("Z"));
    let scores = Tensor::<1, Int>::ones([noise.shape[0]], device);
    integers(update(golden.array("Zp").integers::<1>(device), noise.integers(device), scores, 0, Votes::Values, limit))
}

/// Given votes, at the limits of two numbers of pairs: each is the canary of the other, where there is a limit.
#[test]
fn limits() {
    let golden = Golden::open("nano_update.npz");
    for threshold in [0, 5, 16, 29] {
        for (pairs, others) in [(16, 1000), (1000, 16)] {
            let name = format!("common_thr{threshold}_pop{pairs}");
            let (limit, expected) = (step_limit(threshold, pairs, Votes::Values), golden.values(&name));
            let other = if threshold == 0 { i32::MAX } else { step_limit(threshold, others, Votes::Values) };
            for device in devices() {
                assert_equal(&name, &common(&golden, limit, &device), expected);
                assert_differs(&name, &common(&golden, other, &device), expected);
            }
        }
    }
}
