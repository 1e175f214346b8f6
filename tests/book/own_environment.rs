//! A custom environment.

use burn::optim::AdamConfig;
use eggroll::nn::MlpConfig;
use eggroll::prelude::*;
use eggroll::rl::{
    ActionHead, ActionSpace, EpisodeKey, EvaluationConfig, Number, Physics, RolloutConfig, Step, TensorEnvironment,
    Transition,
};
use rand::RngExt;
use rand_distr::Normal;

// ANCHOR: physics
/// A mass on a line that is pushed: to be kept near 0.
#[derive(Clone, Debug)]
struct Mass;

/// Seconds of a step.
const STEP: f32 = 0.1;

impl Physics for Mass {
    type State<N: Number> = [N; 2]; // position, speed
    type Seen<N: Number> = [N; 2];
    const NAME: &'static str = "Mass-v0";
    const ACTIONS: ActionSpace = ActionSpace::Continuous { size: 1, low: -1.0, high: 1.0 };
    const TIME_LIMIT: usize = 50;

    fn start(key: EpisodeKey) -> [f32; 2] {
        [key.uniform_in(-1.0, 1.0, 0, 0), 0.0] // step 0 is the reset, draw 0 its first number
    }

    fn observation<N: Number>(state: [N; 2]) -> [N; 2] {
        state
    }

    fn transition<N: Number>([position, speed]: [N; 2], push: N) -> Step<N, [N; 2]> {
        let speed = speed + push * STEP;
        let position = position + speed.clone() * STEP;
        let distance = position.clone().abs();
        Step { reward: distance.clone() * -1.0, ended: Some(distance.greater(2.0)), state: [position, speed] }
    }
}
// ANCHOR_END: physics

/// The same mass, pushed along both axes of a plane.
#[derive(Clone, Debug)]
struct Plane;

impl TensorEnvironment for Plane {
    fn name(&self) -> &'static str {
        "Plane-v0"
    }

    fn state_size(&self) -> usize {
        4 // positions, speeds
    }

    fn observation_size(&self) -> usize {
        4
    }

    fn actions(&self) -> ActionSpace {
        ActionSpace::Continuous { size: 2, low: -1.0, high: 1.0 }
    }

    fn time_limit(&self) -> usize {
        50
    }

    fn reset_host(&self, key: EpisodeKey, state: &mut [f32]) {
        let mut rng = key.rng(); // for rand and rand_distr
        state[..2].fill_with(|| rng.random_range(-1.0..1.0));
        let speed = Normal::new(0.0, 0.1).expect("a standard deviation");
        state[2..].fill_with(|| rng.sample(speed));
    }

    fn observe(&self, state: Tensor<2>) -> Tensor<2> {
        state
    }

    fn step(&self, state: Tensor<2>, actions: Tensor<2>) -> Transition {
        let positions = state.clone().slice_dim(1, 0..2); // [environments, 2]
        let speeds = state.slice_dim(1, 2..4) + actions * STEP;
        let positions = positions + speeds.clone() * STEP;
        let distance = positions.clone().abs().sum_dim(1).squeeze_dim::<1>(1); // [environments]
        Transition {
            state: Tensor::cat(vec![positions, speeds], 1),
            reward: -distance.clone(),
            terminated: distance.greater_elem(2.0),
        }
    }
}

/// The form on tensors and that on floats take the same steps, bit for bit.
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

#[test]
fn canary_a_policy_learns_and_does_not_without_updates() {
    for (name, trained, untrained) in
        [("mass", after(Mass, 0.1), after(Mass, 0.0)), ("plane", after(Plane, 0.1), after(Plane, 0.0))]
    {
        assert!(trained > untrained + 5.0, "{name}: {trained} after training, {untrained} without");
    }
}

/// The mean return after some generations.
fn after<E: TensorEnvironment + Clone + 'static>(environment: E, rate: f64) -> f64 {
    let device = Device::flex();
    let sizes = vec![environment.observation_size(), environment.actions().outputs()];
    let mut policy = MlpConfig::new(sizes).with_initializer(nn::Initializer::Zeros).init(&device);
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
        .with_population_size(64)
        .with_sigma(0.3)
        .with_learning_rate(rate);
    let mut strategy = config.init(&policy);
    let rollouts =
        RolloutConfig::new().with_head(ActionHead::Tanh).init(environment).expect("a head of continuous actions");
    for _ in 0..30 {
        let population = strategy.ask();
        let outcome = rollouts.evaluate(&population, &policy);
        strategy.tell(&mut policy, population, outcome.fitness).expect("a generation");
    }
    rollouts.evaluate_model(&policy, &EvaluationConfig::new(20), &device).mean_return()
}
