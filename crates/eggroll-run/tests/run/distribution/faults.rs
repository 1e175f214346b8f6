//! What goes wrong is noticed by all replicas, with rank and generation, and none continues alone.

use crate::distribution::support::*;
use burn::tensor::Int;
use eggroll_run::Error;
use eggroll_run::distribution::{Communicator, Distribution, DistributionError, Ranks, evaluate_sharded};
use eggroll_run::*;
use eggroll_train::*;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

fn distribution_error(outcome: RunDigest) -> DistributionError {
    match outcome {
        Err(Error::Distribution(error)) => error,
        other => panic!("expected an error between replicas, got {other:?}"),
    }
}

/// Rank 1 of three reads one bit of one score of generation 2 wrong.
#[test]
fn divergence_names_rank_and_generation() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |damaged: bool| {
        replicas(3, |inner| {
            let rank = inner.rank();
            let into = move |words: &mut Vec<u32>| {
                // Length, generation, kind, tasks, scores.
                let is_fitness = words.len() > MEMBERS && words[1] == 2;
                if damaged && rank == 1 && is_fitness {
                    words[5] ^= 1 << 20;
                }
            };
            let mut distribution =
                Distribution::of(Ranks::new(Tampering { inner, out: |_: &mut _| {}, into }).with_digest_every(2));
            let net = ReplicaNet::new(0.4);
            let mut strategy = config().init(&net);
            let training = TrainingLoop::new(GENERATIONS).with_checkpoints(Checkpoints::new(folder.path()), 1);
            let evaluate =
                |net: &ReplicaNet, population: &Population| Ok(population.evaluate(|members| score(net, members)));
            let go_on = |_: &ReplicaNet, _: &GenerationReport| Ok(ControlFlow::Continue(()));
            let net = training.run_distributed(&mut distribution, &mut strategy, net, evaluate, go_on)?;
            Ok(parameter_digest(&net))
        })
    };
    for outcome in run(true) {
        let error = distribution_error(outcome);
        assert!(matches!(error, DistributionError::Diverged { rank: 1, generation: 4, .. }), "{error}");
        assert!(error.to_string().starts_with("rank 1 has diverged by generation 4"), "{error}");
    }
    let saved = Checkpoints::new(folder.path()).load_latest(ReplicaNet::new(0.1)).expect("readable").expect("saved");
    assert_eq!(saved.0.generation(), 3, "parameters that may be wrong are not saved");
    assert!(run(false).into_iter().all(|digest| digest.unwrap() == alone(&config())), "canary");
}

/// Replicas of the same model and configuration whose strategies have begun with different models.
#[test]
fn replicas_that_began_otherwise() {
    let relative = config().with_noise_scale(NoiseScale::RelativeToSpread);
    for (config, what) in [(relative, "set of spreads"), (config().with_anchor_decay(0.5), "anchor of the decay")] {
        let outcomes = replicas(3, |threads| {
            let net = ReplicaNet::new(0.4);
            let start = config.init(&ReplicaNet::new(if threads.rank() == 1 { 0.3 } else { 0.4 }));
            let spreads = start.to_record().spreads;
            let strategy = config.init(&net).with_anchor_of(&start);
            let mut strategy = strategy.clone().load_record(StrategyRecord { spreads, ..strategy.to_record() });
            let evaluate =
                |net: &ReplicaNet, population: &Population| Ok(population.evaluate(|members| score(net, members)));
            let go_on = |_: &ReplicaNet, _: &GenerationReport| Ok(ControlFlow::Continue(()));
            let mut distribution = Distribution::new(threads);
            let training = TrainingLoop::new(GENERATIONS);
            let net = training.run_distributed(&mut distribution, &mut strategy, net, evaluate, go_on)?;
            Ok(parameter_digest(&net))
        });
        for outcome in outcomes {
            let error = distribution_error(outcome);
            assert!(matches!(error, DistributionError::Start { rank: 1, .. }), "{error}");
            assert!(error.to_string().contains(what), "{error}");
        }
    }
}

