//! The perturbed linear layer against `burn::nn::Linear` and against explicit perturbed weights.

use burn::module::{Module, Param};
use burn::nn;
use burn::store::ModuleRecord;
use burn::tensor::{Device, Distribution, Tensor};
use eggroll_core::scope::{Perturbation, Use};
use eggroll_core::{
    EggrollConfig, NoiseDistribution, NoiserConfig, OpenEsConfig, PairRange, ParameterTable, reference,
};
use eggroll_nn::{Linear, LinearConfig};
use std::sync::Arc;

const PAIRS: PairRange = PairRange { first: 2, count: 3 };

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("f32")
}

fn perturbation(layer: &Linear, noiser: NoiserConfig, frozen: &[&str]) -> Perturbation {
    let noiser = noiser.init().expect("valid");
    let frozen: Vec<String> = frozen.iter().map(|name| name.to_string()).collect();
    let table = ParameterTable::new(layer, noiser.as_ref(), &frozen).expect("valid");
    Perturbation { noiser, table: Arc::new(table), seed: 9, generation: 4, sigma: 0.25, held: Arc::default() }
}

/// The layer as member `member` sees it, its weights formed by the oracle.
fn explicit(layer: &Linear, scope: &Perturbation, rank: Option<usize>, member: usize) -> Linear {
    let pair = PAIRS.first + (member / 2) as u32;
    let sign = if member.is_multiple_of(2) { 1.0 } else { -1.0 };
    let [d_input, d_output] = layer.weight.val().dims();
    let key = scope.parameter(0).key;
    let (drawn, scale) = match rank {
        Some(rank) => (reference::low_rank_noise(key, pair, rank, [d_input, d_output]), (rank as f64).sqrt()),
        None => (reference::dense_noise(key, pair, d_input * d_output), 1.0),
    };
    let device = layer.weight.val().device();
    let add = |drawn: Vec<f64>, scale: f64| {
        let shift: Vec<f32> = drawn.iter().map(|e| (sign * scope.sigma / scale * e) as f32).collect();
        Tensor::<1>::from_floats(&shift[..], &device)
    };
    let weight = layer.weight.val() + add(drawn, scale).reshape([d_input, d_output]);
    let bias = layer.bias.as_ref().map(|bias| {
        let drawn = reference::dense_noise(scope.parameter(1).key, pair, d_output);
        Param::from_tensor(bias.val() + add(drawn, 1.0))
    });
    Linear { weight: Param::from_tensor(weight), bias }
}

fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 2e-5 * (1.0 + expected.abs()), "{found} {expected}");
    }
}

