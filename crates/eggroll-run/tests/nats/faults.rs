//! Workers that die, lag, and join late; replicas that are not what they should be.

use crate::nodes::*;
use crate::server::Server;
use crate::support::{IntegerNet, LearningModel, Net};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::Tensor;
use eggroll_run::distribution::nats::{Coordinator, Counts, NatsConfig, NatsError, Notice, Worker};
use eggroll_run::parameter_digest;
use eggroll_train::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
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
    survives::<IntegerNet>();
}

/// Another model than the run's, of the same identifiers.
fn nudged(model: Net) -> Net {
    struct Nudge;

    impl ModuleMapper for Nudge {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|tensor| tensor + 1e-3)
        }
    }
    model.map(&mut Nudge)
}

#[test]
fn replicas_that_differ_stop_and_the_run_goes_on() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let coordinator = Local::start::<Net>(config::<Net>(&url, "coordinator"));
    let score = |model: &Net, members: &Population| Ok(model.fitness(members));
    let start = Net::start();
    let mut stranger = Worker::connect(config::<Net>(&url, "stranger")).expect("connects");
    match stranger.run(Net::strategy().init(&start), nudged(start), score).map(drop) {
        Err(NatsError::Diverged { generation: 0, expected, found }) => assert_ne!(expected, found),
        other => panic!("{other:?}"),
    }
    // Another configuration is another run, and so are other spreads and another anchor.
    let others = [(Net::strategy().with_sigma(0.3), Net::start()), (Net::strategy(), nudged(Net::start()))];
    for (strategy, model) in others {
        let mut stranger = Worker::connect(config::<Net>(&url, "stranger")).expect("connects");
        match stranger.run(strategy.init(&model), model, score).map(drop) {
            Err(NatsError::OtherRun { run, .. }) => assert_eq!(run, RUN),
            other => panic!("{other:?}"),
        }
    }
    let steady = Start::worker("steady", &url).node();
    assert_eq!(coordinator.finish().digest, expected::<Net>());
    assert_eq!(steady.hear("digest"), expected::<Net>());
}

/// Workers would evaluate with another sigma, or step with another rate.
#[test]
fn settings_that_workers_do_not_hear_of_are_refused() {
    let Some(server) = Server::start() else { return };
    let model = Net::start();
    let mut strategy = Net::strategy().init(&model);
    let mut coordinator =
        Coordinator::connect(config::<Net>(&server.url(), "coordinator"), &strategy).expect("connects");
    strategy.set_learning_rate(0.5).expect("a rate");
    let refused = coordinator.evaluate(&model, &strategy.ask(), |model, members| Ok(model.fitness(members)));
    assert!(matches!(refused, Err(NatsError::Settings { generation: 0, .. })), "{refused:?}");
}

/// The first two slices of a worker: an error, then a panic. It lives on; the other one waits for that, with a slice in hand.
#[test]
fn a_score_that_fails_gives_its_slice_back() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let coordinator = Local::start::<Net>(config::<Net>(&url, "coordinator"));
    let (sender, failed) = mpsc::channel();
    let mut missing = 2;
    let steady = work::<Net>(config::<Net>(&url, "steady"), move |model, members| {
        while missing > 0 {
            failed.recv_timeout(LIMIT)?;
            missing -= 1;
        }
        Ok(model.fitness(members))
    });
    let mut slices = 0;
    let failing = work::<Net>(config::<Net>(&url, "failing"), move |model, members| {
        slices += 1;
        if slices <= 2 {
            sender.send(())?;
        }
        match slices {
            1 => Err("no more".into()),
            2 => panic!("not at all"),
            _ => Ok(model.fitness(members)),
        }
    });
    let outcome = coordinator.finish();
    assert_eq!(outcome.digest, expected::<Net>());
    assert_eq!(steady.join().expect("no panic").expect("works").0, expected::<Net>());
    let (digest, report) = failing.join().expect("no panic").expect("lives on");
    assert_eq!(digest, expected::<Net>());
    assert_eq!((report.failures, outcome.counts.failed), (2, 2), "{report:?} {:?}", outcome.counts);
    assert!(outcome.counts.ignored.is_empty(), "{:?}", outcome.counts);
}

