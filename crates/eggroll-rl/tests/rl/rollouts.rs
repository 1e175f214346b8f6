//! Rollouts: fused against tensors, chunks, heads, normalization, reads to the host, policies that remember.

use burn::module::Module;
use burn::nn::activation::ActivationConfig;
use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use eggroll_core::{BaselineSubtractionConfig, EggrollConfig, NoiserConfig, OpenEsConfig, counters};
use eggroll_nn::{Linear, LinearConfig, MinimalGru, MinimalGruConfig, Mlp, MlpConfig};
use eggroll_rl::{
    Acrobot, ActionSpace, Bandit, CartPole, EpisodeKey, HostTransition, Memory, MountainCar, Pendulum,
    TensorEnvironment, Transition,
};
use eggroll_rl::{
    ActionHead, EvaluationConfig, Policy, PolicyLayer, RolloutConfig, RolloutError, RolloutResult, Rollouts,
    feed_forward,
};
use eggroll_train::{Error, EvolutionStrategy, EvolutionStrategyConfig, NoiseScale};

pub const MEMBERS: usize = 20;

pub fn mlp(environment: &impl TensorEnvironment, activation: ActivationConfig) -> Mlp {
    let sizes = vec![environment.observation_size(), 19, environment.actions().outputs()];
    fixed(MlpConfig::new(sizes).with_activation(activation).init(&Device::flex()))
}

/// The model with weights that depend on nothing but their places.
pub fn fixed<M: Module>(model: M) -> M {
    struct FixedWeights;
    impl burn::module::ModuleMapper for FixedWeights {
        fn map_float<const D: usize>(
            &mut self,
            param: burn::module::Param<Tensor<D>>,
        ) -> burn::module::Param<Tensor<D>> {
            param.map(|value| {
                let (dims, device) = (value.dims(), value.device());
                let count = dims.iter().product::<usize>() as i64;
                Tensor::arange(0..count, &device).float().mul_scalar(1.7).sin().mul_scalar(0.6).reshape(dims)
            })
        }
    }
    model.map(&mut FixedWeights)
}

pub fn strategy(noiser: impl Into<NoiserConfig>, model: &impl Module, chunk: Option<usize>) -> EvolutionStrategy {
    let config = EvolutionStrategyConfig::new(noiser.into(), SgdConfig::new());
    let config = config.with_population_size(MEMBERS).with_sigma(0.4).with_seed(5);
    let config = match chunk {
        Some(chunk) => config.with_chunk_size(chunk),
        None => config,
    };
    config.try_init(model).expect("valid")
}

pub fn outcome<E: TensorEnvironment>(
    rollouts: &Rollouts<E>,
    strategy: &mut EvolutionStrategy,
    policy: &impl Policy,
) -> RolloutResult {
    rollouts.evaluate(&strategy.ask(), policy)
}

/// A policy that knows its layers and cannot be asked: what is rolled out of it is fused.
pub struct OnlyLayers<'a>(pub &'a Mlp);

impl Policy for OnlyLayers<'_> {
    type State = ();

    fn initial_state(&self, _rows: usize, _device: &Device) {}

    fn forward(&self, _observations: Tensor<2>, _state: ()) -> (Tensor<2>, ()) {
        panic!("asked on tensors")
    }

    fn layers(&self) -> Option<Vec<PolicyLayer<'_>>> {
        self.0.layers()
    }
}

/// Fused and tensor rollouts give the same bits, and so do all chunks; not those of other episodes.
fn assert_fused<E: TensorEnvironment + Clone>(environment: E, config: &RolloutConfig, activation: ActivationConfig) {
    let name = environment.name();
    let policy = mlp(&environment, activation);
    for noiser in [
        EggrollConfig::new().with_rank(3).into(),
        // A layer of low rank, and a dense one.
        EggrollConfig::new().with_thin_dense(true).into(),
        BaselineSubtractionConfig::new(4).into(),
        NoiserConfig::from(OpenEsConfig::new()),
    ] {
        let run = |config: &RolloutConfig, chunk| {
            let rollouts = config.init(environment.clone()).expect("valid");
            outcome(&rollouts, &mut strategy(noiser.clone(), &policy, chunk), &policy)
        };
        let fused = run(config, None);
        let rollouts = config.init(environment.clone()).expect("valid");
        let layers = outcome(&rollouts, &mut strategy(noiser.clone(), &policy, None), &OnlyLayers(&policy));
        assert_eq!(fused, layers, "{name}: fused for certain");
        assert_eq!(fused.episodes.returns().len(), MEMBERS * config.episodes, "{name}");
        for chunk in [None, Some(6)] {
            let tensors = run(&config.clone().with_fused(false), chunk);
            assert_eq!(fused, tensors, "{name}, {config:?}, chunk {chunk:?}");
        }
        let other = run(&config.clone().with_seed(1), None);
        assert_ne!(fused, other, "canary: {name}");
    }
}

