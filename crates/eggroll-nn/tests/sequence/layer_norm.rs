use crate::oracle::{check_members, check_records, devices, noisers, scramble, values, wave};
use burn::nn;
use burn::tensor::Device;
use eggroll_nn::{LayerNorm, LayerNormConfig};

#[test]
fn outside_evaluate_equals_burn_bit_for_bit() {
    let device = Device::flex();
    for bias in [true, false] {
        for epsilon in [1e-5, 0.1, 1.0 / 3.0] {
            let burn_layer = nn::LayerNormConfig::new(7).with_bias(bias).with_epsilon(epsilon).init(&device);
            let burn_layer = scramble(burn_layer, 1.0);
            let layer = LayerNorm::from(burn_layer.clone());
            let x = wave([4, 5, 7], 0.0, &device);
            let expected = values(burn_layer.forward(x.clone()));
            assert_eq!(values(layer.forward(x.clone())), expected);
            assert_eq!(values(nn::LayerNorm::from(layer).forward(x.clone())), expected);
            let other =
                scramble(LayerNormConfig::new(7).with_bias(bias).with_epsilon(epsilon * 1.1).init(&device), 1.0);
            assert_ne!(values(other.forward(x)), expected, "canary");
        }
    }
}

#[test]
fn records_move_both_ways() {
    let fresh = || nn::LayerNormConfig::new(6).with_epsilon(1e-3).init(&Device::flex());
    check_records::<_, LayerNorm>(fresh(), fresh());
}

#[test]
fn inside_evaluate_equals_explicit_parameters() {
    for device in devices() {
        for bias in [true, false] {
            let layer = scramble(LayerNormConfig::new(7).with_bias(bias).with_epsilon(0.01).init(&device), 1.0);
            let x = wave([6 * 2, 5, 7], 0.0, &device);
            for noiser in noisers() {
                let forward = |layer: &LayerNorm, rows| layer.forward(x.clone().slice_dim(0, rows));
                check_members(&layer, (noiser.clone(), &[]), 2, forward);
                if bias {
                    check_members(&layer, (noiser, &["beta"]), 2, forward);
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "6 members")]
fn refuses_rows_that_members_do_not_divide() {
    let device = Device::flex();
    let layer = LayerNormConfig::new(7).init(&device);
    let scope = crate::oracle::perturbation(&layer, noisers()[0].clone(), &[]);
    scope.run(crate::oracle::PAIRS, || layer.forward(wave([5, 7], 0.0, &device)));
}
