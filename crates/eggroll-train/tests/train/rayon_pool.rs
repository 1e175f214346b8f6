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
struct Net {
    first: Linear,
    second: Linear,
}

impl Net {
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
struct Case {
    net: Net,
    x: Tensor<2>,
    population: Population,
    plain: Vec<f32>,
    fitness: Vec<f32>,
}

impl Case {
    fn new() -> Self {
        let net = Net { first: layer(WIDTH, WIDTH), second: layer(WIDTH, 16) };
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
    let case = Case::new();
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
    let case = Case::new();
    side_by_side(ROUNDS, || {
        rayon::join(|| case.check_members(), || case.check_plain());
    });
}

#[test]
fn spawned_beside_evaluate_a_model_is_plain() {
    let case = Case::new();
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
    let case = Case::new();
    let panicked = AtomicUsize::new(0);
    let fitness = case.evaluate(|| {
        let wait = || scope::suspended(|| -> () { panic!("a job's panic") });
        panicked.fetch_add(usize::from(catch_unwind(wait).is_err()), Relaxed);
        scope::suspended(|| case.check_plain());
    });
    assert_eq!(panicked.into_inner(), 1);
    assert!(fitness == case.fitness, "members were not perturbed");
}

/// Waits that are not eggroll's own: debug builds notice.
#[cfg(debug_assertions)]
mod waits_of_others {
    use super::*;
    use std::panic::AssertUnwindSafe;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;

    /// The text that `job` panics with, if it does.
    fn panic_of<R>(job: impl FnOnce() -> R) -> Option<String> {
        let panic = catch_unwind(AssertUnwindSafe(job)).err()?;
        Some(panic.downcast::<String>().map_or_else(|_| "no text".into(), |text| *text))
    }

    /// A wait that is not ours: a job that is taken up in it finds the scope, and debug builds say so.
    #[test]
    fn a_wait_of_others_is_noticed() {
        let case = Case::new();
        let pool = pool(2);
        let (held, free) = (Barrier::new(2), AtomicBool::new(false));
        std::thread::scope(|threads| {
            // The other thread of the pool is kept busy, so that the waiting one takes up the job.
            threads.spawn(|| {
                pool.install(|| {
                    held.wait();
                    while !free.load(Relaxed) {
                        std::thread::yield_now();
                    }
                });
            });
            held.wait();
            let take_up = || assert!(rayon::yield_local().is_some(), "on a thread of the pool");
            let messages = [Case::check_plain, Case::check_members]
                .map(|job| pool.install(|| rayon::join(|| case.evaluate(take_up), || panic_of(|| job(&case)))).1);
            free.store(true, Relaxed);
            for message in messages {
                let message = message.expect("the job ran inside of the scope");
                assert!(message.contains("first.weight") && message.contains("job of a rayon pool"), "{message}");
            }
        });
    }

    /// Burn's own product waits for the pool: a job that is taken up in it gives the right numbers or, in debug builds, panics.
    #[test]
    fn jobs_in_a_product_of_burn_are_right_or_panic() {
        let case = Case::new();
        let wide = sines(256 * 256).reshape([256, 256]);
        let product = || drop(wide.clone().matmul(wide.clone()));
        let both = || {
            rayon::join(
                || assert!(case.evaluate(product) == case.fitness, "other fitness in a pool"),
                || case.check_plain(),
            )
        };
        pool(4).install(|| {
            rayon::scope(|jobs| {
                for _ in 0..100 {
                    jobs.spawn(|_| {
                        let message = panic_of(both);
                        assert!(
                            message.as_ref().is_none_or(|text| text.contains("job of a rayon pool")),
                            "{message:?}"
                        );
                    });
                }
            });
        });
    }
}