/// Slice 3 of generation 2 fails at three workers and at the coordinator: that ends with the error, and they serve the next one.
#[test]
fn a_slice_that_fails_everywhere_ends_the_run_and_not_the_fleet() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let is_mended = Arc::new(AtomicBool::new(false));
    let score = {
        let is_mended = is_mended.clone();
        move |model: &Net, members: &Population| match members.generation() == 2 && members.range().start == 12 {
            true if !is_mended.load(Ordering::Relaxed) => Err("a broken file".into()),
            _ => Ok(model.fitness(members)),
        }
    };
    let workers = ["w1", "w2", "w3"].map(|name| work::<Net>(config::<Net>(&url, name), score.clone()));
    let model = Net::start();
    let mut strategy = Net::strategy().init(&model);
    let mut coordinator = Coordinator::connect(config::<Net>(&url, "coordinator"), &strategy).expect("connects");
    let mut model = model;
    let error = loop {
        let population = strategy.ask();
        match coordinator.evaluate(&model, &population, score.clone()) {
            Ok(fitness) => drop(strategy.tell(&mut model, population, fitness).expect("tells")),
            Err(error) => break error,
        }
    };
    let text = error.to_string();
    assert!(text.contains("slice 3 of generation 2 failed 3 times") && text.contains("a broken file"), "{text}");
    assert!(matches!(error, NatsError::SliceFailed { generation: 2, slice: 3, failures: 3, .. }), "{text}");
    drop(coordinator);
    assert!(workers.iter().all(|worker| !worker.is_finished()), "the fleet lives on");
    is_mended.store(true, Ordering::Relaxed);
    let outcome = Local::start::<Net>(config::<Net>(&url, "coordinator")).finish();
    assert_eq!(outcome.digest, expected::<Net>());
    for worker in workers {
        assert_eq!(worker.join().expect("no panic").expect("works").0, expected::<Net>());
    }
}

/// A lone worker fails at one slice again and again: a strike, and it continues with others.
#[test]
fn one_bad_slice_is_one_strike() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let coordinator = Local::start::<Net>(config::<Net>(&url, "coordinator"));
    let only = work::<Net>(config::<Net>(&url, "only"), |model, members| {
        match members.generation() == 1 && members.range().start == 12 {
            true => Err("out of memory".into()),
            false => Ok(model.fitness(members)),
        }
    });
    let outcome = coordinator.finish();
    assert_eq!(outcome.digest, expected::<Net>());
    let (digest, report) = only.join().expect("no panic").expect("works");
    assert_eq!((digest, report.failures), (expected::<Net>(), 3));
    assert_eq!((outcome.counts.failed, outcome.counts.strikes["only"]), (3, 1), "{:?}", outcome.counts);
    assert!(outcome.counts.ignored.is_empty());
}

/// A coordinator of one generation, on a thread: the digest, its counts, and what it says until then.
fn one_generation(config: NatsConfig) -> (JoinHandle<(String, Counts)>, mpsc::Receiver<Notice>) {
    let (sender, heard) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let model = Net::start();
        let mut strategy = Net::strategy().init(&model);
        let coordinator = Coordinator::connect(config, &strategy).expect("connects");
        let mut coordinator = coordinator.with_notices(move |notice| drop(sender.send(notice.clone())));
        let population = strategy.ask();
        let fitness = coordinator.evaluate(&model, &population, |model, members| Ok(model.fitness(members)));
        let mut model = model;
        strategy.tell(&mut model, population, fitness.expect("evaluates")).expect("tells");
        (parameter_digest(&model), coordinator.finish().expect("ends"))
    });
    (thread, heard)
}

/// The only worker is ignored: the coordinator names it at once, evaluates what has failed, and takes up with the next worker.
#[test]
fn a_coordinator_whose_workers_are_all_ignored_says_so() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let coordinator = NatsConfig { strikes: 1, slice_failures: 1, ..config::<Net>(&url, "coordinator") };
    let (thread, heard) = one_generation(coordinator);
    let failing = work::<Net>(config::<Net>(&url, "failing"), |_, _| Err("out of memory".into()));
    match heard.recv_timeout(LIMIT).expect("says something") {
        Notice::Slices { workers, ignored, .. } => assert_eq!((workers, ignored), (0, vec!["failing".to_owned()])),
        other => panic!("{other}"),
    }
    let steady = work::<Net>(config::<Net>(&url, "steady"), |model, members| Ok(model.fitness(members)));
    let (digest, counts) = thread.join().expect("no panic");
    assert_eq!(steady.join().expect("no panic").expect("works").0, digest);
    assert_eq!(failing.join().expect("no panic").expect("works").0, digest);
    assert!(counts.strikes["failing"] == 1 && counts.by_node.contains_key("steady"), "{counts:?}");
}

