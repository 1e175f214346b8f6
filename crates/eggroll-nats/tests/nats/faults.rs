//! Workers that die, lag, and join late; replicas that are not what they should be.

use crate::nodes::*;
use crate::server::Server;
use crate::support::{IntegerNet, LearningModel, Net};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::Tensor;
use eggroll_nats::{Coordinator, NatsConfig, NatsError, Notice};
use eggroll_run::TrainingLoop;
use eggroll_run::distribution::Distribution;
use eggroll_train::*;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// One worker is killed amid a slice, one is slow, one joins when the first fitness is no longer on the server.
pub fn survives<T: NatsTask>() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let start = |name, delay| Start { delay: Duration::from_millis(delay), task: T::NAME, ..Start::worker(name, &url) };
    let coordinator = Local::start_with_pause::<T>(config(&url, "coordinator"), Some(7));
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

fn fitness(model: &Net, members: &Population) -> Result<Fitness, eggroll_run::UserError> {
    Ok(model.fitness(members))
}

/// The strategy of a run in which nothing of the first model acts for the whole run.
fn plain() -> EvolutionStrategyConfig {
    Net::strategy().with_noise_scale(NoiseScale::Absolute).with_anchor_decay(0.0)
}

#[test]
fn replicas_that_differ_stop_and_the_run_goes_on() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let coordinator = Local::start::<Net>(config(&url, "coordinator"));
    // Another configuration is another run, and so are other spreads and another anchor.
    let others = [(Net::strategy().with_sigma(0.3), Net::start()), (Net::strategy(), nudged(Net::start()))];
    for (strategy, model) in others {
        match work_from(&config(&url, "stranger"), model, strategy, fitness).map(drop) {
            Err(NatsError::OtherRun { run, .. }) => assert_eq!(run, RUN),
            other => panic!("{other:?}"),
        }
    }
    let steady = Start::worker("steady", &url).node();
    assert_eq!(coordinator.finish().digest, expected::<Net>());
    assert_eq!(steady.hear("digest"), expected::<Net>());
}

#[test]
fn a_worker_of_other_weights_is_found_by_its_digest() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let ((done, first), (go_on, resume)) = (mpsc::channel(), mpsc::channel::<()>());
    let run = |config: NatsConfig| {
        let model = Net::start();
        let mut strategy = plain().init(&model);
        let coordinator = Coordinator::connect(&config).expect("connects");
        std::thread::spawn(move || {
            TrainingLoop::new(GENERATIONS).run_distributed(
                &mut Distribution::of(coordinator),
                &mut strategy,
                model,
                fitness,
                |_, report| {
                    if report.generation == 0 {
                        done.send(())?;
                        resume.recv_timeout(LIMIT)?;
                    }
                    Ok(ControlFlow::Continue(()))
                },
            )
        })
    };
    let coordinator = run(config(&url, "coordinator"));
    let found = || match work_from(&config(&url, "stranger"), nudged(Net::start()), plain(), fitness).map(drop) {
        Err(NatsError::Diverged { generation: 0, expected, found }) => assert_ne!(expected, found),
        other => panic!("{other:?}"),
    };
    found();
    let steady = work_with(config(&url, "steady"), plain(), fitness);
    first.recv_timeout(LIMIT).expect("a generation");
    // The work that it would find now has no digest, and the log has.
    found();
    go_on.send(()).expect("waits");
    steady.join().expect("no panic").expect("works");
    coordinator.join().expect("no panic").expect("goes on");
}

