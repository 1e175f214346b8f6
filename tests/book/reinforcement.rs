//! Rollouts of populations in environments.

use burn::optim::AdamConfig;
use eggroll::nn::{Gru, GruConfig, Linear, LinearConfig, Mlp, MlpConfig};
use eggroll::prelude::*;
use eggroll::rl::{ActionHead, CartPole, EvaluationConfig, Policy, RolloutConfig};

#[test]
fn a_policy_is_trained() {
    let train = |device: &Device, generations: u64| -> Result<(Mlp, f64), eggroll::train::Error> {
        let mut policy = MlpConfig::new(vec![4, 32, 32, 2]).init(device);
        let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
            .with_population_size(128)
            .with_sigma(0.3)
            .with_learning_rate(0.1);
        let mut strategy = config.try_init(&policy)?;
        let rollouts = RolloutConfig::new().init(CartPole::new())?;
        for _ in 0..generations {
            let population = strategy.ask();
            let outcome = rollouts.evaluate(&population, &policy); // one episode of every member
            strategy.tell(&mut policy, population, outcome.fitness)?; // fitness is the return
        }
        // The mean policy, without noise.
        let episodes = rollouts.evaluate_model(&policy, &EvaluationConfig::new(100).with_seed(1), device);
        println!("mean return {}", episodes.mean_return());
        Ok((policy, episodes.mean_return()))
    };
    let device = Device::flex();
    // Initial weights are random, and one in fifteen learns slowly: the median of seven policies.
    let median = |generations| {
        let mut returns: Vec<f64> = (0..7).map(|_| train(&device, generations).expect("trains").1).collect();
        returns.sort_by(f64::total_cmp);
        returns[3]
    };
    let (after, untrained) = (median(20), median(0));
    assert!(after > 150.0, "a mean return of {after}");
    assert!(untrained < 150.0, "canary: {untrained} without training");
}

// ANCHOR: recurrent
/// A policy that remembers: a GRU and a linear layer.
#[derive(Module, Debug)]
struct Recurrent {
    gru: Gru,
    output: Linear,
}

impl Policy for Recurrent {
    type State = Tensor<2>; // a row for every environment

    fn initial_state(&self, rows: usize, device: &Device) -> Tensor<2> {
        Tensor::zeros([rows, self.gru.d_hidden], device)
    }

    fn forward(&self, observations: Tensor<2>, state: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let step = observations.unsqueeze_dim::<3>(1); // [rows, 1, observation_size]
        let state = self.gru.forward(step, Some(state)).squeeze_dim::<2>(1); // [rows, width]
        (self.output.forward(state.clone()), state)
    }
}
// ANCHOR_END: recurrent

#[test]
fn options_and_a_recurrent_policy() {
    let device = Device::flex();
    let policy =
        Recurrent { gru: GruConfig::new(4, 8, true).init(&device), output: LinearConfig::new(8, 2).init(&device) };
    let run = |seed: u64| -> Result<Vec<f32>, eggroll::train::Error> {
        let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_population_size(8);
        let strategy = config.with_sigma(0.3).try_init(&policy)?;
        let mut rollouts = RolloutConfig::new()
            .with_episodes(4) // for every member; all members have the same four
            .with_head(ActionHead::Sampled)
            .with_normalize_observations(true)
            .with_seed(seed)
            .init(CartPole::new())?;
        let outcome = rollouts.evaluate(&strategy.ask(), &policy);
        rollouts.update_normalizer(&outcome.episodes); // the running statistics of observations
        assert_eq!(outcome.episodes.returns().len(), 32);
        Ok(outcome.fitness.values().to_vec())
    };
    assert_eq!(run(1).expect("runs"), run(1).expect("runs"));
    assert_ne!(run(1).expect("runs"), run(2).expect("runs"), "canary: the seed changes nothing");
}
