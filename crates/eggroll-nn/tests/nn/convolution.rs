//! Convolutions.

use crate::support::{
    LAYER, MEMBERS, PAIRS, assert_members, assert_records_move, devices, held, noisers, perturbation, rows_of, uniform,
    values,
};
use burn::nn::{PaddingConfig1d, PaddingConfig2d, conv};
use burn::tensor::{Device, Tensor};
use eggroll_core::scope::ParameterUse;
use eggroll_core::{EggrollConfig, NoiseSourceConfig, NoiserConfig};
use eggroll_nn::{Conv1d, Conv1dConfig, Conv2d, Conv2dConfig};

/// Kernels, strides, dilations, groups and paddings, with the size of an image.
fn configs() -> Vec<(Conv2dConfig, [usize; 2])> {
    vec![
        (Conv2dConfig::new([1, 4], [5, 5]).with_stride([2, 2]), [12, 11]),
        (Conv2dConfig::new([3, 5], [3, 2]).with_padding(PaddingConfig2d::Same), [6, 5]),
        (
            Conv2dConfig::new([2, 3], [2, 3]).with_padding(PaddingConfig2d::Explicit(1, 2, 0, 1)).with_bias(false),
            [4, 5],
        ),
        (Conv2dConfig::new([2, 2], [3, 3]).with_dilation([2, 1]).with_stride([1, 3]), [7, 9]),
        (
            Conv2dConfig::new([4, 6], [3, 3]).with_groups(2).with_padding(PaddingConfig2d::Same).with_stride([2, 1]),
            [5, 4],
        ),
        (Conv2dConfig::new([3, 6], [2, 2]).with_groups(3).with_bias(false), [4, 3]),
        (Conv2dConfig::new([5, 7], [1, 1]), [2, 3]),
    ]
}

/// The same in one dimension, with the length of a sequence.
fn configs_1d() -> Vec<(Conv1dConfig, usize)> {
    vec![
        (Conv1dConfig::new(1, 3, 5).with_stride(2), 13),
        (Conv1dConfig::new(3, 4, 4).with_padding(PaddingConfig1d::Same), 7),
        (Conv1dConfig::new(2, 3, 3).with_padding(PaddingConfig1d::Explicit(3, 1)).with_dilation(2).with_bias(false), 6),
        (Conv1dConfig::new(4, 4, 3).with_groups(4), 5),
    ]
}

#[test]
fn outside_evaluate_equals_burn_bit_for_bit() {
    let device = Device::flex();
    for (config, [height, width]) in configs() {
        let layer = config.init(&device);
        let burn = conv::Conv2d::from(layer.clone());
        let x = uniform([3, config.channels[0], height, width], 0, &device);
        let expected = values(burn.forward(x.clone()));
        assert_eq!(values(layer.forward(x.clone())), expected, "{config}");
        assert_eq!(values(layer.forward_shared(x.clone())), expected, "{config}");
        assert_eq!(values(Conv2d::from(burn.clone()).forward(x)), expected, "{config}");
        assert_eq!(format!("{layer}"), format!("{burn}"));
    }
    for (config, length) in configs_1d() {
        let layer = config.init(&device);
        let burn = conv::Conv1d::from(layer.clone());
        let x = uniform([3, config.channels_in, length], 0, &device);
        let expected = values(burn.forward(x.clone()));
        assert_eq!(values(layer.forward(x.clone())), expected, "{config}");
        assert_eq!(values(layer.forward_shared(x.clone())), expected, "{config}");
        assert_eq!(values(Conv1d::from(burn.clone()).forward(x)), expected, "{config}");
        assert_eq!(format!("{layer}"), format!("{burn}"));
    }
}

#[test]
fn inside_evaluate_equals_explicit_weights() {
    for device in devices() {
        for (config, [height, width]) in configs() {
            let layer = config.init(&device);
            let x = uniform([MEMBERS * 2, config.channels[0], height, width], 0, &device);
            let shared = rows_of(&x, 1);
            for noiser in noisers() {
                let scope = perturbation(&layer, &noiser, &[]);
                let what = format!("{device:?}, {config}, {noiser:?}");
                let alone = |member, model: Conv2d| conv::Conv2d::from(model).forward(rows_of(&x, member));
                assert_members((&what, LAYER), &layer, &scope, || layer.forward(x.clone()), alone);
                let alone = |_, model: Conv2d| conv::Conv2d::from(model).forward(shared.clone());
                let used =
                    assert_members((&what, LAYER), &layer, &scope, || layer.forward_shared(shared.clone()), alone);
                assert_eq!(matches!(used.uses[0], ParameterUse::Shared(_)), config.groups == 1, "{what}");
            }
        }
        for (config, length) in configs_1d() {
            let layer = config.init(&device);
            let x = uniform([MEMBERS * 2, config.channels_in, length], 0, &device);
            let shared = rows_of(&x, 1);
            for noiser in noisers() {
                let scope = perturbation(&layer, &noiser, &[]);
                let what = format!("{device:?}, {config}, {noiser:?}");
                let alone = |member, model: Conv1d| conv::Conv1d::from(model).forward(rows_of(&x, member));
                assert_members((&what, LAYER), &layer, &scope, || layer.forward(x.clone()), alone);
                let alone = |_, model: Conv1d| conv::Conv1d::from(model).forward(shared.clone());
                assert_members((&what, LAYER), &layer, &scope, || layer.forward_shared(shared.clone()), alone);
            }
        }
    }
}

