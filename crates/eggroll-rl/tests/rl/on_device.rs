//! Rollouts in one kernel: against tensors on the same device and against the host, launches, and what falls back to tensors.

use crate::rollouts::{MEMBERS, OnlyLayers, mlp, strategy};
use burn::module::{Module, ModuleMapper, Param};
use burn::nn::activation::ActivationConfig;
use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use eggroll_core::{
    BaselineSubtractionConfig, DeviceName, EggrollConfig, NoiseDistribution, NoiseSourceConfig, NoiserConfig,
    OpenEsConfig, counters,
};
use eggroll_nn::Mlp;
use eggroll_rl::{
    Acrobot, ActionHead, ActionSpace, CartPole, Dynamics, EpisodeKey, EvaluationConfig, HostTransition, MountainCar,
    MountainCarContinuous, Pendulum, RolloutConfig, RolloutResult, TensorEnvironment, Transition,
};
use eggroll_train::EvolutionStrategyConfig;

fn device() -> Device {
    DeviceName::of_tests()
}

/// An environment whose episodes are cut off early, before roundings have grown.
#[derive(Clone)]
struct Short<E>(E, usize);

impl<E: TensorEnvironment> TensorEnvironment for Short<E> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn state_size(&self) -> usize {
        self.0.state_size()
    }

    fn observation_size(&self) -> usize {
        self.0.observation_size()
    }

    fn actions(&self) -> ActionSpace {
        self.0.actions()
    }

    fn time_limit(&self) -> usize {
        self.1
    }

    fn observe(&self, state: Tensor<2>) -> Tensor<2> {
        self.0.observe(state)
    }

    fn step(&self, state: Tensor<2>, actions: Tensor<2>) -> Transition {
        self.0.step(state, actions)
    }

    fn reset_host(&self, key: EpisodeKey, state: &mut [f32]) {
        self.0.reset_host(key, state);
    }

    fn dynamics(&self) -> Option<Dynamics> {
        self.0.dynamics()
    }

    fn has_host_form(&self) -> bool {
        true
    }

    fn observe_host(&self, state: &[f32], observation: &mut [f32]) {
        self.0.observe_host(state, observation);
    }

    fn step_host(&self, state: &mut [f32], action: &[f32]) -> HostTransition {
        self.0.step_host(state, action)
    }
}

/// A generation twice, the second time normalized by what the first has seen; and the statistics of all observations.
fn generations<E: TensorEnvironment + Clone>(
    environment: &E,
    config: &RolloutConfig,
    noiser: &NoiserConfig,
    policy: &Mlp,
    tensors: bool,
) -> (Vec<RolloutResult>, Vec<f64>) {
    let config = config.clone().with_fused(!tensors);
    let mut rollouts = config.init(environment.clone()).expect("valid");
    let population = strategy(noiser.clone(), policy, None).ask();
    let mut results = Vec::new();
    for _ in 0..2 {
        // A policy that cannot be asked is rolled out fused for certain.
        let result = if tensors {
            rollouts.evaluate(&population, policy)
        } else {
            rollouts.evaluate(&population, &OnlyLayers(policy))
        };
        rollouts.update_normalizer(&result.episodes);
        results.push(result);
    }
    let statistics = rollouts.normalizer().map(|seen| [&[seen.count()], seen.mean(), &seen.variance()].concat());
    (results, statistics.unwrap_or_default())
}

/// Largest difference of returns and statistics, relative to 1 and the value.
fn distance(found: &(Vec<RolloutResult>, Vec<f64>), expected: &(Vec<RolloutResult>, Vec<f64>)) -> f64 {
    let values = |(results, statistics): &(Vec<RolloutResult>, Vec<f64>)| -> Vec<f64> {
        let returns = results.iter().flat_map(|result| result.episodes.returns().to_vec());
        returns.map(f64::from).chain(statistics.iter().copied()).collect()
    };
    let (found, expected) = (values(found), values(expected));
    assert_eq!(found.len(), expected.len());
    found.iter().zip(&expected).map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(0.0, f64::max)
}