/// A point in the plane, moved by an action of two numbers, until it is far from 0.
#[derive(Clone)]
struct PointEnvironment;

impl TensorEnvironment for PointEnvironment {
    fn name(&self) -> &'static str {
        "Point"
    }

    fn state_size(&self) -> usize {
        2
    }

    fn observation_size(&self) -> usize {
        2
    }

    fn actions(&self) -> ActionSpace {
        ActionSpace::Continuous { size: 2, low: -1.0, high: 2.0 }
    }

    fn time_limit(&self) -> usize {
        9
    }

    fn observe(&self, state: Tensor<2>) -> Tensor<2> {
        state
    }

    fn step(&self, state: Tensor<2>, actions: Tensor<2>) -> Transition {
        let state = state + actions * 0.5; // [environments, 2]
        let [x, y] = [0, 1].map(|at| state.clone().narrow(1, at, 1).squeeze_dim::<1>(1));
        Transition { state, reward: x.clone() - y * 2.0, terminated: x.greater_elem(2.0) }
    }

    fn reset_host(&self, key: EpisodeKey, state: &mut [f32]) {
        key.fill_uniform(-1.0, 1.0, state);
    }

    fn has_host_form(&self) -> bool {
        true
    }

    fn observe_host(&self, state: &[f32], observation: &mut [f32]) {
        observation.copy_from_slice(state);
    }

    fn step_host(&self, state: &mut [f32], action: &[f32]) -> HostTransition {
        state.iter_mut().zip(action).for_each(|(x, action)| *x += action * 0.5);
        HostTransition { reward: state[0] - state[1] * 2.0, terminated: state[0] > 2.0 }
    }
}

#[test]
fn fused_rollouts_give_the_bits_of_tensors() {
    let config = RolloutConfig::new();
    assert_fused(CartPole::new(), &config.clone().with_episodes(3), ActivationConfig::Relu);
    assert_fused(CartPole::new(), &config.clone().with_head(ActionHead::Sampled), ActivationConfig::Tanh);
    assert_fused(Pendulum::new(), &config.clone().with_head(ActionHead::Tanh), ActivationConfig::Relu);
    assert_fused(Pendulum::new(), &config.clone().with_action_repeat(3), ActivationConfig::Relu);
    assert_fused(PointEnvironment, &config.clone().with_head(ActionHead::Tanh), ActivationConfig::Relu);
    let normalized = config.clone().with_normalize_observations(true);
    assert_fused(Acrobot::new(), &normalized.clone().with_head(ActionHead::Sampled), ActivationConfig::Relu);
    assert_fused(CartPole::new(), &normalized.with_action_repeat(2), ActivationConfig::Relu);
}

#[test]
fn noise_relative_to_spread_is_the_same_fused() {
    let environment = CartPole::new();
    let policy = mlp(&environment, ActivationConfig::Tanh);
    for noiser in [NoiserConfig::from(EggrollConfig::new().with_rank(3)), OpenEsConfig::new().into()] {
        let run = |scale: NoiseScale, fused: bool| {
            let config = strategy(noiser.clone(), &policy, None).config().clone().with_noise_scale(scale);
            let config = config.with_scales([("*bias", 0.25)]);
            let rollouts = RolloutConfig::new().with_fused(fused).init(environment).expect("valid");
            outcome(&rollouts, &mut config.init(&policy), &policy)
        };
        assert_eq!(run(NoiseScale::RelativeToSpread, true), run(NoiseScale::RelativeToSpread, false));
        assert_ne!(run(NoiseScale::RelativeToSpread, true), run(NoiseScale::Absolute, true), "canary");
    }
}

