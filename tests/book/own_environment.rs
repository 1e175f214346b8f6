//! A custom environment.

use burn::optim::AdamConfig;
use eggroll::nn::MlpConfig;
use eggroll::prelude::*;
use eggroll::rl::{
    ActionHead, ActionSpace, EpisodeKey, EvaluationConfig, HostTransition, RolloutConfig, TensorEnvironment, Transition,
};

// ANCHOR: environment
/// A mass on a line that is pushed: to be kept near 0.
#[derive(Clone, Debug)]
struct Mass;

/// Seconds of a step.
const STEP: f32 = 0.1;

impl TensorEnvironment for Mass {
    fn name(&self) -> &'static str {
        "Mass-v0"
    }

    fn state_size(&self) -> usize {
        2 // position, speed
    }

    fn observation_size(&self) -> usize {
        2
    }

    fn actions(&self) -> ActionSpace {
        ActionSpace::Continuous { size: 1, low: -1.0, high: 1.0 }
    }

    fn time_limit(&self) -> usize {
        50
    }

    fn reset_host(&self, key: EpisodeKey, state: &mut [f32]) {
        state[0] = key.uniform_in(-1.0, 1.0, 0, 0); // step 0 is the reset, draw 0 its first number
        state[1] = 0.0;
    }
    // ANCHOR_END: environment

    // ANCHOR: tensors
    fn observe(&self, state: Tensor<2>) -> Tensor<2> {
        state
    }

    fn step(&self, state: Tensor<2>, actions: Tensor<2>) -> Transition {
        let position = state.clone().slice_dim(1, 0..1); // [environments, 1]
        let speed = state.slice_dim(1, 1..2) + actions * STEP;
        let position = position + speed.clone() * STEP;
        let distance = position.clone().abs().squeeze_dim::<1>(1); // [environments]
        Transition {
            state: Tensor::cat(vec![position, speed], 1),
            reward: -distance.clone(),
            terminated: distance.greater_elem(2.0),
        }
    }
    // ANCHOR_END: tensors

    // ANCHOR: host
    fn has_host_form(&self) -> bool {
        true
    }

    fn observe_host(&self, state: &[f32], observation: &mut [f32]) {
        observation.copy_from_slice(state);
    }

    fn step_host(&self, state: &mut [f32], action: &[f32]) -> HostTransition {
        state[1] += action[0] * STEP;
        state[0] += state[1] * STEP;
        let distance = state[0].abs();
        HostTransition { reward: -distance, terminated: distance > 2.0 }
    }
    // ANCHOR_END: host
}

// ANCHOR: forms
/// Both forms of an environment take the same steps, bit for bit.
#[test]
fn forms_agree() {
    let device = Device::flex();
    let keys: Vec<EpisodeKey> = (0..8).map(|episode| EpisodeKey::new(0, 0, episode)).collect();
    let mut states = Mass.reset(&keys, &device); // [8, 2]
    let mut rows: Vec<f32> = states.clone().into_data().iter().collect();
    for step in 0..50 {
        let actions: Vec<f32> = keys.iter().map(|key| key.uniform_in(-1.0, 1.0, 1000 + step, 0)).collect();
        let tensor = Tensor::from_data(TensorData::new(actions.clone(), [8, 1]), &device);
        let after = Mass.step(states, tensor);
        let ends: Vec<bool> = after.terminated.into_data().iter().collect();
        for ((row, action), end) in rows.chunks_exact_mut(2).zip(&actions).zip(ends) {
            assert_eq!(Mass.step_host(row, &[*action]).terminated, end);
        }
        states = after.state;
        assert_eq!(states.clone().into_data().iter().collect::<Vec<f32>>(), rows, "step {step}");
    }
}
// ANCHOR_END: forms

#[test]
fn canary_a_policy_learns_in_it_and_not_without_updates() {
    let device = Device::flex();
    let after = |rate: f64| {
        let initializer = nn::Initializer::Zeros;
        let mut policy = MlpConfig::new(vec![2, 1]).with_initializer(initializer).init(&device);
        let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
            .with_population_size(64)
            .with_sigma(0.3)
            .with_learning_rate(rate);
        let mut strategy = config.init(&policy);
        let rollouts =
            RolloutConfig::new().with_head(ActionHead::Tanh).init(Mass).expect("a head of continuous actions");
        for _ in 0..30 {
            let population = strategy.ask();
            let outcome = rollouts.evaluate(&population, &policy);
            strategy.tell(&mut policy, population, outcome.fitness).expect("a generation");
        }
        rollouts.evaluate_model(&policy, &EvaluationConfig::new(20), &device).mean_return()
    };
    let (trained, untrained) = (after(0.1), after(0.0));
    assert!(trained > untrained + 5.0, "{trained} after training, {untrained} without");
}
