//! The perturbed linear layer against `burn::nn::Linear` and against explicit perturbed weights.

use crate::support::{
    LAYER, MEMBERS, PAIRS, assert_members, assert_records_move, noisers, perturbation, rows_of, uniform, values,
};
use burn::nn;
use burn::tensor::{Device, Tensor};
use eggroll_core::EggrollConfig;
use eggroll_core::scope::ParameterUse;
use eggroll_nn::{Linear, LinearConfig};

#[test]
fn outside_evaluate_equals_burn_bit_for_bit() {
    let device = Device::flex();
    for layout in [nn::LinearLayout::Row, nn::LinearLayout::Col] {
        for bias in [true, false] {
            let burn_layer = nn::LinearConfig::new(13, 7).with_bias(bias).with_layout(layout).init(&device);
            let layer = Linear::from(burn_layer.clone());
            let x = uniform([4, 5, 13], 0, &device);
            let expected = values(burn_layer.forward(x.clone()));
            assert_eq!(values(layer.forward(x.clone())), expected);
            assert_eq!(values(layer.forward_shared(x.clone())), expected);
            assert_eq!(values(nn::Linear::from(layer).forward(x)), expected);
        }
    }
}

#[test]
fn records_move_both_ways() {
    let device = Device::flex();
    assert_records_move::<_, Linear>(|| nn::LinearConfig::new(6, 4).init(&device));
}

#[test]
fn inside_evaluate_equals_explicit_weights() {
    let device = Device::flex();
    for layout in [nn::LinearLayout::Row, nn::LinearLayout::Col] {
        for noiser in noisers() {
            let layer = LinearConfig::new(13, 7).with_layout(layout).init(&device);
            let scope = perturbation(&layer, &noiser, &[]);
            let what = format!("{layout:?}, {noiser:?}");
            let x = uniform([MEMBERS * 2, 5, 13], 0, &device);
            let alone = |member, model: Linear| model.forward(rows_of(&x, member));
            let used = assert_members((&what, LAYER), &layer, &scope, || layer.forward(x.clone()), alone);
            assert_eq!(used.output_bytes, (MEMBERS * 2 * 5 * 7 * 4) as u64);
            let alone = |_, model: Linear| model.forward(x.clone());
            assert_members((&what, LAYER), &layer, &scope, || layer.forward_shared(x.clone()), alone);
        }
    }
}

#[test]
fn frozen_parameters_stay_plain() {
    let device = Device::flex();
    let layer = LinearConfig::new(5, 4).init(&device);
    let x = uniform([MEMBERS, 5], 0, &device);
    let shared = rows_of(&x, 0);
    for (noiser, frozen) in [
        (EggrollConfig::new(), &["weight"][..]),
        (EggrollConfig::new(), &["bias"][..]),
        (EggrollConfig::new().with_freeze_non_matrix(true), &[][..]),
    ] {
        let what = format!("{noiser:?}, without {frozen:?}");
        let scope = perturbation(&layer, &noiser.into(), frozen);
        let alone = |member, model: Linear| model.forward(rows_of(&x, member));
        assert_members((&what, LAYER), &layer, &scope, || layer.forward(x.clone()), alone);
        let alone = |_, model: Linear| model.forward(shared.clone());
        assert_members((&what, LAYER), &layer, &scope, || layer.forward_shared(shared.clone()), alone);
    }
}

#[test]
fn other_models_stay_plain_inside() {
    let device = Device::flex();
    let (layer, other) = (LinearConfig::new(3, 2).init(&device), LinearConfig::new(3, 2).init(&device));
    let x = uniform([MEMBERS, 3], 0, &device);
    let scope = perturbation(&layer, &EggrollConfig::new().into(), &[]);
    let (y, used) = scope.run(PAIRS, || other.forward(x.clone()));
    assert_eq!(values(y), values(other.forward(x)));
    assert!(!used.uses.iter().any(ParameterUse::is_used));
}

#[test]
fn scopes_of_two_models_nest() {
    let device = Device::flex();
    let (a, b) = (LinearConfig::new(3, 3).init(&device), LinearConfig::new(3, 3).init(&device));
    let x = uniform([MEMBERS, 3], 0, &device);
    let (scope_a, scope_b) =
        (perturbation(&a, &EggrollConfig::new().into(), &[]), perturbation(&b, &EggrollConfig::new().into(), &[]));
    let (alone, _) = scope_a.run(PAIRS, || a.forward(x.clone()));
    let ((inner, outer), _) = scope_a.run(PAIRS, || {
        let (inner, _) = scope_b.run(PAIRS, || a.forward(b.forward(x.clone())));
        (inner, a.forward(x.clone()))
    });
    assert_eq!(values(outer), values(alone));
    let (b_alone, _) = scope_b.run(PAIRS, || b.forward(x));
    let (expected, _) = scope_a.run(PAIRS, || a.forward(b_alone));
    assert_eq!(values(inner), values(expected));
}

#[test]
#[should_panic(expected = "evaluate is already running for this model on this thread (parameter \"weight\")")]
fn one_model_does_not_nest() {
    let layer = LinearConfig::new(3, 3).init(&Device::flex());
    let scope = perturbation(&layer, &EggrollConfig::new().into(), &[]);
    scope.run(PAIRS, || scope.run(PAIRS, || ()));
}

#[test]
fn a_panic_leaves_the_scope() {
    let device = Device::flex();
    let layer = LinearConfig::new(3, 2).init(&device);
    let scope = perturbation(&layer, &EggrollConfig::new().into(), &[]);
    let x = Tensor::<2>::ones([MEMBERS, 3], &device);
    let plain = values(layer.forward(x.clone()));
    let caught =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| scope.run(PAIRS, || -> () { panic!("the closure") })));
    assert!(caught.is_err());
    assert_eq!(values(layer.forward(x.clone())), plain);
    scope.run(PAIRS, || assert_ne!(values(layer.forward(x)), plain));
}

#[test]
fn other_threads_are_outside() {
    let device = Device::flex();
    let layer = LinearConfig::new(3, 2).init(&device);
    let scope = perturbation(&layer, &EggrollConfig::new().into(), &[]);
    let x = Tensor::<2>::ones([MEMBERS, 3], &device);
    let plain = values(layer.forward(x.clone()));
    let (there, used) = scope.run(PAIRS, || {
        std::thread::scope(|threads| threads.spawn(|| values(layer.forward(x.clone()))).join().expect("no panic"))
    });
    assert_eq!(there, plain);
    assert!(!used.uses.iter().any(ParameterUse::is_used));
}

#[test]
#[should_panic(expected = "the input [2, 4] does not fit the weight [3, 2]")]
fn refuses_other_width() {
    let device = Device::flex();
    LinearConfig::new(3, 2).init(&device).forward(Tensor::<2>::ones([2, 4], &device));
}

/// Four steps of members, behind an axis of one: dealt out in order, members would get others' rows.
#[test]
#[should_panic(expected = "the first axis of the input [4, 6, 3] is not a multiple of 6 members")]
fn refuses_time_first() {
    let device = Device::flex();
    let layer = LinearConfig::new(3, 2).init(&device);
    let scope = perturbation(&layer, &EggrollConfig::new().into(), &[]);
    scope.run(PAIRS, || layer.forward(Tensor::<4>::ones([1, 4, MEMBERS, 3], &device)));
}
