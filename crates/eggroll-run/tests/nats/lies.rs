//! Workers that lie.

use crate::nodes::*;
use crate::server::Server;
use crate::support::Net;
use async_nats::jetstream;
use eggroll_run::distribution::nats::protocol::{RunId, SliceResult, Status, Work};
use eggroll_run::distribution::nats::{NatsConfig, Rejection, WorkerKey};
use eggroll_train::Fitness;
use futures_util::StreamExt;
use std::collections::BTreeSet;
use std::time::Duration;

/// The run's id, which a liar knows as all nodes do.
fn run_id(config: &NatsConfig) -> RunId {
    use crate::support::LearningModel;
    RunId::of(config, &Net::strategy().init(&Net::start())).expect("a run")
}

/// All lies, and one that is plausible.
fn lies(run: &RunId, work: &Work) -> Vec<Vec<u8>> {
    let count = work.members as usize;
    let fair = |fitness: Vec<f32>| SliceResult::new(work, work.digest.clone(), &Fitness::from(fitness)).encode(run);
    let of = |work: Work| SliceResult::new(&work, work.digest.clone(), &Fitness::from(vec![1.0; count])).encode(run);
    let digest = Some("5a".repeat(32));
    vec![
        b"garbage".to_vec(),
        fair(vec![f32::NAN; count]),
        fair(vec![f32::INFINITY; count]),
        fair(vec![1.0; count + 2]),
        fair(Vec::new()),
        of(Work { generation: work.generation.wrapping_sub(1), ..work.clone() }),
        of(Work { generation: work.generation + 1, ..work.clone() }),
        of(Work { slice: 1 << 20, ..work.clone() }),
        of(Work { digest, ..work.clone() }),
        SliceResult::new(work, work.digest.clone(), &Fitness::from(vec![7i32; count])).encode(run),
        SliceResult::new(work, work.digest.clone(), &Fitness::from(vec![1.0; count])).encode(&RunId([0; 8])),
        vec![1; 4 * count + 300],
    ]
}

/// The key of all workers, when the coordinator has made it.
pub fn wait_for_key(config: &NatsConfig) -> WorkerKey {
    let file = config.keys.join(format!("{}.workers.key", config.run));
    while !file.exists() {
        std::thread::sleep(Duration::from_millis(50));
    }
    WorkerKey::read_file(&file, &config.run).expect("reads")
}

/// Takes work and answers it with one lie after the other; one whose name begins so tells plausible ones only.
pub fn lie(config: &NatsConfig) {
    let run = run_id(config);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let subject = |what: &str| format!("eggroll.{}.{what}.{}", config.run, config.node);
    let key = wait_for_key(config);
    runtime.block_on(async {
        let client = async_nats::connect(&config.connection.servers).await.expect("connects");
        let context = jetstream::new(client.clone());
        let mut work = client.subscribe(subject("work")).await.expect("subscribes");
        println!("lying");
        let mut told = 0;
        loop {
            let status = Status { leaving: false, held: Vec::new() }.encode(&run);
            client.publish(subject("status"), key.seal(&config.node, status).into()).await.expect("sends");
            let next = tokio::time::timeout(Duration::from_millis(200), work.next()).await;
            let Ok(Some(message)) = next else { continue };
            let sealed = key.open_work(&config.node, &message.payload).expect("the coordinator's");
            let Ok(work) = Work::decode(sealed, &run) else { continue };
            let mut lies = lies(&run, &work);
            let lie = match config.node.starts_with("plausible") {
                true => SliceResult::new(
                    &work,
                    work.digest.clone(),
                    &Fitness::from(vec![told as f32; work.members as usize]),
                )
                .encode(&run),
                false => lies.swap_remove(told % lies.len()),
            };
            told += 1;
            let published =
                context.publish(subject("result"), key.seal(&config.node, lie).into()).await.expect("sends").await;
            published.expect("the server takes it");
        }
    });
}

#[test]
fn lies_are_counted_and_change_nothing() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let patient = NatsConfig { strikes: 1000, ..config::<Net>(&url, "coordinator") };
    let coordinator = Local::start::<Net>(patient);
    let liar = Start { role: "liar", ..Start::worker("liar", &url) }.node();
    liar.hear("lying");
    let honest = Start::worker("honest", &url).node();
    let outcome = coordinator.finish();
    assert_eq!(outcome.digest, expected::<Net>());
    assert_eq!(honest.hear("digest"), expected::<Net>());
    let reasons: BTreeSet<Rejection> = outcome.counts.rejected.keys().copied().collect();
    let all = [
        Rejection::TooLarge,
        Rejection::Garbage,
        Rejection::OtherRun,
        Rejection::Stale,
        Rejection::Early,
        Rejection::UnknownSlice,
        Rejection::WrongLength,
        Rejection::WrongKind,
        Rejection::NotFinite,
        Rejection::WrongDigest,
    ];
    let missing: Vec<_> = all.iter().filter(|reason| !reasons.contains(reason)).collect();
    assert!(missing.is_empty(), "{missing:?} were never told: {:?}", outcome.counts);
    assert!(!outcome.counts.by_node.contains_key("liar"), "{:?}", outcome.counts);
    assert!(outcome.counts.offered_again > 0 && outcome.counts.evaluated > 0, "{:?}", outcome.counts);
}

#[test]
fn who_lies_too_often_is_not_listened_to() {
    let Some(server) = Server::start() else { return };
    let url = server.url();
    let coordinator = Local::start::<Net>(config::<Net>(&url, "coordinator"));
    let liar = Start { role: "liar", ..Start::worker("liar", &url) }.node();
    liar.hear("lying");
    let _honest = Start::worker("honest", &url).node();
    coordinator.wait(5);
    drop(liar);
    let outcome = coordinator.finish();
    assert_eq!(outcome.digest, expected::<Net>());
    assert_eq!(outcome.counts.ignored, BTreeSet::from(["liar".to_owned()]));
    assert_eq!(outcome.counts.rejected.values().sum::<u64>(), 3, "it is offered no more: {:?}", outcome.counts);
}

/// The digest of a run with a worker that invents fitness, of which the coordinator checks a share.
fn with_plausible_lies(verify_share: f64) -> Option<CoordinatorResult> {
    let server = Server::start()?;
    let url = server.url();
    let coordinator =
        Local::start::<Net>(NatsConfig { verify_share: Some(verify_share), ..config::<Net>(&url, "coordinator") });
    let liar = Start { role: "liar", ..Start::worker("plausible", &url) }.node();
    liar.hear("lying");
    let _honest = Start::worker("honest", &url).node();
    Some(coordinator.finish())
}

#[test]
fn plausible_lies_are_found_where_the_coordinator_looks() {
    let Some(outcome) = with_plausible_lies(1.0) else { return };
    assert_eq!(outcome.digest, expected::<Net>());
    assert!(outcome.counts.rejected.contains_key(&Rejection::Disagreement), "{:?}", outcome.counts);
    // Canary: without looking nobody knows.
    let outcome = with_plausible_lies(0.0).expect("as above");
    assert_ne!(outcome.digest, expected::<Net>());
}
