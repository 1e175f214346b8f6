//! Gated recurrent units.

use crate::support::{
    MEMBERS, PAIRS, assert_forward, assert_records_move, devices, noisers, perturbation, scramble, uniform, values,
};
use burn::nn;
use burn::nn::activation::ActivationConfig;
use burn::nn::{PReluConfig, SwiGluConfig};
use burn::tensor::{Device, Tensor};
use eggroll_nn::{Gru, GruConfig};

const STEPS: usize = 4;

#[test]
fn outside_evaluate_equals_burn_bit_for_bit() {
    let device = Device::flex();
    for (reset_after, bias) in [(true, true), (false, true), (true, false), (false, false)] {
        for clip in [None, Some(0.3)] {
            let config = nn::GruConfig::new(5, 7, bias).with_reset_after(reset_after).with_clip(clip);
            let burn_module = config.with_gate_activation(ActivationConfig::Softsign).init(&device);
            let module = Gru::from(burn_module.clone());
            let x = uniform([3, STEPS, 5], 0, &device);
            for state in [None, Some(uniform([3, 7], 4, &device))] {
                let expected = values(burn_module.forward(x.clone(), state.clone()));
                assert_eq!(values(module.forward(x.clone(), state.clone())), expected);
                assert_eq!(values(nn::Gru::from(module.clone()).forward(x.clone(), state)), expected);
            }
        }
    }
}

#[test]
fn records_move_both_ways() {
    assert_records_move::<_, Gru>(|| nn::GruConfig::new(3, 4, true).init(&Device::flex()));
    let config = GruConfig::new(3, 4, false).with_reset_after(false).with_clip(Some(0.5));
    let module = config.init(&Device::flex());
    assert!(!module.reset_after && module.clip == Some(0.5) && module.new_gate.input_transform.bias.is_none());
}

fn check(config: GruConfig, frozen: &[&str], device: &Device) {
    let module = scramble(config.init(device));
    let (x, state) = (uniform([MEMBERS * 2, STEPS, 5], 0, device), uniform([MEMBERS * 2, 7], 2, device));
    for noiser in noisers() {
        assert_forward(&module, (&noiser, frozen), |module, rows| {
            let state = state.clone().slice_dim(0, rows.clone());
            module.forward(x.clone().slice_dim(0, rows), Some(state))
        });
    }
}

#[test]
fn inside_evaluate_equals_explicit_weights() {
    for device in devices() {
        let config = GruConfig::new(5, 7, true);
        check(config.clone(), &[], &device);
        check(config.clone().with_reset_after(false), &[], &device);
        check(config.clone().with_clip(Some(0.4)), &["update_gate"], &device);
        check(config, &["new_gate.hidden_transform.weight", "reset_gate.input_transform.bias"], &device);
        check(GruConfig::new(5, 7, false), &[], &device);
    }
}

#[test]
fn parameters_of_activations_are_perturbed() {
    let device = Device::flex();
    let config = GruConfig::new(5, 7, true).with_hidden_activation(PReluConfig::new().into());
    check(config.clone(), &[], &device);
    check(config.with_hidden_activation(PReluConfig::new().with_num_parameters(7).into()), &[], &device);
    // Without separate bounds: states are clamped.
    let config = GruConfig::new(5, 7, true).with_hidden_activation(SwiGluConfig::new(7, 7).with_bias(true).into());
    check(config.with_clip(Some(1.0)), &[], &device);
}

#[test]
fn without_a_state_it_starts_from_zeros() {
    let device = Device::flex();
    let module = GruConfig::new(5, 7, true).init(&device);
    let scope = perturbation(&module, &noisers()[0], &[]);
    let x = uniform([MEMBERS, STEPS, 5], 0, &device);
    let run = |state| scope.run(PAIRS, || module.forward(x.clone(), state)).0;
    assert_eq!(values(run(None)), values(run(Some(Tensor::zeros([MEMBERS, 7], &device)))));
    assert_ne!(values(run(None)), values(run(Some(Tensor::ones([MEMBERS, 7], &device)))), "canary");
}

#[test]
fn sequences_may_be_cut_or_empty() {
    let device = Device::flex();
    let module = GruConfig::new(5, 7, true).init(&device);
    let scope = perturbation(&module, &noisers()[0], &[]);
    let x = uniform([MEMBERS, STEPS, 5], 0, &device);
    let (whole, _) = scope.run(PAIRS, || module.forward(x.clone(), None));
    let (cut, _) = scope.run(PAIRS, || {
        let first = module.forward(x.clone().slice_dim(1, 0..1), None);
        let state = first.clone().reshape([MEMBERS, 7]);
        let none = module.forward(x.clone().slice_dim(1, 0..0), Some(state.clone()));
        assert_eq!(none.dims(), [MEMBERS, 0, 7]);
        Tensor::cat(vec![first, module.forward(x.clone().slice_dim(1, 1..STEPS), Some(state))], 1)
    });
    assert_eq!(values(cut), values(whole));
}

#[test]
#[should_panic(expected = "the state [6, 8] does not fit the input [6, 4, 5] and a hidden size of 7")]
fn refuses_another_state() {
    let device = Device::flex();
    let module = GruConfig::new(5, 7, true).init(&device);
    let scope = perturbation(&module, &noisers()[0], &[]);
    scope.run(PAIRS, || module.forward(uniform([6, STEPS, 5], 0, &device), Some(uniform([6, 8], 0, &device))));
}
