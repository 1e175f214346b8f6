//! Servers and coordinators that are killed and start again.

use crate::nodes::*;
use crate::server::Server;
use crate::support::{LearningModel, Net};
use eggroll_nats::NatsError;
use eggroll_train::Population;
use std::time::Duration;

#[test]
fn a_server_that_is_killed_and_restarted_loses_nothing() {
    let Some(mut server) = Server::start() else { return };
    let url = server.url();
    let coordinator = Local::start::<Net>(config(&url, "coordinator"));
    let workers = ["first", "second"].map(|name| Start::worker(name, &url).node());
    for generation in [3, 7] {
        coordinator.wait(generation);
        server.kill();
        std::thread::sleep(Duration::from_millis(700));
        server.restart();
    }
    assert_eq!(coordinator.finish().digest, expected::<Net>());
    for worker in workers {
        assert_eq!(worker.hear("digest"), expected::<Net>());
    }
}

/// Killed twice: the second time with its folder, so that it continues from the server's checkpoint.
#[test]
fn a_coordinator_that_is_killed_goes_on_where_the_run_stands() {
    let Some(server) = Server::start() else { return };
    let (url, folder, other) = (server.url(), server.folder.path().join("run"), server.folder.path().join("other"));
    let workers = ["first", "second"].map(|name| Start::worker(name, &url).node());
    let start = Start { role: "coordinator", folder: &folder, ..Start::worker("coordinator", &url) };
    let coordinator = start.node();
    // One generation after its checkpoint: the fitness of that one is on the server.
    coordinator.hear("done 4");
    coordinator.kill();
    let coordinator = start.node();
    assert_eq!(coordinator.hear("done"), "4", "canary: it goes on from the checkpoint of generation 3");
    coordinator.hear("done 8");
    coordinator.kill();
    let coordinator = Start { folder: &other, ..start }.node();
    assert_eq!(coordinator.hear("done"), "7");
    assert_ne!(coordinator.hear("recovered"), "0");
    assert_eq!(coordinator.hear("digest"), expected::<Net>());
    for worker in workers {
        assert_eq!(worker.hear("digest"), expected::<Net>());
    }
}

/// A run that is over, and a coordinator that has lost its folder: it ends at once, and its checkpoint is still that of the last generation.
#[test]
fn a_coordinator_without_its_folder_keeps_the_checkpoint() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let early = Start::worker("early", &url).node();
    assert_eq!(Local::start::<Net>(config(&url, "coordinator")).finish().digest, expected::<Net>());
    assert_eq!(early.hear("digest"), expected::<Net>());
    assert_eq!(Local::start::<Net>(config(&url, "coordinator")).finish().digest, expected::<Net>());
    let fitness = |model: &Net, members: &Population| Ok(model.fitness(members));
    let late = work_from(&config(&url, "late"), Net::start(), Net::strategy(), fitness).expect("to the end");
    assert_eq!((late.0, late.1.checkpoints), (expected::<Net>(), 1));
}

/// The first stands still while the second trains to the end: it finds that, and takes nothing away.
#[test]
fn a_second_coordinator_is_found() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let worker = Start::worker("only", &url).node();
    let first = Local::start_with_pause::<Net>(config(&url, "first"), Some(4));
    first.wait(4);
    let second = Local::start::<Net>(config(&url, "second"));
    second.wait(6);
    first.resume();
    let error = first.end().map(drop);
    assert!(matches!(error, Err(NatsError::SecondCoordinator { generation: 4 })), "{error:?}");
    assert_eq!(second.finish().digest, expected::<Net>());
    assert_eq!(worker.hear("digest"), expected::<Net>());
}