/// The rank that differs from most is named; of two that differ, the second.
#[test]
fn digests() {
    let check = |digests: &[&str]| {
        let errors = replicas(digests.len(), |mut threads| threads.check_digest(7, digests[threads.rank()]));
        assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
        errors[0].clone()
    };
    let diverged = |rank, found: &str, expected: &str| {
        let (found, expected) = (found.to_owned(), expected.to_owned());
        Err(DistributionError::Diverged { rank, generation: 7, found, expected })
    };
    assert_eq!(check(&["a", "a", "a"]), Ok(()));
    assert_eq!(check(&["b", "a", "a"]), diverged(0, "b", "a"));
    assert_eq!(check(&["a", "a", "b", "a"]), diverged(2, "b", "a"));
    assert_eq!(check(&["a", "b"]), diverged(1, "b", "a"));
}

/// A rank whose evaluation fails says so; the others stop with its number, and what was done is saved.
#[test]
fn a_rank_that_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let outcomes = replicas(3, |threads| {
        let (rank, net) = (threads.rank(), ReplicaNet::new(0.4));
        let mut strategy = config().init(&net);
        let training = TrainingLoop::new(GENERATIONS).with_checkpoints(Checkpoints::new(folder.path()), 100);
        let evaluate = |net: &ReplicaNet, population: &Population| match (rank, population.generation()) {
            (2, 3) => Err("no data".into()),
            _ => Ok(population.evaluate(|members| score(net, members))),
        };
        let go_on = |_: &ReplicaNet, _: &GenerationReport| Ok(ControlFlow::Continue(()));
        let net = training.run_distributed(&mut Distribution::new(threads), &mut strategy, net, evaluate, go_on);
        net.map(|net| parameter_digest(&net)).map_err(|error| error.to_string())
    });
    let others = Err("rank 2 has failed: see its own error message".to_owned());
    assert_eq!(outcomes, [others.clone(), others, Err("no data".to_owned())]);
    let saved = Checkpoints::new(folder.path()).load_latest(ReplicaNet::new(0.1)).expect("readable").expect("saved");
    assert_eq!(saved.0.generation(), 3);
}

#[test]
fn a_rank_that_panics() {
    let errors = Mutex::new(Vec::new());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        replicas(3, |threads| {
            let rank = threads.rank();
            let outcome = run_with(&config(), &mut Distribution::new(threads), |net, population| {
                assert!((rank, population.generation()) != (1, 2), "a bug");
                Ok(population.evaluate(|members| score(net, members)))
            });
            errors.lock().expect("not poisoned").push(distribution_error(outcome));
        })
    }));
    assert!(panicked.is_err(), "the panic is passed on");
    let left = DistributionError::Left { rank: 1 };
    assert_eq!(errors.into_inner().expect("not poisoned"), [left.clone(), left]);
}

#[test]
fn replicas_begin_alike() {
    let begin = |data: [&str; 2], rank_1: &(dyn Fn(ReplicaNet) -> (EvolutionStrategy, ReplicaNet) + Sync)| {
        let outcomes = replicas(2, |threads| {
            let net = ReplicaNet::new(0.4);
            let (mut strategy, net) = match threads.rank() {
                0 => (config().init(&net), net),
                _ => rank_1(net),
            };
            let evaluate =
                |net: &ReplicaNet, population: &Population| Ok(population.evaluate(|members| score(net, members)));
            let go_on = |_: &ReplicaNet, _: &GenerationReport| Ok(ControlFlow::Continue(()));
            let training = TrainingLoop::new(2).with_data(data[threads.rank()]);
            let mut distribution = Distribution::new(threads);
            let net = training.run_distributed(&mut distribution, &mut strategy, net, evaluate, go_on);
            net.map(|net| parameter_digest(&net))
        });
        let errors = outcomes.into_iter().map(distribution_error).collect::<Vec<_>>();
        assert_eq!(errors[0], errors[1]);
        match errors[0].clone() {
            DistributionError::Start { rank: 1, what, .. } => what,
            other => panic!("{other}"),
        }
    };
    let start = |rank_1: &(dyn Fn(ReplicaNet) -> (EvolutionStrategy, ReplicaNet) + Sync)| begin(["images"; 2], rank_1);
    assert_eq!(begin(["images", "others"], &|net| (config().init(&net), net)), "digest of its data");
    assert_eq!(start(&|net| (config().with_seed(6).init(&net), net)), "configuration");
    assert_eq!(start(&|_| (config().init(&ReplicaNet::new(0.3)), ReplicaNet::new(0.3))), "set of parameters");
    let ahead = |net: ReplicaNet| {
        let mut strategy = config().init(&net);
        let population = strategy.ask();
        let fitness = population.evaluate(|members| score(&net, members));
        let mut net = net;
        strategy.tell(&mut net, population, fitness).expect("a generation");
        (strategy, net)
    };
    assert_eq!(start(&ahead), "generation");
}

