//! A hostile worker: it has what `docs/nats.md` gives a worker, its own key and its own account, and tries every attack that we know of
//! while the run continues. The run ends with the digest of one process, and nothing speaks against the honest worker.
//!
//! Every attack is one that works somewhere: the same program finds the doors open on a server without accounts or permissions.

use crate::attacker::{Attacker, NAME, Tally, VICTIM};
use crate::nodes::*;
use crate::secure::configuration;
use crate::server::Server;
use crate::support::{LearningModel, Net};
use burn::module::Module;
use eggroll_run::distribution::nats::*;
use eggroll_train::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The same task with a shaping in which no score can do more than a rank.
#[derive(Module, Debug)]
pub struct Ranked {
    net: Net,
}

impl LearningModel for Ranked {
    fn start() -> Self {
        Self { net: Net::start() }
    }

    fn fitness(&self, population: &Population) -> Fitness {
        self.net.fitness(population)
    }
}

impl NatsTask for Ranked {
    const IS_OF_INTEGERS: bool = false;

    fn strategy() -> EvolutionStrategyConfig {
        Net::strategy().with_shaping(FitnessShaping::CenteredRank)
    }
}

/// The password of a user of these tests.
pub fn password(user: &str) -> String {
    format!("password-of-{user}")
}

/// Settings of a run whose workers are not trusted.
fn untrusted(server: &Server, node: &str, with_users: bool) -> NatsConfig {
    let auth = match with_users {
        true => NatsAuth::UserPassword { user: node.to_owned(), password: password(node).into() },
        false => NatsAuth::None,
    };
    NatsConfig {
        connection: NatsConnection { servers: server.url(), auth, ..NatsConnection::default() },
        // Not those of a trusted run on the same port before.
        keys: server.folder.path().join("keys"),
        trust: Trust::Untrusted { scores: -1e3..=0.0 },
        nodes: vec![NAME.to_owned(), VICTIM.to_owned()],
        ..config::<Ranked>(&server.url(), node)
    }
}

/// A run with an honest worker and a hostile one.
fn run_with_attacker(server: &Server, with_users: bool) -> (Counts, Tally) {
    let config = |node| untrusted(server, node, with_users);
    let coordinator = Local::start::<Ranked>(config("coordinator"));
    let honest = work_slowly(config(VICTIM));
    let (tally, is_over) = (Arc::<Mutex<Tally>>::default(), Arc::new(AtomicBool::new(false)));
    let attacker = {
        let (config, tally, is_over) = (config(NAME), tally.clone(), is_over.clone());
        while !config.keys.join(format!("{RUN}.{NAME}.key")).exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
            runtime.expect("a runtime").block_on(async {
                Attacker::connect(&config, tally).await.attack(&is_over, with_users).await;
            });
        })
    };
    let outcome = coordinator.finish();
    is_over.store(true, Ordering::Relaxed);
    let (digest, _) = honest.join().expect("no panic").expect("is not disturbed");
    attacker.join().expect("no panic");
    assert_eq!(outcome.digest, expected::<Ranked>());
    assert_eq!(digest, expected::<Ranked>());
    let tally = std::mem::take(&mut *tally.lock().expect("no panic"));
    println!("{:#?}\n{tally:#?}", outcome.counts);
    (outcome.counts, tally)
}

fn work_slowly(config: NatsConfig) -> JoinHandle<Result<(String, WorkerReport), NatsError>> {
    work::<Ranked>(config, |model, members| {
        std::thread::sleep(Duration::from_millis(25));
        Ok(model.fitness(members))
    })
}

/// What holds whatever the server allows: keys.
fn check_keys(counts: &Counts, tally: &Tally) {
    // On a busy machine the run may be over before the third strike.
    assert!(counts.ignored.iter().all(|node| node == NAME), "nobody but the liar: {:?}", counts.ignored);
    assert_eq!(counts.strikes.keys().collect::<Vec<_>>(), [NAME], "nothing speaks against others");
    assert_eq!(counts.by_node.keys().collect::<Vec<_>>(), [VICTIM], "no lie was taken");
    assert!(tally.offers > 0, "canary: it takes part");
    let all = [
        "told",
        "work",
        "checkpoint",
        "result of another",
        "status of another",
        "invented names",
        "answers into the fitness",
        "answers into another's results",
        "answers into another's work",
        "answers into the checkpoints",
        "push consumer",
        "pull consumer",
        "others' work",
        "others' acknowledgements",
        "others' consumers",
        "work that was heard",
        "scores of 1e18",
    ];
    let missing: Vec<_> = all.iter().filter(|name| !tally.tried.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?} were never tried");
}

/// The configuration of the page: nothing of it even arrives.
#[test]
fn accounts_keep_a_hostile_worker_to_its_own_subjects() {
    let Some(server) = Server::with("127.0.0.1", |_| configuration("accounts", password)) else { return };
    let (counts, tally) = run_with_attacker(&server, true);
    check_keys(&counts, &tally);
    assert_eq!(counts.foreign, 0, "nothing came into the stream of fitness");
    assert!(!counts.rejected.contains_key(&Rejection::Forged), "nor into results: {counts:?}");
    assert!(tally.answered.is_empty(), "{:?}", tally.answered);
    assert!(tally.heard.is_empty(), "{:?}", tally.heard);
}

/// Permissions without accounts: answers of the server arrive where the worker may not speak, and mean nothing there.
#[test]
fn permissions_leave_answers_that_mean_nothing() {
    let Some(server) = Server::with("127.0.0.1", |_| configuration("authorization", password)) else { return };
    let (counts, tally) = run_with_attacker(&server, true);
    check_keys(&counts, &tally);
    assert!(counts.foreign > 0, "canary: answers come into the stream of fitness: {counts:?}");
    assert!(counts.rejected.contains_key(&Rejection::Forged), "canary: and into another's results: {counts:?}");
    assert!(tally.answered.is_empty(), "{:?}", tally.answered);
    assert!(tally.heard.is_empty(), "{:?}", tally.heard);
    for refused in ["eggroll.run.fitness", "eggroll.run.result.w2", "$JS.API.CONSUMER.CREATE.eggroll-run-fitness"] {
        assert!(tally.violations.contains(refused), "canary: {refused} is refused: {:?}", tally.violations);
    }
}

/// No accounts, no permissions, no passwords: whatever is said arrives, and what has no seal is nothing.
#[test]
fn keys_alone_keep_the_digest() {
    let Some(server) = Server::start() else { return };
    let (counts, tally) = run_with_attacker(&server, false);
    check_keys(&counts, &tally);
    assert!(counts.foreign > 0 && counts.rejected[&Rejection::Forged] > 50, "canary: all arrives: {counts:?}");
    assert!(!tally.heard.is_empty(), "canary: all is heard: {:?}", tally.heard);
    for name in ["push consumer", "pull consumer", "others' consumers", "names of consumers"] {
        assert!(tally.answered.contains_key(name), "canary: {name} is what the server does: {:?}", tally.answered);
    }
}

#[test]
fn no_score_decides_where_workers_are_not_trusted() {
    let Some(server) = Server::start() else { return };
    // Standardized scores: one of 10¹⁸ is the estimate.
    let strategy = Net::strategy().init(&Net::start());
    let refused = Coordinator::connect(untrusted(&server, "coordinator", false), &strategy).map(drop);
    assert!(matches!(&refused, Err(NatsError::Shaping { found }) if found == "Standardized"), "{refused:?}");
    let trusted = NatsConfig { trust: Trust::Trusted, ..untrusted(&server, "coordinator", false) };
    assert!(Coordinator::connect(trusted, &strategy).is_ok(), "canary");
}
