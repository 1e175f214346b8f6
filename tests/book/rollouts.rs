//! An episode inside one evaluation: a simulator of tensor operations.

use burn::optim::AdamConfig;
use eggroll::nn::{Linear, LinearConfig};
use eggroll::prelude::*;

/// A mass on a line that a policy pushes: the score is how close to 0 it stays. Every member has its own world, a row of
/// the tensors.
fn score(policy: &Linear, members: &MemberChunk, device: &Device) -> Tensor<1> {
    let count = members.count();
    let mut position = members.assume_repeated(Tensor::<2>::ones([count, 1], device)); // a row for each member
    let mut speed = Tensor::<2>::zeros([count, 1], device);
    let mut distance = Tensor::<1>::zeros([count], device);
    for _ in 0..50 {
        let seen = Tensor::cat(vec![position.clone(), speed.clone()], 1); // [members, 2]
        let push = policy.forward(seen).clamp(-1.0, 1.0); // [members, 1]
        speed = speed + push * 0.1;
        position = position + speed.clone() * 0.1;
        distance = distance + members.mean(position.clone().abs());
    }
    -distance / 50.0
}

#[test]
fn a_policy_learns() {
    let device = Device::flex();
    let mut policy = LinearConfig::new(2, 1).with_initializer(nn::Initializer::Zeros).init(&device);
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
        .with_population_size(128)
        .with_sigma(0.1)
        .with_learning_rate(0.1)
        .with_noise_source(NoiseSourceConfig::Cached); // 50 forwards read the noise of a generation
    let mut strategy = config.init(&policy);
    let mut means = Vec::new();
    for _ in 0..40 {
        let population = strategy.ask();
        let fitness = population.evaluate(|members| score(&policy, members, &device));
        strategy.tell(&mut policy, population, fitness).expect("a generation");
        means.push(strategy.report().expect("a report").fitness_mean);
    }
    assert!(means[39] > means[0] + 0.1, "{means:?}");
}
