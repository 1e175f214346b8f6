//! A custom perturbed layer.

use burn::module::Param;
use burn::optim::SgdConfig;
use burn::tensor::DType;
use eggroll::core::ops::integer::{self, Rounding};
use eggroll::core::scope;
use eggroll::nn::integer::LinearConfig;
use eggroll::prelude::*;

// ANCHOR: layer
/// `y = x·γ`, element by element; inside `evaluate` every member's own `γ`.
#[derive(Module, Debug)]
struct Gain {
    gamma: Param<Tensor<1>>,
}

impl Gain {
    /// - input: `[rows, width]`; inside `evaluate` `[members · rows, width]`, member-major
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let Some(parameter) = scope::active(&self.gamma) else {
            return x * self.gamma.val().unsqueeze::<2>();
        };
        let gain = parameter.vector(&self.gamma); // [members, width]
        let ([rows, width], [members, _]) = (x.dims(), gain.dims());
        let x = x.reshape([members, rows / members, width]);
        (x * gain.unsqueeze_dim::<3>(1)).reshape([rows, width])
    }
}
// ANCHOR_END: layer

#[test]
fn equals_members_of_explicit_weights() {
    let device = Device::flex();
    let model = Gain { gamma: Param::from_tensor(Tensor::from_floats([1.0, 2.0, 3.0], &device)) };
    let x = Tensor::<2>::from_floats([[1.0, -1.0, 0.5], [2.0, 0.0, 1.0]], &device);
    let config =
        EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(8).with_sigma(0.5);
    let population = config.init(&model).ask();
    let batched = population.evaluate(|members| members.mean(model.forward(members.repeat(x.clone()))));
    // Every member as a separate model, outside the scope.
    let expected = population.evaluate_each(&model, |member: Gain| member.forward(x.clone()).mean());
    for (member, (found, expected)) in batched.values().iter().zip(expected.values()).enumerate() {
        assert!((found - expected).abs() < 1e-5, "member {member}: {found} {expected}");
    }
    assert!(batched.values()[0] != batched.values()[1], "canary: the members of a pair differ");
}

/// `y = clip(x + ⌊x·W / (16·⌊√width⌋)⌋)` in int8; inside `evaluate` every member's own `W`.
#[derive(Module, Debug)]
struct Residual {
    weight: Param<Tensor<2, Int>>,
}

impl Residual {
    /// - input: `[rows, width]`; inside `evaluate` `[members · rows, width]`, member-major
    fn forward(&self, x: Tensor<2, Int>) -> Tensor<2, Int> {
        let noise = scope::active(&self.weight).and_then(|parameter| {
            parameter.check_rows(x.dims()[0]);
            parameter.integer_noise()
        });
        let y = integer::linear(x.clone(), self.weight.val(), noise, None, false, Rounding::Floor);
        integer::add(x, y, Rounding::Floor)
    }
}

#[test]
fn integers_are_the_same_in_every_chunk() {
    let device = Device::flex();
    let model = Residual { weight: LinearConfig::new(4, 4).init(&device).weight };
    let x =
        Tensor::<2, Int>::from_ints([[16, -16, 8, 3], [32, 0, 16, -9]], &device).cast(integer::integer_type(&device));
    let config = EvolutionStrategyConfig::integer(QEggrollConfig::new().with_sigma_shift(0)).with_population_size(8);
    let scores = |config: &EvolutionStrategyConfig| {
        let population = config.init(&model).ask();
        population.evaluate(|members| members.mean(model.forward(members.repeat(x.clone())).float())).values().to_vec()
    };
    let whole = scores(&config);
    assert_eq!(whole, scores(&config.clone().with_chunk_size(2)));
    assert!(whole[0] != whole[1], "canary: the members of a pair differ");
    // Outside of `evaluate` it is the plain layer.
    let plain = integer::linear(x.clone(), model.weight.val(), None, None, false, Rounding::Floor);
    let sum = (x.clone().cast(DType::I32) + plain.cast(DType::I32)).clamp(-127, 127);
    assert_eq!(model.forward(x.clone()).cast(DType::I32).into_data(), sum.into_data());
}
