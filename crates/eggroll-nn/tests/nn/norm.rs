//! Normalizations.

use crate::support::{
    LAYER, MEMBERS, PAIRS, assert_members, assert_records_move, devices, noisers, perturbation, rows_of, uniform,
    values,
};
use burn::module::{Module, Param, RunningState};
use burn::nn;
use burn::tensor::{Device, Tensor};
use eggroll_core::EggrollConfig;
use eggroll_nn::{BatchNorm, BatchNormConfig, LayerNorm, LayerNormConfig, RmsNorm, RmsNormConfig};

const WIDTH: usize = 7;

/// A vector parameter that is not all the same.
fn uneven(device: &Device, shift: f32) -> Param<Tensor<1>> {
    Param::from_tensor(uniform([WIDTH], 0, device) * 0.5 + shift)
}

fn layer_norm(device: &Device, bias: bool) -> LayerNorm {
    let mut layer = LayerNormConfig::new(WIDTH).with_epsilon(1e-3).with_bias(bias).init(device);
    layer.gamma = uneven(device, 1.0);
    layer.beta = layer.beta.take().map(|_| uneven(device, 0.0));
    layer
}

fn rms_norm(device: &Device) -> RmsNorm {
    RmsNorm { gamma: uneven(device, 1.0), ..RmsNormConfig::new(WIDTH).with_epsilon(1e-2).init(device) }
}

fn batch_norm(device: &Device) -> BatchNorm {
    BatchNorm {
        gamma: uneven(device, 1.0),
        beta: uneven(device, 0.2),
        running_mean: RunningState::new(uniform([WIDTH], 1, device)),
        running_var: RunningState::new(uniform([WIDTH], 2, device) + 1.5),
        ..BatchNormConfig::new(WIDTH).with_epsilon(1e-3).init(device)
    }
}

#[test]
fn outside_evaluate_equals_burn_bit_for_bit() {
    let device = Device::flex();
    let x = uniform([4, 3, WIDTH], 0, &device);
    for bias in [true, false] {
        let layer = layer_norm(&device, bias);
        let burn = nn::LayerNorm::from(layer.clone());
        assert_eq!(values(layer.forward(x.clone())), values(burn.forward(x.clone())));
        assert_eq!(values(LayerNorm::from(burn.clone()).forward(x.clone())), values(burn.forward(x.clone())));
        assert_eq!(format!("{layer}"), format!("{burn}"));
    }
    let layer = rms_norm(&device);
    let burn = nn::RmsNorm::from(layer.clone());
    assert_eq!(values(layer.forward(x.clone())), values(burn.forward(x.clone())));
    assert_eq!(values(RmsNorm::from(burn.clone()).forward(x.clone())), values(burn.forward(x)));
    assert_eq!(format!("{layer}"), format!("{burn}"));
    let layer = batch_norm(&device);
    let burn = nn::BatchNorm::from(layer.clone());
    let x = uniform([4, WIDTH, 2, 3], 0, &device);
    assert_eq!(values(layer.forward(x.clone())), values(burn.forward(x.clone())));
    assert_eq!(values(BatchNorm::from(burn.clone()).forward(x.clone())), values(burn.forward(x)));
    assert_eq!(format!("{layer}"), format!("{burn}"));
}

/// Burn does not let a layer norm's epsilon be read: it survives, digit by digit.
#[test]
fn epsilon_survives() {
    let device = Device::flex();
    for epsilon in [1e-5, 1e-12, 0.1, 1.0 / 3.0, 1e-300] {
        let burn = nn::LayerNormConfig::new(3).with_epsilon(epsilon).init(&device);
        let twin = LayerNorm::from(burn.clone());
        assert!(format!("{twin}").contains(&format!("epsilon: {epsilon}")), "{twin}");
        assert_eq!(format!("{}", nn::LayerNorm::from(twin)), format!("{burn}"));
    }
}

