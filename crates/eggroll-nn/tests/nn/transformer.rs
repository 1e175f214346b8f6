//! Transformer encoders and encodings of positions.

use crate::support::{
    LAYER, MEMBERS, PAIRS, assert_forward, assert_records_move, devices, distance, noisers, perturbation, scramble,
    uniform, values,
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
        let burn_module = scramble(config.with_activation(ActivationConfig::Relu).init(&device));
        let module = TransformerEncoder::from(burn_module.clone());
        let (x, causal) = (uniform([2, 5, 8], 0, &device), generate_autoregressive_mask(2, 5, &device));
        let pad = uniform([2, 5], 2, &device).greater_elem(0.5);
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
    let config = plain::TransformerEncoderConfig::new(8, 12, 2, 2);
    assert_records_move::<_, TransformerEncoder>(|| config.init(&Device::flex()));
    let config = plain::PositionWiseFeedForwardConfig::new(8, 12);
    assert_records_move::<_, PositionWiseFeedForward>(|| config.init(&Device::flex()));
}

#[test]
fn inside_evaluate_equals_explicit_weights() {
    for device in devices() {
        for norm_first in [false, true] {
            let config = TransformerEncoderConfig::new(8, 12, 2, 2).with_norm_first(norm_first);
            let module = scramble(config.init(&device));
            let (x, causal) = (uniform([MEMBERS * 2, 4, 8], 0, &device), generate_autoregressive_mask(1, 4, &device));
            let forward = |module: &TransformerEncoder, rows: Range<usize>| {
                let input = TransformerEncoderInput::new(x.clone().slice_dim(0, rows));
                module.forward(input.mask_attn(causal.clone()))
            };
            for noiser in noisers() {
                assert_forward(&module, (&noiser, &[]), forward);
            }
            assert_forward(&module, (&noisers()[0], &["layers.0", "layers.1.norm_1"]), forward);
        }
    }
}

#[test]
fn grows_position_by_position_inside_evaluate() {
    let device = Device::flex();
    for norm_first in [false, true] {
        let config = TransformerEncoderConfig::new(8, 12, 2, 2).with_norm_first(norm_first);
        let module = config.init(&device);
        let scope = perturbation(&module, &noisers()[0], &[]);
        let (x, causal) = (uniform([MEMBERS * 2, 4, 8], 0, &device), generate_autoregressive_mask(1, 4, &device));
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
        assert!(distance(found.clone(), expected) < LAYER);
        assert!(distance(found, unmasked) > 1e-2, "canary");
    }
}

#[test]
fn feed_forward_inside_evaluate_equals_explicit_weights() {
    for device in devices() {
        // Parameters of the activation are not part of the module, as in Burn: they stay plain.
        let activations = [ActivationConfig::Gelu, PReluConfig::new().into(), SwiGluConfig::new(12, 12).into()];
        for activation in activations {
            let config = PositionWiseFeedForwardConfig::new(8, 12).with_activation(activation);
            let module = scramble(config.init(&device));
            let x = uniform([MEMBERS * 2, 3, 8], 0, &device);
            for noiser in noisers() {
                let forward = |module: &PositionWiseFeedForward, rows| module.forward(x.clone().slice_dim(0, rows));
                assert_forward(&module, (&noiser, &["linear_outer.bias"]), forward);
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
    let x = uniform([2, 5, 8], 0, &device);
    let all = x.clone().repeat_dim(0, MEMBERS);
    let expect = |y: Tensor<3>| values(y.repeat_dim(0, MEMBERS));
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
    let input = TransformerEncoderInput::new(uniform([1, 1, 4], 0, &device));
    model(2).forward_autoregressive_inference(input, &mut cache);
}
