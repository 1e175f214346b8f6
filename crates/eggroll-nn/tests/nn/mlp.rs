//! Multilayer perceptrons: as modules, and as chains on the host.

use crate::support::{
    LAYER, MEMBERS, PAIRS, assert_members, every_device, noisers, perturbation, rows_of, scramble, uniform, values,
};
use burn::nn::activation::ActivationConfig;
use burn::tensor::{Device, Tensor};
use eggroll_core::chain::{Chain, ChainActivation, ChainLayer, ChainRow};
use eggroll_core::scope::Perturbation;
use eggroll_core::{
    BaselineSubtractionConfig, EggrollConfig, NoiseDistribution, NoiserConfig, OpenEsConfig, SparseConfig,
};
use eggroll_nn::{Mlp, MlpConfig};

/// Rows of a member.
const ROWS: usize = 3;

fn mlp(activation: ActivationConfig, device: &Device) -> Mlp {
    scramble(MlpConfig::new(vec![5, 37, 180, 3]).with_activation(activation).init(device))
}

#[test]
fn equals_linear_layers_and_members() {
    for device in every_device() {
        let model = mlp(ActivationConfig::Tanh, &device);
        let x = uniform([MEMBERS * ROWS, 5], 1, &device);
        let [first, second, third] = [0, 1, 2].map(|layer| burn::nn::Linear::from(model.layers[layer].clone()));
        let plain = third.forward(second.forward(first.forward(x.clone()).tanh()).tanh());
        assert_eq!(model.forward(x.clone()).into_data(), plain.clone().into_data());
        assert_eq!(model.forward_shared(x.clone()).into_data(), plain.into_data());
        for noiser in noisers() {
            let scope = perturbation(&model, &noiser, &[]);
            let alone = |member, model: Mlp| model.forward(rows_of(&x, member));
            assert_members(("mlp", LAYER), &model, &scope, || model.forward(x.clone()), alone);
            let shared = rows_of(&x, 0);
            let alone = |_, model: Mlp| model.forward(shared.clone());
            assert_members(("mlp", LAYER), &model, &scope, || model.forward_shared(shared.clone()), alone);
        }
    }
}

#[test]
#[should_panic(expected = "its sizes are [4]")]
fn one_size_is_refused() {
    MlpConfig::new(vec![4]).init(&Device::flex());
}

fn chain(model: &Mlp, scope: &Perturbation, activation: ChainActivation) -> Option<Chain> {
    let last = model.layers.len() - 1;
    let layers = model.layers.iter().enumerate().map(|(index, layer)| ChainLayer {
        weight: &layer.weight,
        bias: layer.bias.as_ref(),
        activation: if index == last { ChainActivation::Identity } else { activation },
    });
    Chain::new(scope, &layers.collect::<Vec<_>>())
}

/// What the chain computes for the rows of [`PAIRS`] in another order, put back into theirs.
fn shuffled(chain: &Chain, x: &Tensor<2>) -> Vec<f32> {
    let [inputs, outputs] = chain.shape();
    let count = MEMBERS * ROWS;
    let mut buffers = chain.buffers(4, count);
    // Slots in no order, one of them drawn for another pair before.
    let slots = [3, 0, 2];
    chain.draw(7, 3, &mut buffers);
    for (pair, slot) in slots.into_iter().enumerate() {
        chain.draw(PAIRS.first + pair as u32, slot, &mut buffers);
    }
    let order: Vec<usize> = (0..count).map(|row| (7 * row + 3) % count).collect();
    let rows = order.iter().map(|row| ChainRow { slot: slots[row / ROWS / 2], minus: row / ROWS % 2 == 1 });
    let x = values(x.clone());
    let mixed: Vec<f32> = order.iter().flat_map(|row| x[row * inputs..][..inputs].to_vec()).collect();
    let (mut mixed_y, mut y) = (vec![0.0; count * outputs], vec![0.0; count * outputs]);
    chain.forward(&rows.collect::<Vec<_>>(), &mixed, &mut buffers, &mut mixed_y);
    for (place, row) in order.into_iter().enumerate() {
        y[row * outputs..][..outputs].copy_from_slice(&mixed_y[place * outputs..][..outputs]);
    }
    y
}

#[test]
fn chains_give_the_bits_of_the_operations() {
    let device = Device::flex();
    let noisers: [NoiserConfig; 5] = [
        EggrollConfig::new().with_rank(4).into(),
        EggrollConfig::new().with_distribution(NoiseDistribution::Rademacher).into(),
        EggrollConfig::new().with_rank(3).with_freeze_non_matrix(true).into(),
        BaselineSubtractionConfig::new(4).into(),
        OpenEsConfig::new().into(),
    ];
    let activations = [
        (ActivationConfig::Relu, ChainActivation::Relu),
        (ActivationConfig::Tanh, ChainActivation::Tanh),
        (ActivationConfig::Identity, ChainActivation::Identity),
    ];
    for noiser in noisers {
        for (of_module, of_chain) in &activations {
            let model = mlp(of_module.clone(), &device);
            let scope = perturbation(&model, &noiser, &[]);
            let x = uniform([MEMBERS * ROWS, 5], 2, &device);
            let chain = chain(&model, &scope, *of_chain).expect("can be run on the host");
            assert_eq!(chain.parameters().len(), 6);
            let (expected, _) = scope.run(PAIRS, || model.forward(x.clone()));
            let found = shuffled(&chain, &x);
            assert_eq!(found, values(expected), "{noiser:?} {of_chain:?}");
            // Canary: members do differ.
            assert_ne!(found, values(model.forward(x)));
        }
    }
}

#[test]
fn what_roles_do_not_say_is_no_chain() {
    let device = Device::flex();
    let model = mlp(ActivationConfig::Relu, &device);
    for noiser in [NoiserConfig::NoOp, SparseConfig::new().into()] {
        let scope = perturbation(&model, &noiser, &[]);
        assert!(chain(&model, &scope, ChainActivation::Relu).is_none(), "{noiser:?}");
    }
    let frozen = perturbation(&model, &EggrollConfig::new().into(), &["layers.1.weight"]);
    assert!(chain(&model, &frozen, ChainActivation::Relu).is_none());
}
