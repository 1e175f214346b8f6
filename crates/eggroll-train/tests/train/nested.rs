//! Evaluations inside of evaluations, and next to them: no result depends on which thread takes which job. There are as many pools as
//! rayon had threads when the first was asked for: every test runs in processes of its own, of 1, 2 and 4 threads.

use crate::support::{layer_on, sines};
use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use eggroll_core::EggrollConfig;
use eggroll_nn::Linear;
use eggroll_train::{EvolutionStrategyConfig, Fitness, MemberChunk, Population};
use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::{env, thread};

const ROUNDS: usize = 50;
const MEMBERS: usize = 24;
/// Set in the processes that a test starts.
const THREADS: &str = "RAYON_NUM_THREADS";
const INNER: &str = "EGGROLL_NESTED_TEST";

/// Runs `test` in processes of 1, 2 and 4 threads, in which `name` is the only test; all say the same.
fn on_threads(name: &str, test: impl FnOnce() -> String) {
    if env::var_os(INNER).is_some() {
        return println!("\nfound: {}", test());
    }
    let found = ["1", "2", "4"].map(|threads| {
        // In the emulator, where programs are another machine's.
        let emulator = env::var("EGGROLL_TEST_EMULATOR").unwrap_or_default();
        let program = env::current_exe().expect("this program");
        let words = [emulator.split_whitespace().map(OsStr::new).collect(), vec![program.as_os_str()]].concat();
        let mut child = Command::new(words[0]);
        child.args(&words[1..]);
        let child = child.args(["--exact", &format!("nested::{name}"), "--nocapture"]);
        let output = child.env(THREADS, threads).env(INNER, "1").output().expect("starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{threads} threads: {text}{}", String::from_utf8_lossy(&output.stderr));
        text.lines().find(|line| line.starts_with("found: ")).expect("a result").to_owned()
    });
    assert!(found.iter().all(|one| *one == found[0]), "{found:?}");
}

/// Two models and their populations.
struct NestedCase {
    models: [Linear; 2],
    populations: [Population; 2],
    x: Tensor<2>,
}

impl NestedCase {
    fn new() -> Self {
        let models = [6, 6].map(|width| layer_on(width, width, &Device::flex()));
        let ask = |model: &Linear| {
            let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_sigma(0.2);
            config.with_population_size(MEMBERS).with_chunk_size(2).with_seed(5).init(model).ask()
        };
        Self { populations: [ask(&models[0]), ask(&models[1])], models, x: sines(8 * 6).reshape([8, 6]) }
    }

    /// The first model where no scope is.
    fn plain(&self) -> Vec<f32> {
        values(self.models[0].forward(self.x.clone()))
    }

    /// The second population's fitness on what the first model answers, which has to be the plain model.
    fn inner(&self, plain: &[f32]) -> Fitness {
        let [a, b] = &self.models;
        self.populations[1].evaluate(|members| {
            let y = a.forward(self.x.clone());
            assert!(values(y.clone()) == plain, "the first model is perturbed in an evaluation of the second");
            members.mean(b.forward_shared(y))
        })
    }

    /// The same, evaluated in other ways.
    fn others(&self, plain: &[f32]) -> [Fitness; 2] {
        let [a, b] = &self.models;
        let seen = || {
            let y = a.forward(self.x.clone());
            assert!(values(y.clone()) == plain, "the first model is perturbed in an evaluation of the second");
            y
        };
        let one_by_one = self.populations[1].evaluate_each(b, |member| member.forward(seen()).mean());
        let in_order = self.populations[1].evaluate_mut(|members: &MemberChunk| members.mean(b.forward_shared(seen())));
        [one_by_one, in_order]
    }
}

fn values(tensor: Tensor<2>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("f32")
}

fn bits(fitness: &Fitness) -> Vec<u32> {
    fitness.values().iter().map(|value| value.to_bits()).collect()
}

#[test]
fn inside_of_evaluations() {
    on_threads("inside_of_evaluations", || {
        let case = NestedCase::new();
        let plain = case.plain();
        let (inner, others) = (case.inner(&plain), case.others(&plain));
        let own = |members: &MemberChunk| members.mean(case.models[0].forward_shared(case.x.clone()));
        let alone = case.populations[0].evaluate(own);
        assert!(alone.values().windows(2).all(|pair| pair[0] != pair[1]), "canary: members are perturbed");
        for round in 0..ROUNDS {
            let fitness = case.populations[0].evaluate(|members| {
                assert!(case.inner(&plain) == inner, "round {round}");
                assert!(round > 0 || case.others(&plain) == others);
                own(members) // perturbed again
            });
            assert!(fitness == alone, "round {round}");
        }
        format!("{:?} {:?}", bits(&alone), bits(&inner))
    });
}

#[test]
fn next_to_evaluations() {
    on_threads("next_to_evaluations", || {
        let case = NestedCase::new();
        let plain = case.plain();
        let inner = case.inner(&plain);
        let left = AtomicUsize::new(ROUNDS);
        thread::scope(|threads| {
            threads.spawn(|| {
                while left.load(Relaxed) > 0 {
                    case.populations[0].evaluate(|members| {
                        assert!(case.inner(&plain) == inner, "inside");
                        members.mean(case.models[0].forward_shared(case.x.clone()))
                    });
                }
            });
            let rounds = catch_unwind(AssertUnwindSafe(|| {
                for _ in 0..ROUNDS {
                    assert!(case.inner(&plain) == inner, "next to it");
                    left.fetch_sub(1, Relaxed);
                }
            }));
            left.store(0, Relaxed);
            rounds.expect("plain");
        });
        format!("{:?}", bits(&inner))
    });
}

/// A model in its own evaluation is refused on every thread, also with an evaluation of another model in between.
#[test]
fn of_the_same_model() {
    on_threads("of_the_same_model", || {
        let case = NestedCase::new();
        let refused = |nested: &(dyn Fn() + Sync)| {
            let evaluate = || {
                case.populations[0].evaluate(|members| {
                    nested();
                    members.mean(case.models[0].forward_shared(case.x.clone()))
                })
            };
            let panic = catch_unwind(AssertUnwindSafe(evaluate)).expect_err("refused");
            let text = panic.downcast_ref::<String>().expect("a text").clone();
            assert!(text.contains("evaluate is already running for this model"), "{text}");
        };
        let again =
            || drop(case.populations[0].evaluate_each(&case.models[0], |member| member.forward(case.x.clone()).mean()));
        for _ in 0..10 {
            refused(&again);
            refused(&|| {
                case.populations[1].evaluate(|members| {
                    again();
                    members.mean(case.models[1].forward_shared(case.x.clone()))
                });
            });
        }
        String::new()
    });
}
