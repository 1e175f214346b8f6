//! Long short-term memory.

use crate::support::{
    MEMBERS, PAIRS, assert_forward, assert_records_move, devices, noisers, perturbation, scramble, uniform, values,
};
use burn::nn;
use burn::nn::activation::ActivationConfig;
use burn::nn::{LstmState, PReluConfig};
use burn::tensor::{Device, Tensor};
use eggroll_nn::{Lstm, LstmConfig};
use std::ops::Range;

const STEPS: usize = 4;

/// States of all steps and the last cell state, a row for each of the batch: `[batch, steps + 1, d_hidden]`.
fn all((states, last): (Tensor<3>, LstmState<2>), batch_first: bool) -> Tensor<3> {
    let states = if batch_first { states } else { states.swap_dims(0, 1) };
    Tensor::cat(vec![states, last.cell.unsqueeze_dim(1)], 1)
}

#[test]
fn outside_evaluate_equals_burn_bit_for_bit() {
    let device = Device::flex();
    let config = nn::LstmConfig::new(5, 7, true);
    let configs = [
        config.clone(),
        nn::LstmConfig::new(5, 7, false),
        config.clone().with_batch_first(false).with_reverse(true),
        config.clone().with_input_forget(true).with_clip(Some(0.2)),
        config.with_gate_activation(ActivationConfig::Softsign).with_hidden_activation(ActivationConfig::Gelu),
    ];
    for config in configs {
        let burn_module = config.init(&device);
        let module = Lstm::from(burn_module.clone());
        let shape = if config.batch_first { [3, STEPS, 5] } else { [STEPS, 3, 5] };
        let x = uniform(shape, 0, &device);
        for state in [None, Some(LstmState::new(uniform([3, 7], 4, &device), uniform([3, 7], 5, &device)))] {
            let run = |result| values(all(result, config.batch_first));
            let expected = run(burn_module.forward(x.clone(), state.clone()));
            assert_eq!(run(module.forward(x.clone(), state.clone())), expected);
            assert_eq!(run(nn::Lstm::from(module.clone()).forward(x.clone(), state)), expected);
        }
    }
}

#[test]
fn records_move_both_ways() {
    for input_forget in [false, true] {
        let config = nn::LstmConfig::new(3, 4, true).with_input_forget(input_forget);
        assert_records_move::<_, Lstm>(|| config.init(&Device::flex()));
    }
    let config = LstmConfig::new(3, 4, false).with_reverse(true).with_batch_first(false).with_clip(Some(0.5));
    let module = config.init(&Device::flex());
    assert!(module.reverse && !module.batch_first && module.clip == Some(0.5) && module.forget_gate.is_some());
}

fn check(config: LstmConfig, frozen: &[&str], device: &Device) {
    let module = scramble(config.init(device));
    let x = uniform([MEMBERS * 2, STEPS, 5], 0, device);
    let (cell, hidden) = (uniform([MEMBERS * 2, 7], 2, device), uniform([MEMBERS * 2, 7], 3, device));
    for noiser in noisers() {
        assert_forward(&module, (&noiser, frozen), |module, rows: Range<usize>| {
            let [cell, hidden] = [&cell, &hidden].map(|state| state.clone().slice_dim(0, rows.clone()));
            let x = x.clone().slice_dim(0, rows.clone());
            let x = if config.batch_first { x } else { x.swap_dims(0, 1) };
            all(module.forward(x, Some(LstmState::new(cell, hidden))), config.batch_first)
        });
    }
}

#[test]
fn inside_evaluate_equals_explicit_weights() {
    for device in devices() {
        let config = LstmConfig::new(5, 7, true);
        check(config.clone(), &[], &device);
        check(LstmConfig::new(5, 7, false).with_reverse(true), &[], &device);
        check(config.clone().with_batch_first(false).with_clip(Some(0.5)), &["forget_gate"], &device);
        check(config.clone().with_input_forget(true), &["cell_gate.hidden_transform"], &device);
        check(config.with_cell_activation(PReluConfig::new().into()), &[], &device);
    }
}

#[test]
fn without_a_state_it_starts_from_zeros() {
    let device = Device::flex();
    let module = LstmConfig::new(5, 7, true).init(&device);
    let scope = perturbation(&module, &noisers()[0], &[]);
    let x = uniform([MEMBERS, STEPS, 5], 0, &device);
    let run = |state| values(all(scope.run(PAIRS, || module.forward(x.clone(), state)).0, true));
    assert_eq!(run(None), run(Some(LstmState::initial([MEMBERS, 7], &device))));
    let ones = Tensor::ones([MEMBERS, 7], &device);
    assert_ne!(run(None), run(Some(LstmState::new(ones.clone(), ones))), "canary");
}
