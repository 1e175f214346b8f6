//! The settings of the example `cartpole` solve CartPole-v1 from several seeds, within a budget of environment steps.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor, TensorData};
use eggroll::nn::{Mlp, MlpConfig};
use eggroll::rl::{CartPole, EpisodeKey, EvaluationConfig, TensorEnvironment};
use eggroll::train::EvolutionStrategyConfig;
use eggroll_examples::control::ControlSettings;

/// Environment steps in which every seed is to solve it.
const BUDGET: u64 = 1_000_000;
/// Episodes of a test.
const EPISODES: usize = 100;

/// A network whose weights are drawn by the seed alone, whatever other tests draw.
fn policy(settings: &ControlSettings, device: &Device) -> Mlp {
    struct DrawWeights {
        seed: u64,
        parameter: u32,
    }

    impl ModuleMapper for DrawWeights {
        fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
            self.parameter += 1;
            let key = EpisodeKey::new(self.seed, self.parameter, 0);
            parameter.map(|values| {
                let shape = values.shape();
                let limit = 1.0 / (shape[0] as f32).sqrt();
                let drawn = (0..shape.num_elements()).map(|i| key.uniform_in(-limit, limit, 0, i as u32));
                Tensor::from_data(TensorData::new(drawn.collect::<Vec<f32>>(), shape), &values.device())
            })
        }
    }

    let sizes = [&[4][..], &settings.hidden, &[2]].concat();
    let network = MlpConfig::new(sizes).with_activation(settings.activation()).init(device);
    network.map(&mut DrawWeights { seed: settings.seed, parameter: 0 })
}

/// Environment steps until the mean policy reaches the threshold over 100 episodes, if it does within the budget.
fn steps_to_solve(settings: &ControlSettings, config: EvolutionStrategyConfig) -> Option<u64> {
    let device = Device::flex();
    let environment = CartPole::new();
    let threshold = f64::from(environment.solved_at().expect("a usual threshold"));
    let mut policy = policy(settings, &device);
    let mut strategy = config.init(&policy);
    let rollouts = settings.rollouts(environment.actions()).init(environment).expect("settings that fit");
    let mut steps = 0;
    while steps < BUDGET {
        let population = strategy.ask();
        let outcome = rollouts.evaluate(&population, &policy);
        steps += outcome.episodes.env_steps();
        strategy.tell(&mut policy, population, outcome.fitness).expect("a generation");
        let generation = strategy.generation();
        let is_tested = generation.is_multiple_of(settings.test_every);
        let test = || {
            rollouts.evaluate_model(
                &policy,
                &EvaluationConfig::new(EPISODES).with_seed(u64::from(u32::MAX) + generation),
                &device,
            )
        };
        if is_tested && test().mean_return() >= threshold {
            return Some(steps);
        }
    }
    None
}

#[test]
fn the_examples_settings_solve_it() {
    for seed in 0..3 {
        let settings = ControlSettings { seed, ..ControlSettings::of("CartPole-v1") };
        let steps = steps_to_solve(&settings, settings.strategy());
        assert!(steps.is_some(), "seed {seed}: not solved within {BUDGET} environment steps");
    }
}

#[test]
fn canary_without_updates_it_is_not_solved() {
    let settings = ControlSettings { test_every: 100, ..ControlSettings::of("CartPole-v1") };
    assert_eq!(steps_to_solve(&settings, settings.strategy().with_learning_rate(0.0)), None);
}
