//! Products, attention and functions of rows against plain loops in f64.

mod attention;
mod halves;
mod integers;
mod products;
mod rows;
mod shapes;

use super::{Activations, Factors, MemberRow, PackedMatrix, Precision};
use crate::simd::{InstructionSet, VARIABLE};

/// Largest distance of a product in float32, relative to the size of the sum that an element is.
const TOLERANCE: f64 = 1e-6;

/// Deterministic values in `[−1, 1)`, exact in float32.
fn inputs(len: usize, salt: u32) -> Vec<f32> {
    let word = |i| crate::rng::philox::philox4x32([i, salt, 0, u32::MAX], [0; 2])[0];
    (0..len as u32).map(|i| (word(i) >> 8) as f32 / (1u32 << 23) as f32 - 1.0).collect()
}

/// Largest distance of `found` from `expected` in units of what `tolerance` allows for `terms` terms. NaN is infinitely far.
fn distance(found: &[f32], expected: &[f64], terms: usize, tolerance: f64) -> f64 {
    assert_eq!(found.len(), expected.len(), "length");
    let distance = |(found, expected): (&f32, &f64)| {
        let distance = (f64::from(*found) - expected).abs() / (tolerance * (expected.abs() + (terms as f64).sqrt()));
        if distance.is_nan() { f64::INFINITY } else { distance }
    };
    found.iter().zip(expected).map(distance).fold(0.0, f64::max)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn activations(precision: Precision, x: &[f32], width: usize) -> Activations {
    let mut rows = Activations::new(precision);
    rows.fill(x.len() / width, width, |values| values.copy_from_slice(x));
    rows
}

/// Noise of some slots, with values as [`inputs`].
fn factors(rank: usize, shape: [usize; 2], slots: usize) -> Factors {
    Factors { rank, scale: 0.37, shape, values: inputs(slots * rank * (shape[0] + shape[1]), 7) }
}

/// Slots and signs, in runs of several lengths.
fn members(rows: usize, slots: usize) -> Vec<MemberRow> {
    (0..rows).map(|row| MemberRow { slot: (row / 2 % slots) as u32, minus: row % 3 == 1 }).collect()
}

fn multiply(weight: &PackedMatrix, x: &Activations, noise: Option<(&Factors, &[MemberRow])>) -> Vec<f32> {
    // Nothing of what is there before may be left.
    let mut y = vec![f32::NAN; x.values().len() / x.width() * weight.shape()[1]];
    weight.multiply(x, noise, false, &mut vec![f32::NAN; 3], &mut y);
    y
}

/// All tests of this module, on the other instruction sets of this processor.
#[test]
fn other_instruction_sets() {
    if std::env::var_os(VARIABLE).is_some() {
        return;
    }
    let sets = InstructionSet::available();
    for set in &sets[..sets.len() - 1] {
        let run = crate::testing::this_binary()
            .args(["transformer::", "--test-threads", "2"])
            .env(VARIABLE, set.name())
            .env_remove("EGGROLL_CONFORMANCE")
            .output()
            .expect("the test binary runs");
        let output = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "{set:?}:\n{output}");
        assert!(!output.contains("running 0 tests"), "{set:?} ran nothing");
    }
}
