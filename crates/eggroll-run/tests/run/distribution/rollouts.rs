//! Rollouts on replicas: the same episodes, and the same statistics of what was observed.

use crate::distribution::support::replicas;
use burn::module::{Module, ModuleMapper, Param};
use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use eggroll_core::EggrollConfig;
use eggroll_nn::{Mlp, MlpConfig};
use eggroll_rl::*;
use eggroll_run::distribution::{Alone, Communicator, evaluate_sharded};
use eggroll_run::*;
use eggroll_train::*;
use std::sync::{Arc, Mutex};

const MEMBERS: usize = 14;

/// Weights that depend on nothing but their places.
fn policy() -> Mlp {
    struct FixedPolicy;
    impl ModuleMapper for FixedPolicy {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|value| {
                let (dims, device) = (value.dims(), value.device());
                let count = dims.iter().product::<usize>() as i64;
                Tensor::arange(0..count, &device).float().mul_scalar(1.7).sin().mul_scalar(0.6).reshape(dims)
            })
        }
    }
    MlpConfig::new(vec![4, 9, 2]).init(&Device::flex()).map(&mut FixedPolicy)
}

/// The parameters and the rollouts, with what they have observed, after some generations.
fn train<R, C: Communicator>(
    mut rollouts: R,
    communicator: C,
    evaluate: impl Fn(&R, &Population, &Mlp, &mut Arc<Mutex<C>>) -> RolloutResult,
    observe: impl Fn(&mut R, &EpisodeStatistics),
) -> (String, R) {
    let mut policy = policy();
    let strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new());
    let mut strategy = strategy.with_population_size(MEMBERS).with_sigma(0.4).with_seed(5).init(&policy);
    let mut communicator = Arc::new(Mutex::new(communicator));
    for _ in 0..3 {
        let population = strategy.ask();
        let mut within = communicator.clone();
        let mut episodes = None;
        let fitness = evaluate_sharded(&population, &mut communicator, |slice| {
            let outcome = evaluate(&rollouts, slice, &policy, &mut within);
            episodes = Some(outcome.episodes);
            outcome.fitness
        });
        observe(&mut rollouts, &episodes.expect("evaluated"));
        strategy.tell(&mut policy, population, fitness.expect("of all ranks")).expect("a generation");
    }
    (parameter_digest(&policy), rollouts)
}

/// The parameters and the observations' statistics.
fn on_cart_pole(
    config: &RolloutConfig,
    communicator: impl Communicator,
    gathers: bool,
) -> (String, Option<ObservationNormalizer>) {
    let rollouts = config.init(CartPole::new()).expect("valid");
    let evaluate = |rollouts: &Rollouts<CartPole>, slice: &_, policy: &_, within: &mut _| match gathers {
        true => rollouts.evaluate_gathering(slice, policy, within).expect("of all ranks"),
        false => rollouts.evaluate(slice, policy),
    };
    let (digest, rollouts) = train(rollouts, communicator, evaluate, Rollouts::update_normalizer);
    (digest, rollouts.normalizer().cloned())
}

#[test]
fn rollouts_of_slices() {
    let config = RolloutConfig::new().with_episodes(2).with_head(ActionHead::Sampled);
    for fused in [true, false] {
        let plain = config.clone().with_fused(fused);
        let normalized = plain.clone().with_normalize_observations(true);
        for config in [&plain, &normalized] {
            let expected = on_cart_pole(config, Alone, true);
            for size in [1, 2, 3, 4, 9] {
                for found in replicas(size, |threads| on_cart_pole(config, threads, true)) {
                    assert_eq!(found, expected, "{size} replicas, {config:?}");
                }
            }
        }
        let own = replicas(2, |threads| on_cart_pole(&normalized, threads, false).1);
        assert_ne!(own[0], own[1], "canary: ranks that observe their own episodes only");
    }
}

mod on_the_host {
    use super::*;
    use burn_rl::{Environment, StepResult};
    use eggroll_rl::EpisodeKey;

    /// A cart that is pushed, and drifts.
    struct Cart(f64);

    impl Environment for Cart {
        type State = f64;
        type Action = f64;
        const MAX_STEPS: usize = 12;

        fn state(&self) -> f64 {
            self.0
        }
        fn step(&mut self, action: f64) -> StepResult<f64> {
            self.0 += 0.1 * action.tanh() + 0.02;
            StepResult { next_state: self.0, reward: -self.0.abs(), done: self.0.abs() > 2.0, truncated: false }
        }
        fn reset(&mut self) {
            unreachable!("an episode begins with an environment of its own");
        }
    }

    #[derive(Clone, Debug)]
    struct Centre;

    impl HostTask for Centre {
        type Environment = Cart;

        fn observation_size(&self) -> usize {
            4
        }
        fn begin(&self, key: EpisodeKey) -> Cart {
            Cart(key.uniform_in(-1.0, 1.0, 0, 0).into())
        }
        fn observe(&self, state: &f64, observation: &mut [f32]) {
            let x = *state as f32;
            observation.copy_from_slice(&[x, x * x, 3.0 * x, 1.0]);
        }
        fn act(&self, outputs: &[f32]) -> f64 {
            f64::from(outputs[0] - outputs[1])
        }
    }

    fn on_the_host(communicator: impl Communicator, gathers: bool) -> (String, Option<ObservationNormalizer>) {
        let config = HostRolloutConfig::new().with_episodes(2).with_normalize_observations(true);
        let evaluate = |rollouts: &HostRollouts<Centre>, slice: &_, policy: &_, within: &mut _| match gathers {
            true => rollouts.evaluate_gathering(slice, policy, within).expect("of all ranks"),
            false => rollouts.evaluate(slice, policy),
        };
        let rollouts = config.init(Centre).expect("valid");
        let (digest, rollouts) = train(rollouts, communicator, evaluate, HostRollouts::update_normalizer);
        (digest, rollouts.normalizer().cloned())
    }

    #[test]
    fn host_rollouts_of_slices() {
        let expected = on_the_host(Alone, true);
        for size in [1, 3, 4] {
            for found in replicas(size, |threads| on_the_host(threads, true)) {
                assert_eq!(found, expected, "{size} replicas");
            }
        }
        assert_ne!(replicas(2, |threads| on_the_host(threads, false))[0], expected, "canary: own episodes only");
    }
}
