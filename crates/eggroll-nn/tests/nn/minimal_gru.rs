//! Minimal gated recurrent units.

use crate::support::{MEMBERS, PAIRS, assert_forward, devices, noisers, perturbation, scramble, uniform, values};
use burn::tensor::{Device, Int, Tensor};
use eggroll_nn::{MinimalGru, MinimalGruConfig};
use std::ops::Range;

const STEPS: usize = 5;

/// One sequence of `[steps, 3]` by the formula, in f64: `[steps, 4]`.
fn oracle(module: &MinimalGru, x: &[f32], mut h: Vec<f64>, starts: &[i32]) -> Vec<f64> {
    let weight = |layer: &eggroll_nn::Linear| values(layer.weight.val());
    let bias = |layer: &eggroll_nn::Linear| layer.bias.as_ref().map_or(vec![0.0; 4], |bias| values(bias.val()));
    let product = |x: &[f64], weight: &[f32], o: usize| -> f64 {
        x.iter().enumerate().map(|(i, x)| x * f64::from(weight[i * 4 + o])).sum()
    };
    let [w_f, u_f, w_h, u_h] =
        [&module.forget_input, &module.forget_hidden, &module.candidate_input, &module.candidate_hidden].map(weight);
    let [b_f, b_h] = [&module.forget_input, &module.candidate_input].map(bias);
    let mut states = Vec::new();
    for (step, x) in x.chunks_exact(3).enumerate() {
        let x: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
        if starts[step] != 0 {
            h = vec![0.0; 4];
        }
        let forget: Vec<f64> = (0..4)
            .map(|o| 1.0 / (1.0 + (-(product(&x, &w_f, o) + product(&h, &u_f, o) + f64::from(b_f[o]))).exp()))
            .collect();
        let gated: Vec<f64> = forget.iter().zip(&h).map(|(f, h)| f * h).collect();
        h = (0..4)
            .map(|o| {
                let candidate = (product(&x, &w_h, o) + product(&gated, &u_h, o) + f64::from(b_h[o])).tanh();
                (1.0 - forget[o]) * h[o] + forget[o] * candidate
            })
            .collect();
        states.extend_from_slice(&h);
    }
    states
}

#[test]
fn equals_the_formula() {
    for device in devices() {
        for bias in [true, false] {
            let module = scramble(MinimalGruConfig::new(3, 4).with_bias(bias).init(&device));
            assert_eq!(module.forget_input.bias.is_some(), bias);
            let (x, state) = (uniform([2, STEPS, 3], 0, &device), uniform([2, 4], 1, &device));
            let starts = [[0, 0, 1, 0, 0], [1, 0, 0, 0, 1]];
            let given = Tensor::<2, Int>::from_ints(starts, &device);
            let (found, last) = module.forward(x.clone(), Some(state.clone()), Some(given));
            for (row, starts) in starts.iter().enumerate() {
                let h = values(state.clone().slice_dim(0, row..row + 1)).iter().map(|h| f64::from(*h)).collect();
                let x = values(x.clone().slice_dim(0, row..row + 1));
                let found = values(found.clone().slice_dim(0, row..row + 1));
                let off = |expected: &[f64]| {
                    found.iter().zip(expected).map(|(f, e)| (f64::from(*f) - e).abs()).fold(0.0, f64::max)
                };
                let expected = oracle(&module, &x, h, starts);
                assert!(off(&expected) < 1e-5, "{}", off(&expected));
                assert!(off(&oracle(&module, &x, vec![0.0; 4], &[0; STEPS])) > 1e-2, "canary");
                assert_eq!(values(last.clone().slice_dim(0, row..row + 1)), found[4 * (STEPS - 1)..]);
            }
        }
    }
}

#[test]
fn inside_evaluate_equals_explicit_weights() {
    for device in devices() {
        let module = scramble(MinimalGruConfig::new(5, 7).init(&device));
        let (x, state) = (uniform([MEMBERS * 2, STEPS, 5], 0, &device), uniform([MEMBERS * 2, 7], 2, &device));
        let starts = uniform([MEMBERS * 2, STEPS], 1, &device).greater_elem(0.5).int();
        for noiser in noisers() {
            for frozen in [&[][..], &["forget_hidden", "candidate_input.bias"]] {
                assert_forward(&module, (&noiser, frozen), |module, rows: Range<usize>| {
                    let state = state.clone().slice_dim(0, rows.clone());
                    let starts = starts.clone().slice_dim(0, rows.clone());
                    module.forward(x.clone().slice_dim(0, rows), Some(state), Some(starts)).0
                });
            }
        }
    }
}

#[test]
fn goes_on_from_its_last_state() {
    let device = Device::flex();
    let module = MinimalGruConfig::new(5, 7).init(&device);
    let scope = perturbation(&module, &noisers()[0], &[]);
    let x = uniform([MEMBERS, STEPS, 5], 0, &device);
    let ((whole, last), _) = scope.run(PAIRS, || module.forward(x.clone(), None, None));
    let ((parts, end), _) = scope.run(PAIRS, || {
        let (first, state) = module.forward(x.clone().slice_dim(1, 0..2), None, None);
        let (none, state) = module.forward(x.clone().slice_dim(1, 0..0), Some(state), None);
        let (second, end) = module.forward(x.clone().slice_dim(1, 2..STEPS), Some(state), None);
        (Tensor::cat(vec![first, none, second], 1), end)
    });
    assert_eq!((values(parts), values(end)), (values(whole), values(last)));
}

#[test]
#[should_panic(expected = "starts [2, 4] do not fit the input [2, 5, 3]")]
fn refuses_other_starts() {
    let device = Device::flex();
    let starts = Tensor::zeros([2, 4], &device);
    MinimalGruConfig::new(3, 4).init(&device).forward(uniform([2, STEPS, 3], 0, &device), None, Some(starts));
}