#[test]
fn outside_evaluate_equals_burn_bit_for_bit() {
    let device = Device::flex();
    for layout in [nn::LinearLayout::Row, nn::LinearLayout::Col] {
        for bias in [true, false] {
            let burn_layer = nn::LinearConfig::new(13, 7).with_bias(bias).with_layout(layout).init(&device);
            let layer = Linear::from(burn_layer.clone());
            let x = Tensor::<3>::random([4, 5, 13], Distribution::Default, &device);
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
    let fresh = || nn::LinearConfig::new(6, 4).init(&device);
    let burn_layer = fresh();
    let bytes = burn_layer.clone().into_record().into_bytes().expect("writes");
    let layer = Linear::from(fresh()).load_record(ModuleRecord::from_bytes(bytes).expect("reads"));
    assert_eq!(values(layer.weight.val()), values(burn_layer.weight.val()));
    let bytes = layer.clone().into_record().into_bytes().expect("writes");
    let back = fresh().load_record(ModuleRecord::from_bytes(bytes).expect("reads"));
    assert_eq!(values(back.bias.expect("a bias").val()), values(layer.bias.expect("a bias").val()));
}

#[test]
fn inside_evaluate_equals_explicit_weights() {
    let device = Device::flex();
    let noisers = [
        (NoiserConfig::from(EggrollConfig::new().with_rank(3)), Some(3)),
        (NoiserConfig::from(OpenEsConfig::new()), None),
        (EggrollConfig::new().with_distribution(NoiseDistribution::Rademacher).into(), Some(1)),
        (OpenEsConfig::new().with_distribution(NoiseDistribution::Rademacher).into(), None),
    ];
    for layout in [nn::LinearLayout::Row, nn::LinearLayout::Col] {
        for (noiser, rank) in &noisers {
            let layer = LinearConfig::new(13, 7).with_layout(layout).init(&device);
            let scope = perturbation(&layer, noiser.clone(), &[]);
            let x = Tensor::<3>::random([6 * 2, 5, 13], Distribution::Default, &device);
            let (y, used) = scope.run(PAIRS, || layer.forward(x.clone()));
            assert!(used.uses.iter().all(Use::is_used));
            assert_eq!(used.output_bytes, 12 * 5 * 7 * 4);
            let (shared, _) = scope.run(PAIRS, || layer.forward_shared(x.clone()));
            assert_eq!(shared.dims(), [6 * 12, 5, 7]);
            for member in 0..6 {
                let explicit = explicit(&layer, &scope, *rank, member);
                let own = member * 2..(member + 1) * 2;
                let expected = values(explicit.forward(x.clone().slice(own.clone())));
                assert_close(&values(y.clone().slice(own)), &expected);
                let all = member * 12..(member + 1) * 12;
                assert_close(&values(shared.clone().slice(all)), &values(explicit.forward(x.clone())));
            }
        }
    }
}

#[test]
fn frozen_parameters_stay_plain() {
    let device = Device::flex();
    let layer = LinearConfig::new(5, 4).init(&device);
    let x = Tensor::<2>::random([6, 5], Distribution::Default, &device);
    let scope = perturbation(&layer, EggrollConfig::new().into(), &["weight"]);
    let (y, _) = scope.run(PAIRS, || layer.forward(x.clone()));
    let (shared, _) = scope.run(PAIRS, || layer.forward_shared(x.clone().slice(0..1)));
    for member in 0..6 {
        let explicit = Linear { weight: layer.weight.clone(), ..explicit(&layer, &scope, Some(1), member) };
        assert_close(
            &values(y.clone().slice(member..member + 1)),
            &values(explicit.forward(x.clone().slice(member..member + 1))),
        );
        assert_close(
            &values(shared.clone().slice(member..member + 1)),
            &values(explicit.forward(x.clone().slice(0..1))),
        );
    }
    let scope = perturbation(&layer, EggrollConfig::new().with_freeze_non_matrix(true).into(), &[]);
    let (y, _) = scope.run(PAIRS, || layer.forward(x.clone()));
    let plain = Linear { bias: layer.bias.clone(), ..explicit(&layer, &scope, Some(1), 0) };
    assert_close(&values(y.slice(0..1)), &values(plain.forward(x.slice(0..1))));
}

#[test]
fn other_models_stay_plain_inside() {
    let device = Device::flex();
    let (layer, other) = (LinearConfig::new(3, 2).init(&device), LinearConfig::new(3, 2).init(&device));
    let x = Tensor::<2>::random([6, 3], Distribution::Default, &device);
    let scope = perturbation(&layer, EggrollConfig::new().into(), &[]);
    let (y, used) = scope.run(PAIRS, || other.forward(x.clone()));
    assert_eq!(values(y), values(other.forward(x)));
    assert!(!used.uses.iter().any(Use::is_used));
}

#[test]
fn scopes_of_two_models_nest() {
    let device = Device::flex();
    let (a, b) = (LinearConfig::new(3, 3).init(&device), LinearConfig::new(3, 3).init(&device));
    let x = Tensor::<2>::random([6, 3], Distribution::Default, &device);
    let (scope_a, scope_b) =
        (perturbation(&a, EggrollConfig::new().into(), &[]), perturbation(&b, EggrollConfig::new().into(), &[]));
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
    let scope = perturbation(&layer, EggrollConfig::new().into(), &[]);
    scope.run(PAIRS, || scope.run(PAIRS, || ()));
}

#[test]
fn a_panic_leaves_the_scope() {
    let device = Device::flex();
    let layer = LinearConfig::new(3, 2).init(&device);
    let scope = perturbation(&layer, EggrollConfig::new().into(), &[]);
    let x = Tensor::<2>::ones([6, 3], &device);
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
    let scope = perturbation(&layer, EggrollConfig::new().into(), &[]);
    let x = Tensor::<2>::ones([6, 3], &device);
    let plain = values(layer.forward(x.clone()));
    let (there, used) = scope.run(PAIRS, || {
        std::thread::scope(|threads| threads.spawn(|| values(layer.forward(x.clone()))).join().expect("no panic"))
    });
    assert_eq!(there, plain);
    assert!(!used.uses.iter().any(Use::is_used));
}

#[test]
#[should_panic(expected = "the input [2, 4] does not fit the weight [3, 2]")]
fn refuses_other_width() {
    let device = Device::flex();
    LinearConfig::new(3, 2).init(&device).forward(Tensor::<2>::ones([2, 4], &device));
}
