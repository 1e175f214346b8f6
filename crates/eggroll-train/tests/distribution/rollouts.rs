//! Rollouts on replicas: the same episodes, and the same statistics of what was observed.

use crate::support::replicas;
use burn::module::{Module, ModuleMapper, Param};
use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use eggroll_core::EggrollConfig;
use eggroll_envs::CartPole;
use eggroll_nn::{Mlp, MlpConfig};
use eggroll_train::distribution::{Alone, Communicator, evaluate_sharded};
use eggroll_train::*;
use std::sync::{Arc, Mutex};

const MEMBERS: usize = 14;

/// Weights that depend on nothing but their places.
fn policy() -> Mlp {
    struct Fixed;
    impl ModuleMapper for Fixed {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|value| {
                let (dims, device) = (value.dims(), value.device());
                let count = dims.iter().product::<usize>() as i64;
                Tensor::arange(0..count, &device).float().mul_scalar(1.7).sin().mul_scalar(0.6).reshape(dims)
            })
        }
    }
    MlpConfig::new(vec![4, 9, 2]).init(&Device::flex()).map(&mut Fixed)
}

/// The parameters and the observations' statistics after some generations.
fn train(
    config: &RolloutConfig,
    communicator: impl Communicator,
    gathers: bool,
) -> (String, Option<ObservationNormaliser>) {
    let mut policy = policy();
    let strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new());
    let mut strategy = strategy.with_population(MEMBERS).with_sigma(0.4).with_seed(5).init(&policy);
    let mut rollouts = config.init(CartPole::new()).expect("valid");
    let mut communicator = Arc::new(Mutex::new(communicator));
    for _ in 0..3 {
        let population = strategy.ask();
        let mut within = communicator.clone();
        let mut episodes = None;
        let fitness = evaluate_sharded(&population, &mut communicator, |slice| {
            let outcome = match gathers {
                true => rollouts.evaluate_gathering(slice, &policy, &mut within).expect("of all ranks"),
                false => rollouts.evaluate(slice, &policy),
            };
            episodes = Some(outcome.episodes);
            outcome.fitness
        });
        rollouts.observe(&episodes.expect("evaluated"));
        policy = strategy.tell(policy, population, fitness.expect("of all ranks")).expect("a generation");
    }
    (parameter_digest(&policy), rollouts.normaliser().cloned())
}

#[test]
fn rollouts_of_slices() {
    let config = RolloutConfig::new().with_episodes(2).with_head(ActionHead::Sampled);
    for fused in [true, false] {
        let plain = config.clone().with_fused(fused);
        let normalised = plain.clone().with_normalise_observations(true);
        for config in [&plain, &normalised] {
            let expected = train(config, Alone, true);
            for size in [1, 2, 3, 4, 9] {
                for found in replicas(size, |threads| train(config, threads, true)) {
                    assert_eq!(found, expected, "{size} replicas, {config:?}");
                }
            }
        }
        let own = replicas(2, |threads| train(&normalised, threads, false).1);
        assert_ne!(own[0], own[1], "canary: ranks that observe their own episodes only");
    }
}
