//! Workers that return wrong scores.

use crate::nodes::*;
use crate::server::Server;
use crate::support::{LearningModel, Net};
use eggroll_nats::{NatsConfig, NatsError};
use eggroll_train::*;
use std::time::Duration;

fn honest(model: &Net, members: &Population) -> Result<Fitness, eggroll_run::UserError> {
    Ok(model.fitness(members))
}

/// Every score a little better in one generation.
fn lie(model: &Net, members: &Population) -> Result<Fitness, eggroll_run::UserError> {
    let scores = model.fitness(members);
    let better = |score: &f32| score + if members.generation() == 2 { 0.25 } else { 0.0 };
    Ok(Fitness::from(scores.values().iter().map(better).collect::<Vec<_>>()))
}

#[test]
fn all_slices_of_two_honest_workers_agree() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    // Nobody looks for them.
    let patient = NatsConfig { ack_wait: LIMIT, ..config(&url, "coordinator") };
    let coordinator = Local::start::<Net>(patient.with_audit(1.0));
    let workers = ["w1", "w2"].map(|node| work::<Net>(config(&url, node), honest));
    let outcome = coordinator.finish();
    assert_eq!(outcome.digest, expected::<Net>());
    assert_eq!((outcome.counts.audited, outcome.counts.evaluated), (12 * GENERATIONS, 0), "{:?}", outcome.counts);
    for worker in workers {
        assert_eq!(worker.join().expect("no panic").expect("works").0, expected::<Net>());
    }
}

/// With one worker the coordinator is the second.
#[test]
fn a_lone_worker_is_audited_by_the_coordinator() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let quick = |node| NatsConfig { ack_wait: Duration::from_millis(100), ..config(&url, node) };
    let coordinator = Local::start::<Net>(quick("coordinator").with_audit(0.2));
    let worker = work::<Net>(quick("w1"), honest);
    let outcome = coordinator.finish();
    assert_eq!(outcome.digest, expected::<Net>());
    let counts = outcome.counts;
    assert!(
        counts.audited > 0 && counts.audited < 12 * GENERATIONS && counts.audited == counts.evaluated,
        "{counts:?}"
    );
    worker.join().expect("no panic").expect("works");
}

#[test]
fn a_worker_that_lies_is_named() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let coordinator = Local::start::<Net>(config(&url, "coordinator").with_audit(1.0));
    let honest = work::<Net>(NatsConfig { patience: Duration::from_secs(5), ..config(&url, "honest") }, honest);
    let liar = work::<Net>(NatsConfig { patience: Duration::from_secs(5), ..config(&url, "liar") }, lie);
    match coordinator.end().map(drop) {
        Err(NatsError::WrongScores { node, generation: 2, difference, .. }) => {
            assert_eq!(node, "liar");
            assert!(difference.starts_with("score 0 is 0.2"), "{difference}");
        }
        other => panic!("{other:?}"),
    }
    for worker in [honest, liar] {
        let left = worker.join().expect("no panic");
        assert!(matches!(left, Err(NatsError::NoCoordinator { generation: 2, .. })), "{left:?}");
    }
}

/// Canary: without an audit nobody notices.
#[test]
fn a_lie_that_nobody_looks_at_is_learned_from() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let coordinator = Local::start::<Net>(config(&url, "coordinator"));
    let [_, _] = [work::<Net>(config(&url, "honest"), honest), work::<Net>(config(&url, "liar"), lie)];
    // Of all slices, or none, the lie would be taken out by the mean.
    assert_ne!(coordinator.finish().digest, expected::<Net>());
}
