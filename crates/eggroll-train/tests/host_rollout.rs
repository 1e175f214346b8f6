//! Rollouts in environments of burn-rl beside a scalar loop over the same episodes.

#![cfg(feature = "rl")]

use burn::module::{Module, Param};
use burn::optim::SgdConfig;
use burn::tensor::activation::tanh;
use burn::tensor::{Device, Tensor, TensorData};
use burn_rl::{Environment, StepResult};
use eggroll_core::{EggrollConfig, counters};
use eggroll_envs::EpisodeKey;
use eggroll_nn::Linear;
use eggroll_train::host_rollout::*;
use eggroll_train::*;
use std::cell::{Cell, RefCell};

const POPULATION: usize = 12;
const EPISODES: usize = 3;
/// The state of `Leaky` at the beginning.
const MEMORY: usize = 4;

/// A ball on a table in the wind. It falls off at ±1, and some games are short.
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
        let wind = f64::from(self.key.uniform_in(-0.1, 0.1, self.steps, 0));
        self.velocity = 0.95 * self.velocity + 0.02 * push + wind;
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
        self.key.word(0, 9) % 2 == 0
    }
}

#[derive(Clone, Debug)]
struct Table;

impl HostTask for Table {
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
struct Net {
    first: Linear,
    second: Linear,
}

impl Net {
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
struct Leaky<'a>(&'a Net);

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

fn config(chunk: Option<usize>) -> EvolutionStrategyConfig {
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new());
    EvolutionStrategyConfig { chunk, ..config.with_population(POPULATION).with_sigma(0.5).with_seed(2) }
}

fn population(net: &Net, chunk: Option<usize>) -> Population {
    config(chunk).try_init(net).expect("a strategy").ask()
}

fn rollouts(config: HostRolloutConfig) -> HostRollouts<Table> {
    config.with_episodes(EPISODES).try_init(Table, &Device::flex()).expect("rollouts")
}

fn keys(seed: u64) -> Vec<EpisodeKey> {
    (0..EPISODES as u32).map(|episode| EpisodeKey::new(seed, 0, episode)).collect()
}