#[test]
fn running_statistics_are_the_same_fused_and_give_the_next_generation() {
    let policy = mlp(&CartPole::new(), ActivationConfig::Relu);
    let run = |fused: bool| {
        let config = RolloutConfig::new().with_normalize_observations(true).with_fused(fused);
        let mut rollouts = config.init(CartPole::new()).expect("valid");
        let mut strategy = strategy(EggrollConfig::new(), &policy, None);
        let first = outcome(&rollouts, &mut strategy, &policy);
        rollouts.update_normalizer(&first.episodes);
        let second = outcome(&rollouts, &mut strategy, &policy);
        assert_ne!(first, second, "what is seen has changed");
        (second, rollouts.normalizer().cloned())
    };
    let (fused, statistics) = run(true);
    assert_eq!(run(false), (fused, statistics.clone()));
    let statistics = statistics.expect("normalized");
    assert!(statistics.count() > MEMBERS as f64);
    let json = serde_json::to_string(&statistics).expect("serializes");
    let again = RolloutConfig::new().with_normalize_observations(true).init(CartPole::new()).expect("valid");
    let again = again.with_normalizer(serde_json::from_str(&json).expect("parses")).expect("fits");
    assert_eq!(again.normalizer(), Some(&statistics));
    let refused = RolloutConfig::new().init(Pendulum::new()).expect("valid").with_normalizer(statistics);
    assert_eq!(refused.expect_err("of another size"), RolloutError::NormalizerSize { found: 4, expected: 3 });
}

#[test]
fn statistics_are_those_of_all_observations() {
    // What the policy sees without statistics is what is there.
    let policy = mlp(&Pendulum::new(), ActivationConfig::Relu);
    let config = RolloutConfig::new().with_normalize_observations(true).with_fused(false);
    let mut rollouts = config.init(Pendulum::new()).expect("valid");
    let seen = std::sync::Mutex::new(Vec::new());
    let watching = feed_forward(|x: Tensor<2>| {
        seen.lock().expect("no panic").push(x.clone());
        policy.forward(x)
    });
    for _ in 0..3 {
        let episodes = rollouts.evaluate_model(&watching, &EvaluationConfig::new(7).with_seed(3), &Device::flex());
        rollouts.update_normalizer(&episodes);
    }
    let seen = seen.into_inner().expect("no panic");
    // The first run's observations are raw.
    let first: Vec<f32> = Tensor::cat(seen[..200].to_vec(), 0).into_data().try_to_vec().expect("f32");
    let values: Vec<f64> = first.chunks_exact(3).map(|row| f64::from(row[2])).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
    let after_one = {
        let mut rollouts = config_of(true).init(Pendulum::new()).expect("valid");
        let episodes = rollouts.evaluate_model(
            &feed_forward(|x| policy.forward(x)),
            &EvaluationConfig::new(7).with_seed(3),
            &Device::flex(),
        );
        rollouts.update_normalizer(&episodes);
        rollouts.normalizer().cloned().expect("normalized")
    };
    assert!((after_one.mean()[2] - mean).abs() < 1e-4, "{} {mean}", after_one.mean()[2]);
    assert!((after_one.variance()[2] / variance - 1.0).abs() < 1e-4);
    // The second run's are normalized by the first's.
    let second: Vec<f32> = seen[200].clone().into_data().try_to_vec().expect("f32");
    let expected = (f64::from(first[2]) - mean) / variance.sqrt();
    assert!((f64::from(second[2]) - expected).abs() < 1e-3, "{} {expected}", second[2]);
}

fn config_of(normalized: bool) -> RolloutConfig {
    RolloutConfig::new().with_normalize_observations(normalized)
}

#[test]
fn the_host_reads_once_and_once_for_each_look() {
    let policy = mlp(&Pendulum::new(), ActivationConfig::Relu);
    let reads = |check_every| {
        let config = RolloutConfig::new().with_check_every(check_every).with_fused(false);
        let rollouts = config.init(Pendulum::new()).expect("valid");
        let before = counters::snapshot();
        rollouts.evaluate_model(&policy, &EvaluationConfig::new(5), &Device::flex());
        (counters::snapshot() - before).host_reads
    };
    // 200 steps: a look before steps 50, 100 and 150.
    assert_eq!(reads(50), 1 + 3);
    assert_eq!(reads(1000), 1);
    let rollouts = RolloutConfig::new().init(Pendulum::new()).expect("valid");
    // Fused, which asks no tensor: another policy panics.
    outcome(&rollouts, &mut strategy(EggrollConfig::new(), &policy, None), &OnlyLayers(&policy));
}

#[test]
fn episodes_end_early_and_lengths_are_counted() {
    let policy = mlp(&CartPole::new(), ActivationConfig::Relu);
    let rollouts = RolloutConfig::new().with_episodes(2).init(CartPole::new()).expect("valid");
    let episodes = outcome(&rollouts, &mut strategy(EggrollConfig::new(), &policy, None), &policy).episodes;
    let lengths: Vec<f32> = episodes.lengths().iter().map(|length| *length as f32).collect();
    assert_eq!(lengths, episodes.returns(), "every step of CartPole is worth 1");
    assert_eq!(episodes.env_steps(), lengths.iter().sum::<f32>() as u64);
    assert!(lengths.iter().any(|length| *length < 500.0));
}

