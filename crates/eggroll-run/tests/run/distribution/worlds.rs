//! Worlds of any size make the update of one process, bit for bit.

use crate::distribution::support::*;
use burn::optim::SgdConfig;
use eggroll_core::{EggrollConfig, NoiseSourceConfig, OpenEsConfig};
use eggroll_run::distribution::{Communicator, Distribution, Ranks};
use eggroll_run::*;
use eggroll_train::*;
use std::ops::ControlFlow;

/// More ranks than the ten pairs, too.
const SIZES: [usize; 5] = [1, 2, 3, 4, 13];

fn assert_worlds(name: &str, config: &EvolutionStrategyConfig) {
    let expected = alone(config);
    for size in SIZES {
        let digests =
            replicas(size, |threads| run(config, &mut Distribution::of(Ranks::new(threads).with_digest_every(2))));
        for (rank, digest) in digests.into_iter().enumerate() {
            assert_eq!(digest.expect("a run"), expected, "{name}, rank {rank} of {size}");
        }
    }
    let other = EvolutionStrategyConfig { seed: config.seed + 1, ..config.clone() };
    assert_ne!(alone(&other), expected, "canary: {name}");
}

#[test]
fn eggroll() {
    assert_worlds("Adam", &config());
    assert_worlds("chunks", &config().with_chunk_size(6));
    assert_worlds("a population of two pairs", &config().with_population_size(4));
}

/// What the estimate needs in addition to the fitness is known on ranks without members, too.
#[test]
fn credit() {
    let by_part = config().with_credit(Credit::Parts);
    assert_worlds("by part", &by_part);
    assert_ne!(alone(&by_part), alone(&config()), "canary");
}

/// Ranks that give layers other rows learn from the mean of those layers, and stay equal; rows of parts are learned from on all ranks.
#[test]
fn rows_of_ranks() {
    let by_row = |rank: usize, config: &EvolutionStrategyConfig, distribution: &mut Distribution| {
        run_with(config, distribution, |net, population| {
            Ok(population.evaluate(|members| {
                let y = net.forward(sines(12).reshape([3, 4]) + rank as f64);
                -(y - 0.5).square().sum_dim(1).reshape([members.count(), 3])
            }))
        })
    };
    let own_rows = |config: &EvolutionStrategyConfig| {
        replicas(3, |threads| {
            let rank = threads.rank();
            by_row(rank, config, &mut Distribution::of(Ranks::new(threads).with_digest_every(2))).expect("a run")
        })
    };
    assert_eq!(own_rows(&config()), own_rows(&config().with_credit(Credit::Mean)));
    let [by_part, mean] = [config(), config().with_credit(Credit::Mean)]
        .map(|config| by_row(0, &config, &mut Distribution::default()).expect("a run"));
    assert_ne!(by_part, mean, "canary");
    for digest in replicas(3, |threads| by_row(0, &config(), &mut Distribution::new(threads))) {
        assert_eq!(digest.expect("a run"), by_part);
    }
}

#[test]
fn relative_noise_and_decay() {
    let relative = config().with_noise_scale(NoiseScale::RelativeToSpread).with_anchor_decay(0.5);
    assert_worlds("relative", &relative);
    let scaled = relative.clone().with_scales([("second.*", 0.5)]);
    assert_worlds("scaled", &scaled);
    assert_ne!(alone(&scaled), alone(&relative), "canary: scaled");
    assert_ne!(alone(&relative), alone(&config().with_anchor_decay(0.5)), "canary: relative");
    assert_ne!(alone(&relative), alone(&config().with_noise_scale(NoiseScale::RelativeToSpread)), "canary: decay");
}

#[test]
fn noisers_and_sources() {
    assert_worlds("cached", &config().with_noise_source(NoiseSourceConfig::Cached).with_noise_reuse(2));
    assert_worlds("table", &config().with_noise_source(NoiseSourceConfig::Table { len: 1000 }));
    let open_es = EvolutionStrategyConfig::new(OpenEsConfig::new(), SgdConfig::new()).with_population_size(MEMBERS);
    assert_worlds("OpenES", &open_es.with_shaping(FitnessShaping::CenteredRank));
    let episodes = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(MEMBERS);
    assert_worlds("episodes", &episodes.with_unroll_horizon(3));
}

#[test]
fn tasks() {
    let config = config();
    let evaluate = |net: &ReplicaNet, population: &Population| {
        Ok(population.evaluate(|members| {
            let scores = score(net, members);
            burn::tensor::Tensor::stack::<2>(vec![scores.clone(), -scores.exp()], 1) // [members, tasks]
        }))
    };
    let expected = run_with(&config, &mut Distribution::default(), evaluate).expect("a run");
    assert_ne!(expected, alone(&config), "canary");
    for digest in replicas(3, |threads| run_with(&config, &mut Distribution::new(threads), evaluate)) {
        assert_eq!(digest.expect("a run"), expected);
    }
}

/// Rank 0 decides to stop, and alone sees reports and saves; another world continues from what it has saved.
#[test]
fn stops_and_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoints = || Checkpoints::new(folder.path());
    let evaluate = |net: &ReplicaNet, population: &Population| Ok(population.evaluate(|members| score(net, members)));
    let stopped = replicas(3, |threads| {
        let mut distribution = Distribution::new(threads);
        let mut reports = 0;
        let (net, leads) = (ReplicaNet::new(0.4), distribution.leads());
        let mut strategy = config().init(&net);
        let training = TrainingLoop::new(GENERATIONS).with_checkpoints(checkpoints(), 1);
        let after = |_: &ReplicaNet, report: &GenerationReport| {
            reports += 1;
            Ok(if report.generation == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        let net = training.run_distributed(&mut distribution, &mut strategy, net, evaluate, after).expect("a run");
        assert_eq!(reports, if leads { 4 } else { 0 });
        (strategy.generation(), parameter_digest(&net))
    });
    assert!(stopped.iter().all(|end| *end == stopped[0] && end.0 == 4), "{stopped:?}");
    let continued = replicas(4, |threads| {
        let (mut strategy, net) = checkpoints().load_latest(ReplicaNet::new(0.1)).expect("readable").expect("saved");
        assert_eq!(strategy.generation(), 4);
        let training = TrainingLoop::new(GENERATIONS);
        let go_on = |_: &ReplicaNet, _: &GenerationReport| Ok(ControlFlow::Continue(()));
        let net = training.run_distributed(&mut Distribution::new(threads), &mut strategy, net, evaluate, go_on);
        parameter_digest(&net.expect("a run"))
    });
    assert!(continued.iter().all(|digest| *digest == alone(&config())));
    assert_ne!(stopped[0].1, continued[0], "canary");
}
