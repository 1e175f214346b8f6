//! Workers that die, lag, and join late; replicas that are not what they should be.

use crate::nodes::*;
use crate::server::Server;
use crate::support::{Integers, Net, Task};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::Tensor;
use eggroll_run::distribution::nats::{Coordinator, NatsConfig, NatsError, Worker};
use eggroll_train::*;
use std::time::Duration;

/// One worker is killed amid a slice, one is slow, one joins when the first fitness is no longer on the server.
fn survives<T: NatsTask>() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let start = |name, delay| Start {
        delay: Duration::from_millis(delay),
        integers: T::IS_OF_INTEGERS,
        ..Start::worker(name, &url)
    };
    let coordinator = Local::start_with_pause::<T>(config::<T>(&url, "coordinator"), Some(7));
    let [victim, slow, steady] =
        [("victim", 400), ("slow", 200), ("steady", 50)].map(|(name, delay)| start(name, delay).node());
    victim.hear("evaluating");
    victim.kill();
    coordinator.wait(7);
    let late = start("late", 50).node();
    late.hear("here");
    coordinator.resume();
    let outcome = coordinator.finish();
    let digest = expected::<T>();
    assert_eq!(outcome.digest, digest);
    for (name, node) in [("slow", slow), ("steady", steady), ("late", late)] {
        assert_ne!(node.hear("slices"), "0", "{name}");
        assert!(name != "late" || node.hear("checkpoints") == "1", "it begins with a checkpoint");
        assert_eq!(node.hear("digest"), digest, "{name}");
        assert!(outcome.counts.by_node.contains_key(name), "{:?}", outcome.counts);
    }
    assert!(outcome.counts.rejected.keys().all(|reason| !reason.is_a_strike()), "{:?}", outcome.counts);
}

#[test]
fn floats_survive_workers_that_die_lag_and_join_late() {
    survives::<Net>();
}

#[test]
fn integers_survive_workers_that_die_lag_and_join_late() {
    survives::<Integers>();
}

/// Another model than the run's.
fn other_model() -> Net {
    struct Nudge;

    impl ModuleMapper for Nudge {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|tensor| tensor + 1e-3)
        }
    }
    Net::start().map(&mut Nudge)
}

#[test]
fn replicas_that_differ_stop_and_the_run_goes_on() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let coordinator = Local::start::<Net>(config::<Net>(&url, "coordinator"));
    let score = |model: &Net, members: &Population| Ok(model.fitness(members));
    let model = other_model();
    let mut stranger = Worker::connect(config::<Net>(&url, "stranger")).expect("connects");
    match stranger.run(Net::strategy().init(&model), model, score).map(drop) {
        Err(NatsError::Diverged { generation: 0, expected, found }) => assert_ne!(expected, found),
        other => panic!("{other:?}"),
    }
    // Another configuration is another run.
    let model = Net::start();
    let mut stranger = Worker::connect(config::<Net>(&url, "stranger")).expect("connects");
    match stranger.run(Net::strategy().with_sigma(0.3).init(&model), model, score).map(drop) {
        Err(NatsError::OtherRun { run, .. }) => assert_eq!(run, RUN),
        other => panic!("{other:?}"),
    }
    let steady = Start::worker("steady", &url).node();
    assert_eq!(coordinator.finish().digest, expected::<Net>());
    assert_eq!(steady.hear("digest"), expected::<Net>());
}

#[test]
fn a_score_that_fails_gives_its_slice_back() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let coordinator = Local::start::<Net>(config::<Net>(&url, "coordinator"));
    let model = Net::start();
    let mut failing = Worker::connect(config::<Net>(&url, "failing")).expect("connects");
    let error = failing.run(Net::strategy().init(&model), model, |_, _| Err("no more".into())).map(drop);
    assert_eq!(error.expect_err("fails").to_string(), "no more");
    let steady = Start::worker("steady", &url).node();
    assert_eq!(coordinator.finish().digest, expected::<Net>());
    assert_eq!(steady.hear("digest"), expected::<Net>());
}

#[test]
fn slices_that_the_server_would_not_take_are_refused_before() {
    let Some(server) = Server::with("127.0.0.1", |_| "max_payload: 4096\n".to_owned()) else { return };
    let large = EvolutionStrategyConfig { population: 4096, ..Net::strategy() };
    let config = NatsConfig { slice_members: 4096, ..config::<Net>(&server.url(), "coordinator") };
    let strategy = large.init(&Net::start());
    let refused = Coordinator::connect(config, &strategy).map(drop);
    assert!(matches!(refused, Err(NatsError::SliceBytes { members: 4096, bytes: 16384, .. })), "{refused:?}");
}