/// A custom policy: remembers what it has seen.
#[derive(Module, Debug)]
struct Remembering {
    recurrence: MinimalGru,
    output: Linear,
}

impl Policy for Remembering {
    type State = Tensor<2>;

    fn initial_state(&self, rows: usize, device: &Device) -> Tensor<2> {
        Tensor::zeros([rows, 8], device)
    }

    fn forward(&self, observations: Tensor<2>, state: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let (_, state) = self.recurrence.forward(observations.unsqueeze_dim::<3>(1), Some(state), None); // [rows, 8]
        (self.output.forward(state.clone()), state)
    }
}

fn remembering(inputs: usize, outputs: usize) -> Remembering {
    let device = Device::flex();
    fixed(Remembering {
        recurrence: MinimalGruConfig::new(inputs, 8).init(&device),
        output: LinearConfig::new(8, outputs).init(&device),
    })
}

#[test]
fn policies_that_remember_are_the_same_in_all_chunks() {
    let memory = Memory::new(4, 3);
    let policy = remembering(memory.observation_size(), memory.actions().outputs());
    let run = |chunk| {
        let rollouts = RolloutConfig::new().with_episodes(4).init(memory).expect("valid");
        outcome(&rollouts, &mut strategy(EggrollConfig::new().with_rank(2), &policy, chunk), &policy)
    };
    let all = run(None);
    assert_eq!(all, run(Some(2)));
    let bandit = Bandit::new(3, 10);
    let policy = remembering(bandit.observation_size(), bandit.actions().outputs());
    let rollouts = RolloutConfig::new().with_episodes(4).init(bandit).expect("valid");
    let members = outcome(&rollouts, &mut strategy(OpenEsConfig::new(), &policy, None), &policy);
    assert_ne!(members.fitness.values()[0], members.fitness.values()[1]);
}

#[test]
fn dense_noise_and_other_models_run_on_tensors() {
    let policy = mlp(&MountainCar::new(), ActivationConfig::Gelu);
    let rollouts = RolloutConfig::new().init(MountainCar::new()).expect("valid");
    for noiser in [NoiserConfig::from(OpenEsConfig::new()), EggrollConfig::new().into()] {
        let mut strategy = strategy(noiser, &policy, None);
        let population = strategy.ask();
        let outcome = rollouts.evaluate(&population, &policy);
        assert_eq!(outcome.episodes.env_steps(), 200 * MEMBERS as u64);
        strategy.tell(&mut policy.clone(), population, outcome.fitness).expect("all parameters were perturbed");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let error = |config: RolloutConfig| config.init(CartPole::new()).expect_err("does not fit");
    let zero = |setting| RolloutError::Zero { setting };
    assert_eq!(error(RolloutConfig::new().with_episodes(0)), zero("episodes"));
    assert_eq!(error(RolloutConfig::new().with_action_repeat(0)), zero("action_repeat"));
    assert_eq!(error(RolloutConfig::new().with_check_every(0)), zero("check_every"));
    let head = RolloutError::Head { head: ActionHead::Tanh, actions: CartPole::new().actions() };
    assert_eq!(error(RolloutConfig::new().with_head(ActionHead::Tanh)), head);
    let sampled = RolloutConfig::new().with_head(ActionHead::Sampled).init(Pendulum::new());
    let head = RolloutError::Head { head: ActionHead::Sampled, actions: Pendulum::new().actions() };
    assert_eq!(sampled.expect_err("of continuous actions"), head);
    // As errors of training they say the same.
    assert_eq!(Error::from(zero("episodes")).to_string(), "rollouts: episodes must be at least 1, not 0");
    assert!(head.to_string().contains("Sampled") && head.to_string().contains("Continuous"), "{head}");
}

#[test]
#[should_panic(expected = "rollout: a policy from [3, 1] where CartPole-v1 needs [4, 2]")]
fn a_policy_of_another_environment_is_refused() {
    let policy = mlp(&Pendulum::new(), ActivationConfig::Relu);
    let rollouts = RolloutConfig::new().init(CartPole::new()).expect("valid");
    outcome(&rollouts, &mut strategy(EggrollConfig::new(), &policy, None), &policy);
}

#[test]
fn keys_are_of_the_generation() {
    let policy = mlp(&CartPole::new(), ActivationConfig::Relu);
    let rollouts = RolloutConfig::new().with_seed(9).init(CartPole::new()).expect("valid");
    let state = |generation, episode| {
        let mut state = [0.0; 4];
        CartPole::new().reset_host(EpisodeKey::new(9, generation, episode), &mut state);
        state
    };
    assert_ne!(state(0, 0), state(1, 0));
    // The same model has other episodes in the next generation.
    let model = feed_forward(|x| policy.forward(x));
    let [first, second] =
        [1, 2].map(|seed| rollouts.evaluate_model(&model, &EvaluationConfig::new(5).with_seed(seed), &Device::flex()));
    assert_ne!(first, second);
    assert_eq!(first, rollouts.evaluate_model(&model, &EvaluationConfig::new(5).with_seed(1), &Device::flex()));
}

/// A device keeps the rollouts on it: the same episodes, and returns that differ by roundings only.
#[cfg(feature = "wgpu")]
#[test]
fn a_device_runs_the_same_episodes() {
    let on = |device: Device, seed: u64| {
        let policy = mlp(&Pendulum::new(), ActivationConfig::Relu).to_device(&device);
        let config = RolloutConfig::new().with_head(ActionHead::Tanh).with_fused(false).with_seed(seed);
        let rollouts = config.with_check_every(1000).init(Pendulum::new()).expect("valid");
        let mut strategy = strategy(EggrollConfig::new().with_rank(2), &policy, None);
        let before = counters::snapshot();
        let outcome = outcome(&rollouts, &mut strategy, &policy);
        (outcome, (counters::snapshot() - before).host_reads)
    };
    let (expected, _) = on(Device::flex(), 0);
    let (found, reads) = on(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice), 0);
    assert_eq!(reads, 1, "one read for 200 steps");
    let (canary, _) = on(Device::flex(), 1);
    let distance = |other: &RolloutResult| {
        let pairs = found.episodes.returns().iter().zip(other.episodes.returns());
        pairs.map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(0.0, f32::max)
    };
    // Roundings grow over 200 steps of a pendulum that may stand on its head; other episodes are five times as far away.
    assert!(distance(&expected) < 0.02, "{}", distance(&expected));
    assert!(distance(&canary) > 0.1, "canary: {}", distance(&canary));
}