#[test]
fn inside_evaluate_equals_explicit_weights() {
    for device in devices() {
        let x = uniform([MEMBERS * 2, 3, WIDTH], 0, &device);
        let images = uniform([MEMBERS * 2, WIDTH, 2, 3], 0, &device);
        let features = uniform([MEMBERS * 3, WIDTH], 0, &device);
        for noiser in noisers() {
            let what = |layer: &str| format!("{layer}, {device:?}, {noiser:?}");
            for bias in [true, false] {
                let layer = layer_norm(&device, bias);
                let scope = perturbation(&layer, &noiser, &[]);
                let alone = |member, model: LayerNorm| nn::LayerNorm::from(model).forward(rows_of(&x, member));
                assert_members((&what("layer norm"), LAYER), &layer, &scope, || layer.forward(x.clone()), alone);
            }
            let layer = rms_norm(&device);
            let scope = perturbation(&layer, &noiser, &[]);
            let alone = |member, model: RmsNorm| nn::RmsNorm::from(model).forward(rows_of(&x, member));
            assert_members((&what("RMS norm"), LAYER), &layer, &scope, || layer.forward(x.clone()), alone);
            let layer = batch_norm(&device);
            let scope = perturbation(&layer, &noiser, &[]);
            let alone = |member, model: BatchNorm| nn::BatchNorm::from(model).forward(rows_of(&images, member));
            assert_members((&what("batch norm"), LAYER), &layer, &scope, || layer.forward(images.clone()), alone);
            let alone = |member, model: BatchNorm| nn::BatchNorm::from(model).forward(rows_of(&features, member));
            assert_members((&what("batch norm"), LAYER), &layer, &scope, || layer.forward(features.clone()), alone);
        }
    }
}

#[test]
fn frozen_gains_and_biases_stay_plain() {
    for device in devices() {
        let (x, images) = (uniform([MEMBERS, 3, WIDTH], 0, &device), uniform([MEMBERS, WIDTH, 4], 0, &device));
        for frozen in ["gamma", "beta"] {
            let layer = layer_norm(&device, true);
            let scope = perturbation(&layer, &EggrollConfig::new().into(), &[frozen]);
            let alone = |member, model: LayerNorm| nn::LayerNorm::from(model).forward(rows_of(&x, member));
            assert_members((frozen, LAYER), &layer, &scope, || layer.forward(x.clone()), alone);
            let layer = batch_norm(&device);
            let scope = perturbation(&layer, &EggrollConfig::new().into(), &[frozen]);
            let alone = |member, model: BatchNorm| nn::BatchNorm::from(model).forward(rows_of(&images, member));
            assert_members((frozen, LAYER), &layer, &scope, || layer.forward(images.clone()), alone);
        }
    }
}

/// Running statistics are no parameters, of Burn's layer neither, and nothing inside `evaluate` changes them.
#[test]
fn running_statistics_belong_to_evaluation() {
    fn paths(model: &impl Module) -> Vec<String> {
        let scope = perturbation(model, &EggrollConfig::new().into(), &[]);
        scope.table.entries().iter().map(|entry| entry.path.clone()).collect()
    }
    let device = Device::flex();
    let layer = batch_norm(&device);
    assert_eq!(paths(&layer), ["gamma", "beta"]);
    assert_eq!(paths(&nn::BatchNorm::from(layer.clone())), ["gamma", "beta"]);
    let statistics = || (values(layer.running_mean.value_sync()), values(layer.running_var.value_sync()));
    let before = statistics();
    let scope = perturbation(&layer, &EggrollConfig::new().into(), &[]);
    scope.run(PAIRS, || layer.forward(uniform([MEMBERS * 2, WIDTH, 5], 0, &device)));
    assert_eq!(statistics(), before);
}

#[test]
fn records_move_both_ways() {
    let device = Device::flex();
    assert_records_move::<_, LayerNorm>(|| nn::LayerNormConfig::new(WIDTH).with_epsilon(1e-3).init(&device));
    assert_records_move::<_, RmsNorm>(|| nn::RmsNormConfig::new(WIDTH).init(&device));
    assert_records_move::<_, BatchNorm>(|| nn::BatchNormConfig::new(WIDTH).init(&device));
}

#[test]
#[should_panic(expected = "the first axis of the input [4, 7] is not a multiple of 6 members")]
fn refuses_uneven_rows() {
    let device = Device::flex();
    let layer = layer_norm(&device, true);
    let scope = perturbation(&layer, &EggrollConfig::new().into(), &[]);
    scope.run(PAIRS, || layer.forward(uniform([4, WIDTH], 0, &device)));
}