fn noisers() -> [NoiserConfig; 4] {
    [
        EggrollConfig::new().with_rank(3).into(),
        BaselineSubtractionConfig::new(4).into(),
        OpenEsConfig::new().into(),
        EggrollConfig::new().with_distribution(NoiseDistribution::Rademacher).into(),
    ]
}

/// The kernel, tensors on its device, and the host agree on short episodes: in every length, and in returns and statistics but for
/// roundings, those of sines and cosines above all.
fn assert_agrees<E: TensorEnvironment + Clone>(
    environment: E,
    config: &RolloutConfig,
    activation: ActivationConfig,
    noisers: &[NoiserConfig],
) {
    let name = environment.name();
    let on_host = mlp(&environment, activation);
    let policy = on_host.clone().to_device(&device());
    for noiser in noisers {
        let kernel = generations(&environment, config, noiser, &policy, false);
        let tensors = generations(&environment, config, noiser, &policy, true);
        let host = generations(&environment, config, noiser, &on_host, false);
        assert_eq!(kernel.0[0].episodes.returns().len(), MEMBERS * config.episodes);
        for (expected, whose) in [(&tensors, "tensors"), (&host, "the host")] {
            let far = distance(&kernel, expected);
            assert!(far < 1e-4, "{name}, {config:?}, {noiser:?}: {far:e} from {whose}");
            for (kernel, expected) in kernel.0.iter().zip(&expected.0) {
                assert_eq!(kernel.episodes.lengths(), expected.episodes.lengths(), "{name}, {config:?}: {whose}");
            }
        }
        let other = generations(&environment, &config.clone().with_seed(1), noiser, &policy, false);
        let far = distance(&other, &kernel);
        assert!(far > 1e-3, "canary: {name}: {far:e}");
    }
}

#[test]
fn agrees_with_tensors_and_the_host() {
    let (config, all) = (RolloutConfig::new(), noisers());
    let seen = config.clone().with_normalize_observations(true);
    let sampled = config.clone().with_head(ActionHead::Sampled).with_action_repeat(3);
    let tanh = seen.clone().with_head(ActionHead::Tanh);
    assert_agrees(Short(CartPole::new(), 30), &config.clone().with_episodes(3), ActivationConfig::Relu, &all);
    assert_agrees(Short(CartPole::new(), 20), &sampled, ActivationConfig::Tanh, &all[..1]);
    assert_agrees(Short(Pendulum::new(), 8), &tanh, ActivationConfig::Relu, &all[..1]);
    assert_agrees(Short(Pendulum::new(), 8), &config.with_episodes(2), ActivationConfig::Tanh, &all[2..3]);
    assert_agrees(Short(Acrobot::new(), 8), &seen, ActivationConfig::Relu, &all[..1]);
    assert_agrees(Short(MountainCar::new(), 12), &seen, ActivationConfig::Tanh, &all[..1]);
    assert_agrees(Short(MountainCarContinuous::new(), 12), &seen, ActivationConfig::Relu, &all[..1]);
}

/// Roundings grow over hundreds of steps, and an action that flips makes another episode: most are as long as on the host all the same.
#[test]
fn long_episodes_agree_but_for_a_few() {
    let on_host = mlp(&CartPole::new(), ActivationConfig::Tanh);
    let policy = on_host.clone().to_device(&device());
    let (config, noiser) = (RolloutConfig::new().with_episodes(10), EggrollConfig::new().into());
    let lengths = |policy: &Mlp, seed| {
        let config = config.clone().with_seed(seed);
        generations(&CartPole::new(), &config, &noiser, policy, false).0[0].episodes.lengths().to_vec()
    };
    let expected = lengths(&on_host, 0);
    let same = |found: &[u32]| found.iter().zip(&expected).filter(|(found, expected)| found == expected).count();
    let (found, canary) = (lengths(&policy, 0), lengths(&policy, 1));
    let all = expected.len();
    assert!(same(&found) * 20 >= all * 19, "{} of {all}", same(&found));
    assert!(same(&canary) * 2 < all, "canary: {} of {all}", same(&canary));
}