/// Pair by pair, environment by environment, step by step.
fn scalar_loop<P: Policy>(population: &Population, policy: &P, seed: u64) -> (Fitness, Vec<u32>) {
    let device = Device::flex();
    let mut lengths = Vec::new();
    let fitness = population.evaluate(|members| {
        let rows = members.count() * EPISODES;
        let mut balls: Vec<Ball> = (0..rows).map(|row| Table.begin(keys(seed)[row % EPISODES])).collect();
        let (mut totals, mut over) = (vec![0.0; rows], vec![false; rows]);
        let first = lengths.len();
        lengths.resize(first + rows, 0);
        let mut state = policy.initial_state(rows, &device);
        for _ in 0..Ball::MAX_STEPS {
            let seen: Vec<f32> =
                balls.iter().flat_map(|ball| [ball.position as f32, ball.velocity as f32]).collect();
            let seen = Tensor::from_data(TensorData::new(seen, [rows, 2]), &device);
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
        Tensor::from_floats(&means[..], &device)
    });
    (fitness, lengths)
}

#[test]
fn returns_are_those_of_a_scalar_loop() {
    let net = Net::new();
    let rollouts = rollouts(HostRolloutConfig::new().with_seed(7));
    let compare = |outcome: RolloutOutcome, (fitness, lengths): (Fitness, Vec<u32>)| {
        outcome.fitness == fitness && outcome.episodes.lengths() == lengths
    };
    let plain = feed_forward(|x| net.forward(x));
    let outcome = rollouts.evaluate(&population(&net, None), &plain);
    assert!(compare(outcome.clone(), scalar_loop(&population(&net, Some(2)), &plain, 7)));
    // Episodes of all kinds: fallen off, cut off by the game, cut off by the limit.
    let episodes = &outcome.episodes;
    let ends: Vec<(u32, bool)> = episodes.lengths().iter().copied().zip(episodes.terminated().iter().copied()).collect();
    assert!(ends.iter().any(|(_, terminated)| *terminated), "{ends:?}");
    assert!(ends.contains(&(25, false)) && ends.contains(&(40, false)), "{ends:?}");
    assert_eq!(episodes.env_steps(), episodes.lengths().iter().map(|length| u64::from(*length)).sum::<u64>());
    // With memory.
    let leaky = rollouts.evaluate(&population(&net, None), &Leaky(&net));
    assert!(compare(leaky.clone(), scalar_loop(&population(&net, Some(2)), &Leaky(&net), 7)));
    // Canaries: other episodes, and a policy that remembers, give other returns.
    assert!(!compare(outcome.clone(), scalar_loop(&population(&net, Some(2)), &plain, 8)));
    assert_ne!(leaky.fitness, outcome.fitness);
}

#[test]
fn chunks_and_threads_change_no_bit() {
    let net = Net::new();
    let run = |chunk: Option<usize>, threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let config = HostRolloutConfig::new().with_normalise_observations(true).with_seed(seed);
            let mut rollouts = rollouts(config);
            let first = rollouts.evaluate(&population(&net, chunk), &feed_forward(|x| net.forward(x)));
            rollouts.observe(&first.episodes);
            // The second sees normalised observations.
            let second = rollouts.evaluate(&population(&net, chunk), &feed_forward(|x| net.forward(x)));
            assert_ne!(first.fitness, second.fitness);
            (second.fitness, second.episodes, rollouts.observed().expect("normalised").clone())
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
fn a_projection_counts_no_episode_twice() {
    let net = Net::new();
    let config = config(Some(4)).with_input_projection(InputProjection::Unperturbed);
    let population = config.try_init(&net).expect("a strategy").ask();
    let outcome = rollouts(HostRolloutConfig::new()).evaluate(&population, &feed_forward(|x| net.forward(x)));
    assert_eq!(outcome.episodes.returns().len(), POPULATION * EPISODES);
    let returns = outcome.episodes.returns().chunks(EPISODES);
    let means = returns.map(|returns| (returns.iter().map(|r| f64::from(*r)).sum::<f64>() / EPISODES as f64) as f32);
    assert_eq!(outcome.fitness.values(), means.collect::<Vec<_>>());
}

#[test]
fn rollouts_end_with_their_last_episode() {
    let net = Net::new();
    let forwards = Cell::new(0);
    let policy = feed_forward(|x| {
        forwards.set(forwards.get() + 1);
        net.forward(x)
    });
    // A seed under which all games are short.
    let seed = (0..1000).find(|seed| keys(*seed).iter().all(|key| Table.begin(*key).is_short())).expect("one of 8");
    let before = counters::snapshot();
    let episodes = rollouts(HostRolloutConfig::new().with_seed(seed)).evaluate(&population(&net, Some(POPULATION)), &policy).episodes;
    let longest = *episodes.lengths().iter().max().expect("episodes");
    assert!(longest <= 25, "{longest}");
    assert_eq!(forwards.get(), longest);
    // One read for each step, and one of the fitness.
    assert_eq!((counters::snapshot() - before).host_reads, u64::from(longest) + 1);
}

#[test]
fn episodes_are_cut_off() {
    let net = Net::new();
    let mut rollouts = rollouts(HostRolloutConfig::new().with_max_steps(Some(3)));
    let play = |rollouts: &HostRollouts<Table>| rollouts.evaluate_model(&feed_forward(|x| net.forward(x)), 50, 1);
    let episodes = play(&rollouts);
    assert!(episodes.lengths().iter().all(|length| *length <= 3));
    assert!(episodes.lengths().contains(&3) && episodes.terminated().contains(&false));
    rollouts.set_max_steps(1000);
    assert_eq!(play(&rollouts).lengths().iter().max(), Some(&40));
}

#[test]
fn observations_have_mean_0_and_variance_1() {
    let net = Net::new();
    let seen = RefCell::new(Vec::new());
    let policy = feed_forward(|x: Tensor<2>| {
        seen.borrow_mut().extend(x.clone().into_data().try_to_vec::<f32>().expect("floats"));
        net.forward(x)
    });
    let column = |values: &[f32], index: usize| {
        let mut moments = Moments::new(1);
        values.iter().skip(index).step_by(2).for_each(|value| moments.add(&[*value]));
        moments
    };
    let mut rollouts = rollouts(HostRolloutConfig::new().with_normalise_observations(true).with_max_steps(1));
    // A step each, so that every observation is that of an episode that goes on.
    let episodes = rollouts.evaluate_model(&policy, 500, 3);
    let raw = seen.take();
    assert!((column(&raw, 0).variance(0) - 1.0 / 12.0).abs() < 0.01);
    rollouts.observe(&episodes);
    let observed = rollouts.observed().expect("normalised");
    assert_eq!((observed.count(), observed.variance(1) > 0.0), (1000 - ends(&episodes), true));
    rollouts.evaluate_model(&policy, 500, 3);
    let normalised = column(&seen.take(), 0);
    let (mean, variance) = (observed.mean(0), observed.variance(0));
    let expected = (column(&raw, 0).mean(0) - mean) / variance.sqrt();
    assert!((normalised.mean(0) - expected).abs() < 1e-5);
    assert!((normalised.variance(0) - column(&raw, 0).variance(0) / variance).abs() < 1e-5);
}

/// Episodes that ended by themselves: their last state is not seen.
fn ends(episodes: &EpisodeStatistics) -> u64 {
    episodes.terminated().iter().filter(|terminated| **terminated).count() as u64
}

#[test]
fn rollouts_of_nothing_are_refused() {
    let error = |config: HostRolloutConfig| config.try_init(Table, &Device::flex()).expect_err("nothing").to_string();
    let episodes = error(HostRolloutConfig::new().with_episodes(0));
    assert!(episodes.contains("not 0 of any length"), "{episodes}");
    let steps = error(HostRolloutConfig::new().with_max_steps(Some(0)));
    assert!(steps.contains("not 1 of at most 0 steps"), "{steps}");
}

#[test]
#[should_panic(expected = "the policy returned 1 rows for 3 environments")]
fn policies_answer_all_rows() {
    let net = Net::new();
    rollouts(HostRolloutConfig::new()).evaluate_model(&feed_forward(|x| net.forward(x).slice_dim(0, 0..1)), 3, 0);
}
