//! The minimal GRU and saturating addition: `nano_gru.npz`.

use super::{assert_differs, assert_equal, integers};
use crate::devices;
use crate::loader::{Array, Golden};
use burn::module::{Param, ParamId};
use burn::tensor::{Device, Int, Tensor};
use eggroll::core::ops::integer::{Gate, Rounding, add, gru};
use eggroll::nn::integer::MinimalGru;

/// The layer of the file; its gates exchanged, if asked for.
fn layer(golden: &Golden, n: usize, exchanged: bool, device: &Device) -> MinimalGru {
    let array = |name: String| golden.array(&format!("n{n}_{name}"));
    let matrix = |name: String| Param::initialized(ParamId::new(), array(name).flipped().integers::<2>(device));
    let vector = |name: String| Param::initialized(ParamId::new(), array(name).integers::<1>(device));
    let [forget, candidate] = if exchanged { ["h", "f"] } else { ["f", "h"] };
    MinimalGru {
        forget_input: matrix(format!("W{forget}")),
        forget_hidden: matrix(format!("U{forget}")),
        forget_bias: vector(format!("b{forget}")),
        candidate_input: matrix(format!("W{candidate}")),
        candidate_hidden: matrix(format!("U{candidate}")),
        candidate_bias: vector(format!("b{candidate}")),
    }
}

/// The rows of the file are sequences of one step each.
#[test]
fn steps() {
    let golden = Golden::open("nano_gru.npz");
    for n in [16, 24] {
        let (x, state) = (golden.array(&format!("n{n}_x")), golden.array(&format!("n{n}_state")));
        let (batch, expected) = (x.shape[0], golden.values(&format!("n{n}_out")));
        for device in devices() {
            let found = |exchanged: bool, starts: i32| {
                let input = x.integers::<2>(&device).reshape([batch, 1, n]);
                let starts = Tensor::<2, Int>::full([batch, 1], starts, &device);
                let (output, last) =
                    layer(&golden, n, exchanged, &device).forward(input, state.integers(&device), starts);
                let (output, last) = (integers(output), integers(last));
                assert_equal("output and state", &output, &last);
                output
            };
            assert_equal(&format!("width {n}"), &found(false, 0), expected);
            assert_differs(&format!("width {n}, other gates"), &found(true, 0), expected);
            assert_differs(&format!("width {n}, from no state"), &found(false, 1), expected);
        }
    }
}

/// A sum of three terms is clipped once, in a gate of a GRU.
#[test]
fn saturating_sums() {
    let golden = Golden::open("nano_gru.npz");
    let [a, b, c, y] = ["a", "b", "c", "y"].map(|name| golden.array(&format!("cadd_{name}")));
    let expected: Vec<f64> = y.values.iter().map(|y| f64::from(state_after(*y as i8))).collect();
    for device in devices() {
        assert_equal("gate", &gate_sum(a, b, c, &device), &expected);
        let [a, b, c] = [a, b, c].map(|array| array.integers::<1>(&device));
        let twice = integers(add(add(a, b, Rounding::Floor), c, Rounding::Floor));
        assert_differs("clipped twice", &twice, &y.values);
    }
}

/// A state that its gate turns into 112: `⌊254·113/2⁸⌋`.
const STATE: i8 = 113;

/// The state that a candidate moves [`STATE`] to behind an open forget gate.
fn state_after(candidate: i8) -> i8 {
    let change = (254 * (i32::from(candidate) - i32::from(STATE))) >> 8;
    STATE.wrapping_add(change as i8)
}

/// States whose candidate is `clip(a + b + c)`: `a` comes as the input, `b` as the product of 112 and a first row, which is
/// divided by `16·⌊√50⌋ = 112` again, and `c` as the bias.
fn gate_sum(a: &Array, b: &Array, c: &Array, device: &Device) -> Vec<f64> {
    let width = a.shape[0];
    assert_eq!(width, 50);
    let constant = |value: i8, shape: &[usize]| {
        let len = shape.iter().product();
        Array { shape: shape.to_vec(), values: vec![value.into(); len] }
    };
    let gate = |input: Tensor<2, Int>, weight: Array, bias: &Array| Gate {
        input,
        weight: weight.integers(device),
        weight_noise: None,
        bias: bias.integers(device),
        bias_noise: None,
    };
    let mut first_row = constant(0, &[width, width]);
    first_row.values[..width].copy_from_slice(&b.values);
    let open = constant(127, &[1, width]).integers(device);
    let forget = gate(open, constant(0, &[width, width]), &constant(0, &[width]));
    let candidate = gate(a.integers::<1>(device).reshape([1, width]), first_row, c);
    let state = constant(STATE, &[1, width]).integers(device);
    integers(gru(state, Tensor::zeros([1], device), forget, candidate))
}
