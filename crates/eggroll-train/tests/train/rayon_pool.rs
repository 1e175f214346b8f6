//! `evaluate` on a thread of a rayon pool, which takes up other jobs whenever it waits: these are no members, and
//! compute as they do elsewhere.

use crate::support::sines;
use burn::module::{Module, Param};
use burn::optim::AdamConfig;
use burn::tensor::Tensor;
use eggroll_core::{EggrollConfig, scope};
use eggroll_nn::Linear;
use eggroll_train::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const WIDTH: usize = 32;
const ROWS: usize = 4;
const ROUNDS: usize = 1000;

#[derive(Module, Debug)]
struct PoolNet {
    first: Linear,
    second: Linear,
}

impl PoolNet {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(self.first.forward_shared(x).clamp(-1.0, 1.0))
    }
}

fn layer(d_input: usize, d_output: usize) -> Linear {
    let weight = sines(d_input * d_output).reshape([d_input, d_output]) * 0.2;
    Linear { weight: Param::from_tensor(weight), bias: Some(Param::from_tensor(sines(d_output) * 0.1)) }
}

fn values(tensor: Tensor<2>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("an f32 tensor")
}

/// A model, its members, and what both give where there is no pool.
struct PoolCase {
    net: PoolNet,
    x: Tensor<2>,
    population: Population,
    plain: Vec<f32>,
    fitness: Vec<f32>,
}

impl PoolCase {
    fn new() -> Self {
        let net = PoolNet { first: layer(WIDTH, WIDTH), second: layer(WIDTH, 16) };
        let x = sines(ROWS * WIDTH).reshape([ROWS, WIDTH]);
        // Many more pairs than threads: every kernel has tasks for all of them.
        let config = EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(2), AdamConfig::new());
        let population = config.with_population_size(128).with_chunk_size(128).with_seed(3).init(&net).ask();
        let plain = values(net.forward(x.clone()));
        let mut case = Self { net, x, population, plain, fitness: Vec::new() };
        case.fitness = case.evaluate(|| ());
        case
    }

    /// The members' fitness, evaluated on this thread; `during` runs in the scope.
    fn evaluate(&self, during: impl Fn()) -> Vec<f32> {
        let score = |members: &MemberChunk| {
            during();
            members.mean(self.net.forward(self.x.clone()))
        };
        self.population.evaluate_mut(score).values().to_vec()
    }

    fn forward(&self) -> Vec<f32> {
        values(self.net.forward(self.x.clone()))
    }

    fn check_members(&self) {
        assert!(self.evaluate(|| ()) == self.fitness, "other fitness in a pool");
    }

    fn check_plain(&self) {
        assert!(self.forward() == self.plain, "a model outside of the scope is perturbed");
    }
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().expect("threads")
}

#[test]
fn members_differ_from_the_plain_model() {
    let case = PoolCase::new();
    let mut sorted = case.fitness.clone();
    sorted.sort_by(f32::total_cmp);
    sorted.dedup();
    assert_eq!(sorted.len(), 128, "canary: members that are all alike would prove nothing");
}

/// As many jobs at once as keep all threads busy, so that each finds others' jobs when it waits.
fn side_by_side(rounds: usize, job: impl Fn() + Sync) {
    pool(4).scope(|jobs| {
        for _ in 0..rounds {
            jobs.spawn(|_| job());
        }
    });
}

#[test]
fn joined_with_evaluate_a_model_is_plain() {
    let case = PoolCase::new();
    side_by_side(ROUNDS, || {
        rayon::join(|| case.check_members(), || case.check_plain());
    });
}

#[test]
fn spawned_beside_evaluate_a_model_is_plain() {
    let case = PoolCase::new();
    side_by_side(ROUNDS, || {
        rayon::scope(|jobs| {
            jobs.spawn(|_| case.check_plain());
            jobs.spawn(|_| case.check_members());
            jobs.spawn(|_| case.check_plain());
            case.check_members();
        });
    });
}

/// A job that panics while a kernel waits leaves the scope as it was.
#[test]
fn a_panic_in_a_wait_leaves_the_scope() {
    let case = PoolCase::new();
    let panicked = AtomicUsize::new(0);
    let fitness = case.evaluate(|| {
        let wait = || scope::suspended(|| -> () { panic!("a job's panic") });
        panicked.fetch_add(usize::from(catch_unwind(wait).is_err()), Relaxed);
        scope::suspended(|| case.check_plain());
    });
    assert_eq!(panicked.into_inner(), 1);
    assert!(fitness == case.fitness, "members were not perturbed");
}
