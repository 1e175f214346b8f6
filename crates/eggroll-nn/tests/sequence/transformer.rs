use crate::oracle::{
    PAIRS, check_members, check_records, devices, largest_difference, noisers, perturbation, scramble, values, wave,
};
use burn::nn::activation::ActivationConfig;
use burn::nn::transformer as plain;
use burn::nn::{PReluConfig, SwiGluConfig};
use burn::tensor::{Device, Tensor};
use eggroll_nn::attention::generate_autoregressive_mask;
use eggroll_nn::transformer::{
    PositionWiseFeedForward, PositionWiseFeedForwardConfig, TransformerEncoder, TransformerEncoderConfig,
    TransformerEncoderInput,
};
use eggroll_nn::{PositionalEncodingConfig, RotaryEncodingConfig};
use std::ops::Range;

#[test]
fn outside_evaluate_equals_burn_bit_for_bit() {
    let device = Device::flex();
    for norm_first in [false, true] {
        let config = plain::TransformerEncoderConfig::new(8, 12, 2, 2).with_norm_first(norm_first);
        let config = config.with_quiet_softmax(norm_first).with_layer_norm_eps(0.01);
        let burn_module = scramble(config.with_activation(ActivationConfig::Relu).init(&device), 1.0);
        let module = TransformerEncoder::from(burn_module.clone());
        let (x, causal) = (wave([2, 5, 8], 0.0, &device), generate_autoregressive_mask(2, 5, &device));
        let pad = wave([2, 5], 0.0, &device).greater_elem(0.8);
        let run = |module: &plain::TransformerEncoder| {
            let input = plain::TransformerEncoderInput::new(x.clone()).mask_attn(causal.clone()).mask_pad(pad.clone());
            values(module.forward(input))
        };
        let expected = run(&burn_module);
        let input = TransformerEncoderInput::new(x.clone()).mask_attn(causal.clone()).mask_pad(pad.clone());
        assert_eq!(values(module.forward(input)), expected);
        assert_ne!(values(module.forward(TransformerEncoderInput::new(x.clone()))), expected, "canary");
        let mut caches = (burn_module.new_autoregressive_cache(), module.new_autoregressive_cache());
        for positions in 1..=5 {
            let x = x.clone().slice_dim(1, 0..positions);
            let expected = plain::TransformerEncoderInput::new(x.clone());
            let expected = burn_module.forward_autoregressive_inference(expected, &mut caches.0);
            let found = module.forward_autoregressive_inference(TransformerEncoderInput::new(x), &mut caches.1);
            assert_eq!(values(found), values(expected));
        }
        assert_eq!(run(&module.into()), expected);
    }
}

#[test]
fn records_move_both_ways() {
    let fresh = || plain::TransformerEncoderConfig::new(8, 12, 2, 2).init(&Device::flex());
    check_records::<_, TransformerEncoder>(fresh(), fresh());
    let fresh = || plain::PositionWiseFeedForwardConfig::new(8, 12).init(&Device::flex());
    check_records::<_, PositionWiseFeedForward>(fresh(), fresh());
}

#[test]
fn inside_evaluate_equals_explicit_weights() {
    for device in devices() {
        for norm_first in [false, true] {
            let config = TransformerEncoderConfig::new(8, 12, 2, 2).with_norm_first(norm_first);
            let module = scramble(config.init(&device), 1.0);
            let (x, causal) = (wave([6 * 2, 4, 8], 0.0, &device), generate_autoregressive_mask(1, 4, &device));
            let forward = |module: &TransformerEncoder, rows: Range<usize>| {
                let input = TransformerEncoderInput::new(x.clone().slice_dim(0, rows));
                module.forward(input.mask_attn(causal.clone()))
            };
            for noiser in noisers() {
                check_members(&module, (noiser, &[]), 2, forward);
            }
            check_members(&module, (noisers()[0].clone(), &["layers.0", "layers.1.norm_1"]), 2, forward);
        }
    }
}

#[test]
fn grows_position_by_position_inside_evaluate() {
    let device = Device::flex();
    for norm_first in [false, true] {
        let config = TransformerEncoderConfig::new(8, 12, 2, 2).with_norm_first(norm_first);
        let module = config.init(&device);
        let scope = perturbation(&module, noisers()[0].clone(), &[]);
        let (x, causal) = (wave([6 * 2, 4, 8], 0.0, &device), generate_autoregressive_mask(1, 4, &device));
        let input = TransformerEncoderInput::new(x.clone());
        let (unmasked, _) = scope.run(PAIRS, || module.forward(input.clone()));
        let (expected, _) = scope.run(PAIRS, || module.forward(input.mask_attn(causal)));
        let (found, _) = scope.run(PAIRS, || {
            let mut cache = module.new_autoregressive_cache();
            let grow = |positions| {
                let input = TransformerEncoderInput::new(x.clone().slice_dim(1, 0..positions));
                module.forward_autoregressive_inference(input, &mut cache)
            };
            (1..=4).map(grow).last().expect("positions")
        });
        assert!(largest_difference(found.clone(), expected) < 1e-4);
        assert!(largest_difference(found, unmasked) > 1e-2, "canary");
    }
}

#[test]
fn feed_forward_inside_evaluate_equals_explicit_weights() {
    for device in devices() {
        // Parameters of the activation are not part of the module, as in Burn: they stay plain.
        let activations = [ActivationConfig::Gelu, PReluConfig::new().into(), SwiGluConfig::new(12, 12).into()];
        for activation in activations {
            let config = PositionWiseFeedForwardConfig::new(8, 12).with_activation(activation);
            let module = scramble(config.init(&device), 1.0);
            let x = wave([6 * 2, 3, 8], 0.0, &device);
            for noiser in noisers() {
                let forward = |module: &PositionWiseFeedForward, rows| module.forward(x.clone().slice_dim(0, rows));
                check_members(&module, (noiser, &["linear_outer.bias"]), 2, forward);
            }
        }
    }
}

#[test]
fn encodings_of_positions_are_the_same_for_every_member() {
    let device = Device::flex();
    let (positional, rotary) = (
        PositionalEncodingConfig::new(8).with_max_sequence_size(16).init(&device),
        RotaryEncodingConfig::new(16, 8).init(&device),
    );
    let x = wave([2, 5, 8], 0.0, &device);
    let all = x.clone().repeat_dim(0, 6);
    let expect = |y: Tensor<3>| values(y.repeat_dim(0, 6));
    assert_eq!(values(positional.forward(all.clone())), expect(positional.forward(x.clone())));
    assert_ne!(values(positional.forward(all.clone())), values(all.clone()), "canary");
    assert_eq!(values(rotary.forward(all)), expect(rotary.forward(x)));
}

#[test]
#[should_panic(expected = "a cache of 1 layers for 2 layers")]
fn refuses_another_models_cache() {
    let device = Device::flex();
    let model = |layers| TransformerEncoderConfig::new(4, 4, 1, layers).init(&device);
    let mut cache = model(1).new_autoregressive_cache();
    let input = TransformerEncoderInput::new(wave([1, 1, 4], 0.0, &device));
    model(2).forward_autoregressive_inference(input, &mut cache);
}