/// Nobody is there: the coordinator says so, and what for.
#[test]
fn a_coordinator_says_what_it_waits_for() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let config = |node| NatsConfig { report_every: Duration::from_millis(300), ..config::<Net>(&url, node) };
    let (thread, heard) = one_generation(config("coordinator"));
    let lasting = |notice: Notice| match notice {
        Notice::Slices { generation: 0, missing, since, workers, ignored } => {
            assert!(ignored.is_empty());
            assert!(since >= Duration::from_millis(300), "{since:?}");
            (missing.len(), workers)
        }
        other => panic!("{other}"),
    };
    let next = || lasting(heard.recv_timeout(LIMIT).expect("says something"));
    assert_eq!([next(), next()], [(12, 0), (12, 0)]);
    let slow = work::<Net>(config("slow"), |model, members| {
        std::thread::sleep(Duration::from_millis(700));
        Ok(model.fitness(members))
    });
    let (missing, workers) = std::iter::repeat_with(next).find(|(_, workers)| *workers > 0).expect("never ends");
    assert!(workers == 1 && (1..=12).contains(&missing), "{missing} {workers}");
    assert_eq!(slow.join().expect("no panic").expect("works").0, thread.join().expect("no panic").0);
}

/// The same name and configuration with another score: nothing of the first run is taken for the second's. With the same version it is
/// replayed, and the coordinator says how much.
#[test]
fn another_version_of_score_or_data_is_another_run() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let of = |node, version: &str| NatsConfig { version: version.to_owned(), ..config::<Net>(&url, node) };
    let config = |version| of("coordinator", version);
    let worker = work::<Net>(of("w1", "data 1"), |model, members| Ok(model.fitness(members)));
    assert_eq!(Local::start::<Net>(config("data 1")).finish().counts.found, 0);
    worker.join().expect("no panic").expect("works");
    let model = Net::start();
    let strategy = Net::strategy().init(&model);
    let other = Coordinator::connect(config("data 2"), &strategy).map(drop);
    assert!(matches!(other, Err(NatsError::OtherRun { .. })), "{other:?}");
    let stranger = work::<Net>(of("w2", "data 2"), |_, _| unreachable!("refused before")).join().expect("no panic");
    assert!(matches!(stranger, Err(NatsError::OtherRun { .. })), "{stranger:?}");
    // Without its folder and from the first model: what the server still has is older than this process.
    let again = Coordinator::connect(config("data 1"), &strategy).expect("connects");
    assert!((1..=GENERATIONS).contains(&again.counts().found), "{:?}", again.counts());
}

#[test]
fn a_worker_may_take_as_long_as_it_likes() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let endless = |node| NatsConfig {
        longest_slice: Duration::MAX,
        offer_again_after: Duration::MAX,
        ..config::<Net>(&url, node)
    };
    let coordinator = Local::start::<Net>(endless("coordinator"));
    let worker = work::<Net>(endless("only"), |model, members| Ok(model.fitness(members)));
    assert_eq!(coordinator.finish().digest, expected::<Net>());
    assert_eq!(worker.join().expect("no panic").expect("works").0, expected::<Net>());
}

#[test]
fn slices_that_the_server_would_not_take_are_refused_before() {
    let Some(server) = Server::with("127.0.0.1", |_| "max_payload: 4096\n".to_owned()) else { return };
    let large = EvolutionStrategyConfig { population_size: 4096, ..Net::strategy() };
    let config = NatsConfig { slice_members: 4096, ..config::<Net>(&server.url(), "coordinator") };
    let strategy = large.init(&Net::start());
    let refused = Coordinator::connect(config, &strategy).map(drop);
    assert!(matches!(refused, Err(NatsError::SliceBytes { members: 4096, bytes: 16384, .. })), "{refused:?}");
}