/// The first two slices of a worker: an error, then a panic. It lives on; the other one waits for that, with a slice in hand.
#[test]
fn a_score_that_fails_gives_its_slice_back() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let coordinator = Local::start::<Net>(config(&url, "coordinator"));
    let (sender, failed) = mpsc::channel();
    let mut missing = 2;
    let steady = work::<Net>(config(&url, "steady"), move |model, members| {
        while missing > 0 {
            failed.recv_timeout(LIMIT)?;
            missing -= 1;
        }
        Ok(model.fitness(members))
    });
    let mut slices = 0;
    let failing = work::<Net>(config(&url, "failing"), move |model, members| {
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
}

/// Slice 3 of generation 2 fails at workers and at the coordinator: that ends with the error, and they serve the next one.
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
    let workers = ["w1", "w2", "w3"].map(|name| work::<Net>(config(&url, name), score.clone()));
    let folder = tempfile::tempdir().expect("a folder");
    let error = coordinate_scored(&config(&url, "coordinator"), folder.path(), score.clone(), |_| {}).map(drop);
    let error = error.expect_err("fails");
    let text = error.to_string();
    assert!(text.contains("slice 3 of generation 2 failed 3 times") && text.contains("a broken file"), "{text}");
    assert!(matches!(error, NatsError::SliceFailed { generation: 2, slice: 3, failures: 3, .. }), "{text}");
    assert!(workers.iter().all(|worker| !worker.is_finished()), "the fleet lives on");
    is_mended.store(true, Ordering::Relaxed);
    let outcome = Local::start::<Net>(config(&url, "coordinator")).finish();
    assert_eq!(outcome.digest, expected::<Net>());
    for worker in workers {
        assert_eq!(worker.join().expect("no panic").expect("works").0, expected::<Net>());
    }
}

/// A lone worker fails at one slice again and again: the coordinator evaluates it, and says why.
#[test]
fn a_slice_that_fails_at_workers_alone_is_the_coordinators() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let (sender, heard) = mpsc::channel();
    let coordinator = config(&url, "coordinator").with_notices(move |notice| drop(sender.send(notice.clone())));
    let coordinator = Local::start::<Net>(coordinator);
    let only = work::<Net>(config(&url, "only"), |model, members| {
        match members.generation() == 1 && members.range().start == 12 {
            true => Err("out of memory".into()),
            false => Ok(model.fitness(members)),
        }
    });
    let outcome = coordinator.finish();
    assert_eq!(outcome.digest, expected::<Net>());
    let (digest, report) = only.join().expect("no panic").expect("works");
    assert_eq!((digest, report.failures), (expected::<Net>(), 3));
    assert_eq!((outcome.counts.failed, outcome.counts.evaluated), (3, 1), "{:?}", outcome.counts);
    let said = heard.try_iter().filter(|notice| {
        matches!(notice, Notice::Failed { node, generation: 1, slice: 3, error } if node == "only" && error == "out of memory")
    });
    assert_eq!(said.count(), 3);
}

/// Nobody is there: the coordinator says so, and what for.
#[test]
fn a_coordinator_says_what_it_waits_for() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let (sender, heard) = mpsc::channel();
    let every = Duration::from_millis(300);
    let coordinator = NatsConfig { notice_every: every, ..config(&url, "coordinator") };
    let coordinator = coordinator.with_notices(move |notice| drop(sender.send(notice.clone())));
    let coordinator = Local::start::<Net>(coordinator);
    let next = || match heard.recv_timeout(LIMIT).expect("says something") {
        Notice::Slices { generation: 0, missing, since, in_hand, idle } => {
            assert!(since >= every, "{since:?}");
            (missing, in_hand, idle)
        }
        other => panic!("{other}"),
    };
    assert_eq!([next(), next()], [(12, 0, 0), (12, 0, 0)]);
    let mut first = true;
    let slow = work::<Net>(config(&url, "slow"), move |model, members| {
        std::thread::sleep(Duration::from_millis(if std::mem::take(&mut first) { 1500 } else { 0 }));
        Ok(model.fitness(members))
    });
    let (missing, in_hand, _) = std::iter::repeat_with(next).find(|(_, in_hand, _)| *in_hand > 0).expect("never ends");
    assert_eq!((missing, in_hand), (12, 1));
    assert_eq!(slow.join().expect("no panic").expect("works").0, coordinator.finish().digest);
}

