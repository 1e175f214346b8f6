//! Twins of Burn's modules, and models without them.

use burn::optim::SgdConfig;
use eggroll::nn::graph::PopulationGraph;
use eggroll::prelude::{Device, EggrollConfig, EvolutionStrategyConfig, Module, Tensor, activation};

#[test]
fn twins_and_back() {
    let device = Device::flex();
    let x = Tensor::<2>::ones([2, 4], &device);
    // ANCHOR: twins
    let layer = burn::nn::LinearConfig::new(4, 3).init(&device);
    let twin = eggroll::nn::Linear::from(layer.clone());
    assert_eq!(twin.forward(x.clone()).into_data(), layer.forward(x).into_data()); // bit for bit
    let back = burn::nn::Linear::from(twin);
    // ANCHOR_END: twins
    assert_eq!(back.weight.val().into_data(), layer.weight.val().into_data());
}

// ANCHOR: unmodified
#[derive(Module, Debug)]
struct Plain {
    first: burn::nn::Linear,
    norm: burn::nn::LayerNorm,
    second: burn::nn::Linear,
}

impl Plain {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(activation::gelu(self.norm.forward(self.first.forward(x))))
    }
}
// ANCHOR_END: unmodified

fn plain() -> Plain {
    let device = Device::flex();
    Plain {
        first: burn::nn::LinearConfig::new(4, 8).init(&device),
        norm: burn::nn::LayerNormConfig::new(8).init(&device),
        second: burn::nn::LinearConfig::new(8, 2).init(&device),
    }
}

#[test]
fn unmodified_models() {
    let model = plain();
    let x = Tensor::<2>::ones([5, 4], &Device::flex());
    let strategy =
        EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(8).init(&model);
    // ANCHOR: graph
    let graph = PopulationGraph::trace(&model, x.clone(), |model: &Plain, x: Tensor<2>| model.forward(x))
        .expect("a forward that runs for a population");
    let population = strategy.ask();
    let batched = population.evaluate(|members| members.mean(graph.forward_shared(&model, x.clone())));
    // ANCHOR_END: graph
    let one_by_one = population.evaluate_each(&model, |member: Plain| member.forward(x.clone()).mean());
    let close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-4;
    assert!(batched.values().iter().zip(one_by_one.values()).all(close), "{batched:?} {one_by_one:?}");
    let spread = batched.values().iter().fold(0.0f32, |spread, value| spread.max((value - batched.values()[0]).abs()));
    assert!(spread > 1e-3, "canary: members differ, {batched:?}");
}

#[test]
fn two_models() {
    let model = eggroll::nn::LinearConfig::new(4, 2).init(&Device::flex());
    let x = Tensor::<2>::ones([5, 4], &Device::flex());
    let strategy =
        EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(8).init(&model);
    let population = strategy.ask();
    // ANCHOR: teacher
    let teacher = model.clone().no_grad();
    let fitness = population.evaluate(|members| {
        -members.mse(model.forward_shared(x.clone()), teacher.forward(x.clone())) // the teacher has no members
    });
    // ANCHOR_END: teacher
    assert!(fitness.values().iter().all(|value| *value < 0.0), "only the student has noise: {fitness:?}");
}
