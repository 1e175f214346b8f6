//! Rollouts in environments of burn-rl compared with a scalar loop over the same episodes.

use burn::module::{Module, Param};
use burn::optim::SgdConfig;
use burn::tensor::activation::tanh;
use burn::tensor::{Device, Tensor, TensorData};
use burn_rl::{Environment, StepResult};
use eggroll_core::{EggrollConfig, counters};
use eggroll_nn::Linear;
use eggroll_rl::EpisodeKey;
use eggroll_rl::*;
use eggroll_train::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const POPULATION: usize = 12;
const EPISODES: usize = 3;
/// The state of `Leaky` at the beginning.
const MEMORY: usize = 4;

/// A ball in a bowl, in the wind. It falls off at ±1, and some games are short.
struct Ball {
    key: EpisodeKey,
    steps: u32,
    position: f64,
    velocity: f64,
}

impl Environment for Ball {
    type State = (f64, f64);
    type Action = f64;

    const MAX_STEPS: usize = 40;

    fn state(&self) -> Self::State {
        (self.position, self.velocity)
    }

    fn step(&mut self, push: f64) -> StepResult<Self::State> {
        self.steps += 1;
        let wind = f64::from(self.key.uniform_in(-0.05, 0.05, self.steps, 0));
        self.velocity = 0.9 * self.velocity - 0.05 * self.position + 0.02 * push + wind;
        self.position += self.velocity;
        StepResult {
            next_state: self.state(),
            reward: 1.0 - self.position * self.position,
            done: self.position.abs() > 1.0,
            truncated: self.is_short() && self.steps >= 25,
        }
    }

    fn reset(&mut self) {
        unreachable!("an episode begins with an environment of its own");
    }
}

impl Ball {
    fn is_short(&self) -> bool {
        self.key.word(0, 9).is_multiple_of(2)
    }
}

#[derive(Clone, Debug)]
struct BallTask;

impl HostTask for BallTask {
    type Environment = Ball;

    fn observation_size(&self) -> usize {
        2
    }

    fn begin(&self, key: EpisodeKey) -> Ball {
        let position = f64::from(key.uniform_in(-0.5, 0.5, 0, 0));
        Ball { key, steps: 0, position, velocity: 0.0 }
    }

    fn observe(&self, (position, velocity): &(f64, f64), observation: &mut [f32]) {
        observation.copy_from_slice(&[*position as f32, *velocity as f32]);
    }

    fn act(&self, outputs: &[f32]) -> f64 {
        f64::from(outputs[0] - outputs[1])
    }
}

#[derive(Module, Debug)]
struct BallPolicy {
    first: Linear,
    second: Linear,
}

impl BallPolicy {
    fn new() -> Self {
        Self { first: layer(2, MEMORY), second: layer(MEMORY, 2) }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(tanh(self.first.forward(x)))
    }
}

/// Without draws of Burn's generator, which tests share.
fn layer(d_input: usize, d_output: usize) -> Linear {
    let sines = |count: usize, by: f32| -> Vec<f32> { (0..count).map(|i| (i as f32 * by).sin()).collect() };
    let device = Device::flex();
    let weight = Tensor::from_data(TensorData::new(sines(d_input * d_output, 0.9), [d_input, d_output]), &device);
    let bias = Tensor::from_floats(&sines(d_output, 0.7)[..], &device);
    Linear { weight: Param::from_tensor(weight), bias: Some(Param::from_tensor(bias)) }
}

/// A policy that remembers: `h' = h/2 + tanh(x·W₁)`, `y = h'·W₂`.
struct Leaky<'a>(&'a BallPolicy);

impl Policy for Leaky<'_> {
    type State = Tensor<2>;

    fn initial_state(&self, rows: usize, device: &Device) -> Tensor<2> {
        Tensor::zeros([rows, MEMORY], device)
    }

    fn forward(&self, observations: Tensor<2>, state: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let state = state * 0.5 + tanh(self.0.first.forward(observations));
        (self.0.second.forward(state.clone()), state)
    }
}

fn config(chunk_size: Option<usize>) -> EvolutionStrategyConfig {
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new());
    EvolutionStrategyConfig { chunk_size, ..config.with_population_size(POPULATION).with_sigma(0.5).with_seed(2) }
}

fn population(net: &BallPolicy, chunk: Option<usize>) -> Population {
    config(chunk).try_init(net).expect("a strategy").ask()
}

fn rollouts(config: HostRolloutConfig) -> HostRollouts<BallTask> {
    config.with_episodes(EPISODES).init(BallTask).expect("rollouts")
}

fn keys(seed: u64) -> Vec<EpisodeKey> {
    (0..EPISODES as u32).map(|episode| EpisodeKey::new(seed, 0, episode)).collect()
}

