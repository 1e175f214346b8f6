//! Recurrent modules in both directions.

use crate::support::{MEMBERS, assert_forward, assert_records_move, devices, noisers, scramble, uniform, values};
use burn::nn;
use burn::nn::LstmState;
use burn::tensor::{Device, Tensor};
use eggroll_nn::{BiGru, BiGruConfig, BiLstm, BiLstmConfig};
use std::ops::Range;

const STEPS: usize = 4;

/// States of all steps, and last states next to each other as one more step: `[batch, steps + 1, 2 · d_hidden]`.
fn all(states: Tensor<3>, last: Tensor<3>, batch_first: bool) -> Tensor<3> {
    let states = if batch_first { states } else { states.swap_dims(0, 1) };
    let [_, batch, width] = last.dims();
    Tensor::cat(vec![states, last.swap_dims(0, 1).reshape([batch, 1, 2 * width])], 1)
}

fn input(batch_first: bool, x: Tensor<3>) -> Tensor<3> {
    if batch_first { x } else { x.swap_dims(0, 1) }
}

#[test]
fn outside_evaluate_equal_burn_bit_for_bit() {
    let device = Device::flex();
    for batch_first in [true, false] {
        let (x, state) = (input(batch_first, uniform([3, STEPS, 5], 0, &device)), uniform([2, 3, 7], 4, &device));
        let burn_module = nn::BiGruConfig::new(5, 7, true).with_batch_first(batch_first).init(&device);
        let module = BiGru::from(burn_module.clone());
        for state in [None, Some(state.clone())] {
            let (expected, last) = burn_module.forward(x.clone(), state.clone());
            let (found, found_last) = module.forward(x.clone(), state);
            assert_eq!((values(found), values(found_last)), (values(expected), values(last)));
        }
        let config = nn::BiLstmConfig::new(5, 7, true).with_input_forget(batch_first);
        let burn_module = config.with_batch_first(batch_first).init(&device);
        let module = BiLstm::from(burn_module.clone());
        for state in [None, Some(LstmState::new(state.clone(), state * 0.5))] {
            let (expected, last) = burn_module.forward(x.clone(), state.clone());
            let (found, found_last) = module.forward(x.clone(), state);
            assert_eq!((values(found), values(found_last.cell)), (values(expected), values(last.cell)));
        }
    }
}

#[test]
fn records_move_both_ways() {
    assert_records_move::<_, BiGru>(|| nn::BiGruConfig::new(3, 4, true).init(&Device::flex()));
    assert_records_move::<_, BiLstm>(|| nn::BiLstmConfig::new(3, 4, true).init(&Device::flex()));
}

#[test]
fn inside_evaluate_equal_explicit_weights() {
    for device in devices() {
        for batch_first in [true, false] {
            let config = BiGruConfig::new(5, 7, true).with_batch_first(batch_first);
            let module = scramble(config.init(&device));
            let (x, state) = (uniform([MEMBERS * 2, STEPS, 5], 0, &device), uniform([2, MEMBERS * 2, 7], 2, &device));
            assert_forward(&module, (&noisers()[0], &["reverse.new_gate"]), |module, rows: Range<usize>| {
                let (x, state) = (x.clone().slice_dim(0, rows.clone()), state.clone().slice_dim(1, rows));
                let (states, last) = module.forward(input(batch_first, x), Some(state));
                all(states, last, batch_first)
            });
            let config = BiLstmConfig::new(5, 7, true).with_batch_first(batch_first).with_clip(Some(0.6));
            let module = scramble(config.init(&device));
            assert_forward(&module, (&noisers()[1], &["forward.cell_gate"]), |module, rows: Range<usize>| {
                let (x, state) = (x.clone().slice_dim(0, rows.clone()), state.clone().slice_dim(1, rows));
                let state = LstmState::new(state.clone(), state * 0.5);
                let (states, last) = module.forward(input(batch_first, x), Some(state));
                all(states, last.cell, batch_first)
            });
        }
    }
}
