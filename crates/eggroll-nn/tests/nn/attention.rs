//! Multi-head attention.

use crate::support::{
    MEMBERS, PAIRS, assert_forward, assert_records_move, devices, distance, noisers, perturbation, scramble, uniform,
    values,
};
use burn::nn::attention as plain;
use burn::tensor::{Bool, Device, Tensor};
use eggroll_nn::attention::{
    MhaCache, MhaInput, MhaOutput, MultiHeadAttention, MultiHeadAttentionConfig, generate_autoregressive_mask,
};
use std::ops::Range;

/// Two padded positions in the second row: `[2, 5]`.
fn padding(device: &Device) -> Tensor<2, Bool> {
    Tensor::<2>::from_floats([[0.0; 5], [0.0, 0.0, 0.0, 1.0, 1.0]], device).greater_elem(0.5)
}

fn both(output: MhaOutput) -> (Vec<f32>, Vec<f32>) {
    (values(output.weights), values(output.context))
}

#[test]
fn outside_evaluate_equals_burn_bit_for_bit() {
    let device = Device::flex();
    for quiet in [false, true] {
        let config = plain::MultiHeadAttentionConfig::new(8, 2).with_quiet_softmax(quiet).with_min_float(-1e3);
        let burn_module = config.with_key_bias(quiet).init(&device);
        let module = MultiHeadAttention::from(burn_module.clone());
        assert_eq!((module.key.bias.is_some(), module.quiet_softmax, module.min_float), (quiet, quiet, -1e3));
        let inputs = [(4, 0), (5, 1), (5, 2)];
        let [query, key, value] = inputs.map(|(positions, stream)| uniform([2, positions, 8], stream, &device));
        let causal = uniform([2, 4, 5], 0, &device).greater_elem(0.5);
        let expected = plain::MhaInput::new(query.clone(), key.clone(), value.clone());
        let given = MhaInput::new(query, key, value);
        let unmasked = both(burn_module.forward(expected.clone()));
        assert_eq!(both(module.forward(given.clone())), unmasked);
        let expected = expected.mask_pad(padding(&device)).mask_attn(causal.clone());
        let given = given.mask_pad(padding(&device)).mask_attn(causal);
        let masked = both(burn_module.forward(expected.clone()));
        assert_eq!(both(module.forward(given.clone())), masked);
        assert_ne!(masked, unmasked, "canary");
        assert_eq!(both(plain::MultiHeadAttention::from(module).forward(expected)), masked);
    }
}

#[test]
fn caches_equal_burns_bit_for_bit() {
    let device = Device::flex();
    let burn_module = plain::MultiHeadAttentionConfig::new(8, 2).init(&device);
    let module = MultiHeadAttention::from(burn_module.clone());
    let (x, other) = (uniform([2, 4, 8], 0, &device), uniform([2, 3, 8], 7, &device));
    let mut caches = (plain::MhaCache::autoregressive(), MhaCache::autoregressive());
    let mut cross = (plain::MhaCache::autoregressive_cross_attention(), MhaCache::autoregressive_cross_attention());
    for positions in 1..=4 {
        let x = x.clone().slice_dim(1, 0..positions);
        let expected = burn_module.forward_cache(plain::MhaInput::self_attn(x.clone()), &mut caches.0);
        assert_eq!(both(module.forward_cache(MhaInput::self_attn(x.clone()), &mut caches.1)), both(expected));
        let expected = plain::MhaInput::new(x.clone(), other.clone(), other.clone());
        let expected = burn_module.forward_cache(expected, &mut cross.0);
        let found = module.forward_cache(MhaInput::new(x, other.clone(), other.clone()), &mut cross.1);
        assert_eq!(both(found), both(expected));
    }
}

#[test]
fn records_move_both_ways() {
    let config = plain::MultiHeadAttentionConfig::new(6, 3).with_value_bias(false);
    assert_records_move::<_, MultiHeadAttention>(|| config.init(&Device::flex()));
}

#[test]
fn inside_evaluate_equals_explicit_weights() {
    for device in devices() {
        for quiet in [false, true] {
            let config = MultiHeadAttentionConfig::new(8, 2).with_quiet_softmax(quiet).with_query_bias(!quiet);
            let module = scramble(config.init(&device));
            let (x, other) = (uniform([MEMBERS * 2, 4, 8], 0, &device), uniform([MEMBERS * 2, 5, 8], 7, &device));
            // Separate rows for every member.
            let mask = uniform([MEMBERS * 2, 4, 5], 0, &device).greater_elem(0.6);
            let forward = |module: &MultiHeadAttention, rows: Range<usize>| {
                let [x, other] = [&x, &other].map(|input| input.clone().slice_dim(0, rows.clone()));
                let input = MhaInput::new(x, other.clone(), other).mask_attn(mask.clone().slice_dim(0, rows));
                module.forward(input).context
            };
            for noiser in noisers() {
                assert_forward(&module, (&noiser, &[]), forward);
                assert_forward(&module, (&noiser, &["key", "output.weight"]), forward);
            }
        }
    }
}

#[test]
fn masks_may_be_shared_by_all_members() {
    for device in devices() {
        let module = MultiHeadAttentionConfig::new(8, 2).init(&device);
        let scope = perturbation(&module, &noisers()[0], &[]);
        let x = uniform([MEMBERS * 2, 5, 8], 0, &device);
        let causal = generate_autoregressive_mask(1, 5, &device);
        let run = |pad: Option<Tensor<2, Bool>>, attn: Tensor<3, Bool>| {
            let input = MhaInput::self_attn(x.clone()).mask_attn(attn);
            let input = pad.into_iter().fold(input, MhaInput::mask_pad);
            values(scope.run(PAIRS, || module.forward(input)).0.context)
        };
        let every = run(Some(padding(&device).repeat_dim(0, MEMBERS)), causal.clone().repeat_dim(0, 2 * MEMBERS));
        assert_eq!(run(Some(padding(&device)), causal.clone().repeat_dim(0, 2)), every);
        assert_eq!(run(Some(padding(&device)), causal.clone()), every);
        assert_ne!(run(None, causal), every, "canary");
    }
}

#[test]
fn causal_masks_hide_what_comes_later() {
    let device = Device::flex();
    let module = MultiHeadAttentionConfig::new(8, 2).init(&device);
    let scope = perturbation(&module, &noisers()[0], &[]);
    let run = |last: u32, mask: bool| {
        let x = Tensor::cat(vec![uniform([MEMBERS, 4, 8], 0, &device), uniform([MEMBERS, 1, 8], last, &device)], 1);
        let input = MhaInput::self_attn(x);
        let input = if mask { input.mask_attn(generate_autoregressive_mask(MEMBERS, 5, &device)) } else { input };
        let (output, _) = scope.run(PAIRS, || module.forward(input));
        output.context.slice_dim(1, 0..4)
    };
    assert_eq!(distance(run(1, true), run(2, true)), 0.0);
    assert!(distance(run(1, false), run(2, false)) > 1e-3, "canary");
}

#[test]
#[should_panic(
    expected = "queries [2, 4, 8], keys [2, 5, 8] and values [2, 4, 8] do not fit each other and a size of 8"
)]
fn refuses_values_of_other_positions() {
    let device = Device::flex();
    let [query, key, value] = [4, 5, 4].map(|positions| uniform([2, positions, 8], 0, &device));
    MultiHeadAttentionConfig::new(8, 2).init(&device).forward(MhaInput::new(query, key, value));
}