#[test]
fn frozen_parameters_stay_plain() {
    for device in devices() {
        for (config, [height, width]) in [configs()[0].clone(), configs()[4].clone()] {
            let layer = config.init(&device);
            let x = uniform([MEMBERS, config.channels[0], height, width], 0, &device);
            for (noiser, frozen) in [
                (NoiserConfig::from(EggrollConfig::new()), "weight"),
                (EggrollConfig::new().with_freeze_non_matrix(true).into(), ""),
                (EggrollConfig::new().with_rank(2).into(), "bias"),
            ] {
                let frozen: &[&str] = if frozen.is_empty() { &[] } else { &[frozen] };
                let scope = perturbation(&layer, &noiser, frozen);
                let what = format!("{device:?}, {config}, {frozen:?}");
                let alone = |member, model: Conv2d| conv::Conv2d::from(model).forward(rows_of(&x, member));
                assert_members((&what, LAYER), &layer, &scope, || layer.forward(x.clone()), alone);
            }
        }
    }
}

#[test]
fn held_noise_equals_drawn_noise() {
    for device in devices() {
        for (config, [height, width]) in [configs()[1].clone(), configs()[4].clone()] {
            let layer = config.init(&device);
            let x = uniform([MEMBERS, config.channels[0], height, width], 0, &device);
            for noiser in noisers() {
                let scope = perturbation(&layer, &noiser, &[]);
                let (drawn, _) = scope.run(PAIRS, || layer.forward(x.clone()));
                let (cached, _) = held(&scope, NoiseSourceConfig::Cached).run(PAIRS, || layer.forward(x.clone()));
                assert_eq!(values(drawn), values(cached), "{device:?}, {config}");
                let table = held(&scope, NoiseSourceConfig::Table { len: 5000 });
                let alone = |member, model: Conv2d| conv::Conv2d::from(model).forward(rows_of(&x, member));
                let what = format!("{device:?}, {config}, table");
                assert_members((&what, LAYER), &layer, &table, || layer.forward(x.clone()), alone);
            }
        }
    }
}

/// Chunks of members of one generation, of which a backend may remember shared patches and products.
#[test]
fn chunks_of_shared_images_change_no_bit() {
    let device = Device::flex();
    let (config, [height, width]) = configs()[0].clone();
    let layer = config.init(&device);
    let x = uniform([2, 1, height, width], 0, &device);
    let scope = perturbation(&layer, &EggrollConfig::new().into(), &[]);
    let (whole, _) = scope.run(PAIRS, || layer.forward_shared(x.clone()));
    let chunk = |pair| {
        let pairs = eggroll_core::PairRange::new(PAIRS.first + pair, 1);
        values(scope.run(pairs, || layer.forward_shared(x.clone())).0)
    };
    assert_eq!(values(whole.clone()), (0..PAIRS.count).flat_map(chunk).collect::<Vec<_>>());
    let (other, _) = scope.run(PAIRS, || layer.forward_shared(x.clone() + 1.0));
    assert_ne!(values(other), values(whole), "canary");
}

#[test]
fn records_move_both_ways() {
    let device = Device::flex();
    assert_records_move::<_, Conv2d>(|| conv::Conv2dConfig::new([2, 3], [3, 3]).init(&device));
    assert_records_move::<_, Conv1d>(|| conv::Conv1dConfig::new(2, 3, 3).init(&device));
}

fn call(images: [usize; 4]) {
    let layer = Conv2dConfig::new([2, 3], [3, 3]).init(&Device::flex());
    let scope = perturbation(&layer, &EggrollConfig::new().into(), &[]);
    scope.run(PAIRS, || layer.forward(Tensor::ones(images, &Device::flex())));
}

#[test]
#[should_panic(expected = "images [6, 1, 5, 5] do not fit a weight of 2 channels in 1 groups")]
fn refuses_other_channels() {
    call([6, 1, 5, 5]);
}

#[test]
#[should_panic(expected = "the first axis of the input [4, 2, 5, 5] is not a multiple of 6 members")]
fn refuses_uneven_images() {
    call([4, 2, 5, 5]);
}

#[test]
#[should_panic(expected = "does not fit an image of [2, 5]")]
fn refuses_small_images() {
    call([6, 2, 2, 5]);
}