/// Fitness of another generation, of another kind, of other tasks, and messages that are cut off.
#[test]
fn foreign_fitness() {
    let exchange = |out: fn(&mut Vec<u32>), integers: bool, generations: u64| {
        let errors = replicas(2, |inner| {
            let rank = inner.rank();
            let out = move |words: &mut Vec<u32>| {
                if rank == 1 {
                    out(words)
                }
            };
            let mut communicator = Tampering { inner, out, into: |_: &mut _| {} };
            let mut net = ReplicaNet::new(0.4);
            let mut strategy = config().init(&net);
            for _ in 0..if rank == 1 { generations } else { 0 } {
                let population = strategy.ask();
                let fitness = population.evaluate(|members| score(&net, members));
                strategy.tell(&mut net, population, fitness).expect("a generation");
            }
            evaluate_sharded(&strategy.ask(), &mut communicator, |slice| match integers && rank == 1 {
                false => slice.evaluate(|members| score(&net, members)),
                true => slice.evaluate(|members| score(&net, members).int() as burn::tensor::Tensor<1, Int>),
            })
        });
        errors[0].clone()
    };
    assert!(exchange(|_| {}, false, 0).is_ok(), "canary");
    let generation = DistributionError::Generation { rank: 1, found: 1, expected: 0 };
    assert_eq!(exchange(|_| {}, false, 1), Err(generation));
    let error = exchange(|_| {}, true, 0).expect_err("of another kind").to_string();
    assert_eq!(error, "rank 1 sent integer scores of 1 tasks, and this rank has float scores of 1 tasks");
    let cut_off = exchange(|words| words.truncate(words.len() - 1), false, 0);
    assert_eq!(cut_off, Err(DistributionError::Length { rank: 1, found: 13, expected: 14 }));
    let short = |words: &mut Vec<u32>| {
        words[0] -= 1;
        words.pop();
    };
    assert_eq!(exchange(short, false, 0), Err(DistributionError::Length { rank: 1, found: 13, expected: 14 }));
}

/// Every bit of what is gathered is kept, also of what is no number; an engine of three methods has all the others.
#[test]
fn bits_are_kept() {
    let bits = [0x7fc0_1234, 0x7f80_0001, 0xffff_ffff, 0x8000_0000, 1, 0];
    let gathered = replicas(3, |inner| {
        let rank = inner.rank();
        let mut engine = Tampering { inner, out: |_: &mut _| {}, into: |_: &mut _| {} };
        engine.barrier().expect("all are there");
        let words = engine.all_gather_words(&bits[rank..]).expect("words");
        let floats: Vec<f32> = bits[rank..].iter().map(|bits| f32::from_bits(*bits)).collect();
        let floats = engine.all_gather_floats(&floats).expect("floats");
        let floats: Vec<Vec<u32>> = floats.into_iter().map(|of| of.into_iter().map(f32::to_bits).collect()).collect();
        assert_eq!(floats, words);
        words
    });
    let expected: Vec<Vec<u32>> = (0..3).map(|rank| bits[rank..].to_vec()).collect();
    assert!(gathered.iter().all(|words| *words == expected), "{gathered:?}");
}

/// All wait for a slow rank, and nothing else changes.
#[test]
fn a_slow_rank() {
    let digests = replicas(3, |threads| {
        let slow = threads.rank() == 1;
        run_with(&config(), &mut Distribution::new(threads), |net, population| {
            if slow {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            Ok(population.evaluate(|members| score(net, members)))
        })
    });
    assert!(digests.into_iter().all(|digest| digest.unwrap() == alone(&config())));
}