/// Pair by pair, environment by environment, step by step.
fn scalar_loop<P: Policy>(population: &Population, policy: &P, seed: u64) -> (Fitness, Vec<u32>) {
    let device = Device::flex();
    let mut lengths = Vec::new();
    let fitness = population.evaluate_mut(|members| {
        let rows = members.count() * EPISODES;
        let mut balls: Vec<Ball> = (0..rows).map(|row| BallTask.begin(keys(seed)[row % EPISODES])).collect();
        let (mut totals, mut over) = (vec![0.0; rows], vec![false; rows]);
        let first = lengths.len();
        lengths.resize(first + rows, 0);
        let mut state = policy.initial_state(rows, &device);
        for _ in 0..Ball::MAX_STEPS {
            let seen: Vec<f32> = balls.iter().flat_map(|ball| [ball.position as f32, ball.velocity as f32]).collect();
            let seen = members.assume_repeated(Tensor::from_data(TensorData::new(seen, [rows, 2]), &device));
            let (outputs, next) = policy.forward(seen, state);
            state = next;
            let outputs: Vec<f32> = outputs.into_data().try_to_vec().expect("floats");
            for row in 0..rows {
                if !over[row] {
                    let result = balls[row].step(f64::from(outputs[2 * row] - outputs[2 * row + 1]));
                    totals[row] += result.reward;
                    over[row] = result.done || result.truncated;
                    lengths[first + row] += 1;
                }
            }
        }
        let mean = |totals: &[f64]| totals.iter().map(|total| f64::from(*total as f32)).sum::<f64>() / EPISODES as f64;
        let means: Vec<f32> = totals.chunks(EPISODES).map(|totals| mean(totals) as f32).collect();
        means
    });
    (fitness, lengths)
}

#[test]
fn returns_are_those_of_a_scalar_loop() {
    let net = BallPolicy::new();
    let short = |seed: &u64| keys(*seed).iter().filter(|key| BallTask.begin(**key).is_short()).count();
    let seed = (0..100).find(|seed| short(seed) == 1).expect("3 of 8");
    let rollouts = rollouts(HostRolloutConfig::new().with_seed(seed));
    let compare = |outcome: RolloutResult, (fitness, lengths): (Fitness, Vec<u32>)| {
        outcome.fitness == fitness && outcome.episodes.lengths() == lengths
    };
    let plain = feed_forward(|x| net.forward(x));
    let outcome = rollouts.evaluate(&population(&net, None), &plain);
    assert!(compare(outcome.clone(), scalar_loop(&population(&net, Some(2)), &plain, seed)));
    // Episodes of all kinds: fallen off, cut off by the game, cut off by the limit.
    let lengths = outcome.episodes.lengths();
    assert!(lengths.iter().any(|length| *length < 25), "{lengths:?}");
    assert!(lengths.contains(&25) && lengths.contains(&40), "{lengths:?}");
    assert_eq!(outcome.episodes.env_steps(), lengths.iter().map(|length| u64::from(*length)).sum::<u64>());
    // With memory.
    let leaky = rollouts.evaluate(&population(&net, None), &Leaky(&net));
    assert!(compare(leaky.clone(), scalar_loop(&population(&net, Some(2)), &Leaky(&net), seed)));
    // Canaries: other episodes, and a policy that remembers, give other returns.
    assert!(!compare(outcome.clone(), scalar_loop(&population(&net, Some(2)), &plain, seed + 1)));
    assert_ne!(leaky.fitness, outcome.fitness);
}

#[test]
fn chunks_and_threads_change_no_bit() {
    let net = BallPolicy::new();
    let device = Device::flex();
    let run = |chunk: Option<usize>, threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let config = HostRolloutConfig::new().with_normalize_observations(true).with_seed(seed);
            let mut rollouts = rollouts(config);
            let first = rollouts.evaluate(&population(&net, chunk), &feed_forward(|x| net.forward(x)));
            rollouts.update_normalizer(&first.episodes);
            // The second sees normalized observations; members in chunks, the model on all of the pool's threads.
            let second = rollouts.evaluate(&population(&net, chunk), &feed_forward(|x| net.forward(x)));
            assert_ne!(first.fitness, second.fitness);
            let model = rollouts.evaluate_model(
                &feed_forward(|x| net.forward(x)),
                &EvaluationConfig::new(37).with_seed(seed),
                &device,
            );
            (second, model, rollouts.normalizer().expect("normalized").clone())
        })
    };
    let expected = run(None, 1, 0);
    for (chunk, threads) in [(None, 2), (None, 3), (Some(2), 1), (Some(2), 3), (Some(8), 2)] {
        assert!(run(chunk, threads, 0) == expected, "chunks of {chunk:?} on {threads} threads");
    }
    // Canary.
    assert!(run(None, 1, 1) != expected);
}