/// The same name and configuration with another score: nothing of the first run is taken for the second's.
#[test]
fn another_version_of_score_or_data_is_another_run() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let of = |node, version: &str| NatsConfig { version: version.to_owned(), ..config(&url, node) };
    let worker = work::<Net>(of("w1", "data 1"), |model, members| Ok(model.fitness(members)));
    Local::start::<Net>(of("coordinator", "data 1")).finish();
    worker.join().expect("no panic").expect("works");
    let other = Local::start::<Net>(of("coordinator", "data 2")).end().map(drop);
    assert!(matches!(other, Err(NatsError::OtherRun { .. })), "{other:?}");
    let stranger = work::<Net>(of("w2", "data 2"), |_, _| unreachable!("refused before")).join().expect("no panic");
    assert!(matches!(stranger, Err(NatsError::OtherRun { .. })), "{stranger:?}");
    // The same version again, without a folder: what the server has is used, and the coordinator says so.
    let (sender, heard) = mpsc::channel();
    let again = of("coordinator", "data 1").with_notices(move |notice| drop(sender.send(notice.clone())));
    assert_eq!(Local::start::<Net>(again).finish().digest, expected::<Net>());
    let last = GENERATIONS - 1;
    assert!(heard.try_iter().any(|notice| notice == Notice::Recorded { first: 0, last }));
}

#[test]
fn slices_that_the_server_would_not_take_are_refused_by_name() {
    let Some(server) = Server::with("127.0.0.1", |_| "max_payload: 1600\n".to_owned()) else { return };
    let large = |node: &str| NatsConfig { slice_members: 48, ..config(&server.url(), node) };
    let worker = work::<Wide>(large("w1"), |model, members| Ok(model.fitness(members)));
    let error = Local::start::<Wide>(large("coordinator")).end().map(drop);
    assert!(matches!(error, Err(NatsError::SliceBytes { members: 48, bytes: 1200, limit: 576 })), "{error:?}");
    drop(server);
    let _ = worker;
}

/// A worker without a coordinator does not wait for ever, and one that is told to stop stops.
#[test]
fn workers_that_wait_end_by_name() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let patient = |node, seconds| NatsConfig { patience: Duration::from_secs(seconds), ..config(&url, node) };
    let early = work::<Net>(patient("early", 1), |_, _| unreachable!("no run")).join().expect("no panic");
    assert!(
        matches!(&early, Err(NatsError::Patience { what, .. }) if what == "waiting for the run to begin"),
        "{early:?}"
    );
    let coordinator = Local::start_with_pause::<Net>(config(&url, "coordinator"), Some(3));
    let stops = config(&url, "stops");
    let (stop, heard) = (stops.stop.clone(), mpsc::channel());
    let stopped = work::<Net>(stops, move |model, members| {
        let _ = heard.0.send(());
        Ok(model.fitness(members))
    });
    heard.1.recv_timeout(LIMIT).expect("evaluates");
    stop.store(true, Ordering::Relaxed);
    match stopped.join().expect("no panic") {
        // Between two generations there is nothing to leave.
        Ok(_) | Err(NatsError::Stopped { .. }) => {}
        other => panic!("{other:?}"),
    }
    let left = work::<Net>(patient("left", 2), |model, members| Ok(model.fitness(members)));
    coordinator.wait(3);
    // Its thread stays, and answers: a worker waits. The next one is dropped.
    std::thread::sleep(Duration::from_secs(3));
    assert!(!left.is_finished(), "a coordinator that is busy is there");
    coordinator.resume();
    assert_eq!(coordinator.finish().digest, expected::<Net>());
    assert_eq!(left.join().expect("no panic").expect("works").0, expected::<Net>());
    let folder = tempfile::tempdir().expect("a folder");
    let other = NatsConfig { run: "other".to_owned(), ..patient("coordinator", 60) };
    let gone = |model: &Net, members: &Population| match members.generation() {
        1 => Err("a bad disk".into()),
        _ => Ok(model.fitness(members)),
    };
    let failing = work::<Net>(NatsConfig { run: "other".to_owned(), ..patient("w1", 2) }, gone);
    let failed = coordinate_scored(&other, folder.path(), gone, |_| {}).map(drop);
    assert!(matches!(failed, Err(NatsError::SliceFailed { generation: 1, .. })), "{failed:?}");
    match failing.join().expect("no panic") {
        Err(NatsError::NoCoordinator { generation: 1, .. }) => {}
        other => panic!("{other:?}"),
    }
}