/// Launches depend on the layers, and on steps by hundreds.
#[test]
fn launches_do_not_grow_with_steps() {
    // Kernels of a rollout are launched by the thread that asks for it, so kernels of other tests are not counted.
    let launches = |limit, members: usize| {
        let environment = Short(Pendulum::new(), limit);
        let policy = mlp(&environment, ActivationConfig::Relu).to_device(&device());
        let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new());
        let strategy = config.with_population_size(members).try_init(&policy).expect("valid");
        let rollouts = RolloutConfig::new().init(environment).expect("valid");
        let (before, reads) = (counters::thread_kernels(), counters::snapshot());
        let outcome = rollouts.evaluate(&strategy.ask(), &OnlyLayers(&policy));
        assert_eq!(outcome.episodes.env_steps(), (limit * members) as u64);
        // The parameters, and the records.
        assert_eq!((counters::snapshot() - reads).host_reads, 2);
        counters::thread_kernels() - before
    };
    // Noise and deviation of two weights and two biases; the steps.
    assert_eq!(launches(200, 6), 8 + 1);
    assert_eq!(launches(200, 600), 8 + 1, "whatever the population");
    assert_eq!(launches(512, 6), 8 + 2);
    let per_step = launches(512, 6) as f64 / 512.0;
    assert!(per_step <= 2.0, "{per_step} launches an environment step");
}

#[test]
fn models_without_noise_run_in_the_kernel() {
    let environment = Short(CartPole::new(), 40);
    let on_host = mlp(&environment, ActivationConfig::Relu);
    let policy = on_host.clone().to_device(&device());
    let rollouts = RolloutConfig::new().init(environment).expect("valid");
    let expected = rollouts.evaluate_model(&on_host, &EvaluationConfig::new(37), &Device::flex());
    let found = rollouts.evaluate_model(&OnlyLayers(&policy), &EvaluationConfig::new(37), &device());
    assert_eq!(found, expected);
    let canary = rollouts.evaluate_model(&policy, &EvaluationConfig::new(37).with_seed(1), &device());
    assert_ne!(canary, expected);
}

/// The returns of a policy that is not a number are none, as on the host: behind ReLU, the head and the environment's bounds.
#[test]
fn what_is_not_a_number_stays() {
    struct NotANumber;
    impl ModuleMapper for NotANumber {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|value| value * f32::NAN)
        }
    }
    let environment = Short(Pendulum::new(), 3);
    for head in [ActionHead::Greedy, ActionHead::Tanh] {
        let rollouts = RolloutConfig::new().with_head(head).init(environment.clone()).expect("valid");
        let policy = mlp(&environment, ActivationConfig::Relu).map(&mut NotANumber);
        let evaluation = EvaluationConfig::new(5);
        let on_device =
            rollouts.evaluate_model(&OnlyLayers(&policy.clone().to_device(&device())), &evaluation, &device());
        let on_host = rollouts.evaluate_model(&policy, &evaluation, &Device::flex());
        for found in [on_device, on_host] {
            assert!(found.returns().iter().all(|value| value.is_nan()), "{head:?}: {:?}", found.returns());
        }
    }
}

/// What the kernel does not know runs on tensors.
#[test]
fn others_fall_back_to_tensors() {
    let environment = Short(CartPole::new(), 5);
    let gelu = mlp(&environment, ActivationConfig::Gelu).to_device(&device());
    let relu = mlp(&environment, ActivationConfig::Relu).to_device(&device());
    let table = NoiseSourceConfig::Table { len: 4096 };
    for (policy, source) in [(gelu, NoiseSourceConfig::OnTheFly), (relu, table)] {
        let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(MEMBERS);
        let strategy = config.with_noise_source(source).try_init(&policy).expect("valid");
        let rollouts = RolloutConfig::new().init(environment.clone()).expect("valid");
        let before = counters::thread_kernels();
        let outcome = rollouts.evaluate(&strategy.ask(), &policy);
        assert_eq!(outcome.episodes.env_steps(), 5 * MEMBERS as u64);
        assert_eq!(counters::thread_kernels(), before, "no kernel of a rollout");
    }
}