#[test]
fn rollouts_end_with_their_last_episode() {
    let net = BallPolicy::new();
    let forwards = AtomicU32::new(0);
    let policy = feed_forward(|x| {
        forwards.fetch_add(1, Relaxed);
        net.forward(x)
    });
    let config = HostRolloutConfig::new();
    let before = counters::snapshot();
    let mut longest = 0;
    for seed in 0..20 {
        let episodes = rollouts(config.clone()).evaluate_model(
            &policy,
            &EvaluationConfig::new(1).with_seed(seed),
            &Device::flex(),
        );
        longest += episodes.lengths()[0];
    }
    assert!(longest < 20 * Ball::MAX_STEPS as u32, "{longest}");
    // One forward and one read for each step, and none beyond the last.
    assert_eq!(forwards.load(Relaxed), longest);
    assert_eq!((counters::snapshot() - before).host_reads, u64::from(longest));
}

#[test]
fn episodes_are_cut_off() {
    let net = BallPolicy::new();
    let lengths = |steps: Option<usize>| {
        let rollouts = rollouts(HostRolloutConfig::new().with_max_steps(steps));
        let episodes = rollouts.evaluate_model(
            &feed_forward(|x| net.forward(x)),
            &EvaluationConfig::new(50).with_seed(1),
            &Device::flex(),
        );
        episodes.lengths().to_vec()
    };
    let (free, cut) = (lengths(None), lengths(Some(10)));
    assert_eq!(free.iter().max(), Some(&40));
    assert_eq!(lengths(Some(1000)), free);
    let expected: Vec<u32> = free.iter().map(|length| *length.min(&10)).collect();
    assert_eq!(cut, expected);
    assert_ne!(cut, free);
}

#[test]
fn observations_have_mean_0_and_variance_1() {
    let net = BallPolicy::new();
    let device = Device::flex();
    let seen = Mutex::new(Vec::new());
    let policy = feed_forward(|x: Tensor<2>| {
        let rows = x.clone().into_data().try_to_vec::<f32>().expect("floats");
        seen.lock().expect("unpoisoned").extend(rows);
        net.forward(x)
    });
    let positions =
        || -> Vec<f32> { std::mem::take(&mut *seen.lock().expect("unpoisoned")).into_iter().step_by(2).collect() };
    let moments = |values: &[f32]| {
        let mean = values.iter().map(|x| f64::from(*x)).sum::<f64>() / values.len() as f64;
        (mean, values.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / values.len() as f64)
    };
    // A few steps, in which nobody falls off: every row that is seen counts.
    let config = HostRolloutConfig::new().with_normalize_observations(true).with_max_steps(Some(2));
    let mut rollouts = rollouts(config);
    let episodes = rollouts.evaluate_model(&policy, &EvaluationConfig::new(500).with_seed(3), &device);
    let raw = positions();
    let (mean, variance) = moments(&raw);
    assert!((variance - 1.0 / 12.0).abs() < 0.02, "{variance}");
    rollouts.update_normalizer(&episodes);
    let normalizer = rollouts.normalizer().expect("normalized");
    assert_eq!(normalizer.count(), 1000.0);
    assert!((normalizer.mean()[0] - mean).abs() < 1e-5 && (normalizer.variance()[0] - variance).abs() < 1e-5);
    // The same first states again, normalized; kept statistics do the same.
    let kept = normalizer.clone();
    rollouts.evaluate_model(&policy, &EvaluationConfig::new(500).with_seed(3), &device);
    let normalized = positions();
    for (raw, normalized) in raw.iter().zip(&normalized).take(500) {
        let expected = (f64::from(*raw) - mean) / variance.sqrt();
        assert!((f64::from(*normalized) - expected).abs() < 1e-4, "{normalized} {expected}");
    }
    let config = HostRolloutConfig::new().with_normalize_observations(true).with_max_steps(Some(2));
    let again = config.init(BallTask).expect("rollouts").with_normalizer(kept.clone()).expect("of its size");
    again.evaluate_model(&policy, &EvaluationConfig::new(500).with_seed(3), &device);
    assert_eq!(positions(), normalized);
    let refused = HostRolloutConfig::new().init(BallTask).expect("rollouts").with_normalizer(kept);
    assert_eq!(refused.expect_err("not normalized"), RolloutError::NotNormalized);
}

#[test]
fn rollouts_of_nothing_are_refused() {
    let error = |config: HostRolloutConfig| config.init(BallTask).expect_err("nothing");
    assert_eq!(error(HostRolloutConfig::new().with_episodes(0)), RolloutError::Zero { setting: "episodes" });
    assert_eq!(error(HostRolloutConfig::new().with_max_steps(Some(0))), RolloutError::Zero { setting: "max_steps" });
    let many = RolloutError::TooMany { setting: "episodes", found: usize::MAX, most: 1 << 20 };
    assert_eq!(error(HostRolloutConfig::new().with_episodes(usize::MAX)), many);
}

#[test]
#[should_panic(expected = "the policy returned 1 rows for 3 environments")]
fn policies_answer_all_rows() {
    let net = BallPolicy::new();
    let first = feed_forward(|x| net.forward(x).slice_dim(0, 0..1));
    rollouts(HostRolloutConfig::new()).evaluate_model(&first, &EvaluationConfig::new(3), &Device::flex());
}
