//! Q-EGGROLL against the golden vectors of the integer reference, `nano_*`: one file here for each file there.
//!
//! Everything is integer, so every comparison is equality, on every device.

mod emb_bias;
mod fitness;
mod foldin;
mod gru;
mod layernorm;
mod loss;
mod matmul;
mod model;
mod tables;
mod update;

use crate::loader::Array;
use burn::tensor::{DType, Device, Int, Tensor};
use eggroll::core::PairRange;
use eggroll::core::ops::integer::IntegerNoise;

/// The values of an integer tensor in row-major order.
fn integers<const D: usize>(tensor: Tensor<D, Int>) -> Vec<f64> {
    let values: Vec<i32> = tensor.cast(DType::I32).into_data().try_to_vec().expect("an I32 tensor");
    values.into_iter().map(f64::from).collect()
}

/// Asserts that all values are equal.
#[track_caller]
fn assert_equal(what: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}: number of values");
    assert!(!expected.is_empty(), "{what}: nothing to compare");
    let first = found.iter().zip(expected).position(|(found, expected)| found != expected);
    if let Some(at) = first {
        panic!("{what}: value {at} is {}, not {}\n{found:?}\n{expected:?}", found[at], expected[at]);
    }
}

/// Asserts that some value differs: for canaries.
#[track_caller]
fn assert_differs(what: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}: number of values");
    assert!(found != expected, "{what}: must differ");
}

/// Noise `[pairs, elements]` of a parameter for all its pairs.
fn noise(values: &Array, rank: usize, sigma_shift: u32, device: &Device) -> IntegerNoise {
    let pairs = PairRange::new(0, values.shape[0] as u32);
    IntegerNoise { noise: values.integers(device), first_pair: 0, rank, sigma_shift, pairs }
}

/// Noise that the file repeats for both members of a pair, once.
fn of_pairs(noise: &Array) -> Array {
    let pairs: Vec<usize> = (0..noise.shape[0]).step_by(2).collect();
    let others: Vec<usize> = pairs.iter().map(|first| first + 1).collect();
    assert_eq!(noise.select(&pairs).values, noise.select(&others).values, "members of a pair share their noise");
    noise.select(&pairs)
}