/// Statistics that are forgotten would leave observations as they are, in silence.
#[test]
#[should_panic(expected = "their statistics were never updated since generation 0: call rollouts.update_normalizer")]
fn statistics_that_are_never_updated_are_noticed() {
    let mut policy = mlp(&CartPole::new(), ActivationConfig::Relu);
    let rollouts = config_of(true).init(CartPole::new()).expect("valid");
    let mut strategy = strategy(EggrollConfig::new(), &policy, None);
    for _ in 0..2 {
        let population = strategy.ask();
        // The same generation may be evaluated twice.
        assert_eq!(rollouts.evaluate(&population, &policy).fitness, rollouts.evaluate(&population, &policy).fitness);
        let outcome = rollouts.evaluate(&population, &policy);
        strategy.tell(&mut policy, population, outcome.fitness).expect("a generation");
    }
}

/// CartPole, written on tensors only.
#[derive(Clone)]
struct OnTensors(CartPole);

impl TensorEnvironment for OnTensors {
    fn name(&self) -> &'static str {
        "CartPole on tensors"
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
        self.0.time_limit()
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
}

#[test]
fn an_environment_is_written_once() {
    let policy = mlp(&CartPole::new(), ActivationConfig::Relu);
    let population = || strategy(EggrollConfig::new(), &policy, None).ask();
    let expected = RolloutConfig::new().init(CartPole::new()).expect("valid").evaluate(&population(), &policy);
    let found = RolloutConfig::new().init(OnTensors(CartPole::new())).expect("valid").evaluate(&population(), &policy);
    assert_eq!(found.fitness, expected.fitness);
    // The provided forms on one row agree with CartPole's.
    let (own, provided) = (CartPole::new(), OnTensors(CartPole::new()));
    let (mut a, mut b) = ([0.01, -0.2, 0.03, 0.4], [0.01, -0.2, 0.03, 0.4]);
    for action in [0.0, 1.0, 1.0] {
        assert_eq!(own.step_host(&mut a, &[action]), provided.step_host(&mut b, &[action]));
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6), "{a:?} {b:?}");
    }
    let mut seen = [0.0; 4];
    provided.observe_host(&b, &mut seen);
    assert_eq!(seen, b);
}
