//! A hostile worker: it has what `docs/nats.md` gives a worker, its own key and its own account, and tries every attack that we know of
//! while the run goes on. The run ends with the digest of one process, and nothing speaks against the honest worker.
//!
//! Every attack is one that works somewhere: the same program finds the doors open on a server without accounts or permissions.

use crate::nodes::*;
use crate::secure::configuration;
use crate::server::Server;
use crate::support::{Net, Task};
use async_nats::{Client, ConnectOptions, Event};
use burn::module::Module;
use eggroll_run::distribution::nats::protocol::*;
use eggroll_run::distribution::nats::{
    Coordinator, Counts, NatsAuth, NatsConfig, NatsConnection, NatsError, Rejection, Trust, WorkerKey, WorkerReport,
};
use eggroll_train::*;
use futures_util::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The same task with a shaping in which no score can do more than a rank.
#[derive(Module, Debug)]
pub struct Ranked {
    net: Net,
}

impl Task for Ranked {
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

/// What came of the attacks, by their names.
#[derive(Debug, Default)]
struct Tally {
    tried: BTreeSet<&'static str>,
    /// Requests that the server has answered without an error.
    answered: BTreeMap<&'static str, String>,
    /// Subjects of what the attacker has heard, and was not for it.
    heard: BTreeSet<String>,
    /// Subjects that the server has refused.
    violations: BTreeSet<String>,
    /// Offers that it was given.
    offers: u32,
}

struct Attacker {
    client: Client,
    key: WorkerKey,
    run: RunId,
    tally: Arc<Mutex<Tally>>,
}

const NAME: &str = "w1";
const VICTIM: &str = "w2";

fn subject(what: &str) -> String {
    format!("eggroll.{RUN}.{what}")
}

impl Attacker {
    async fn connect(config: &NatsConfig, tally: Arc<Mutex<Tally>>) -> Self {
        let log = tally.clone();
        let options = match &config.connection.auth {
            NatsAuth::UserPassword { user, .. } => ConnectOptions::with_user_and_password(user.clone(), password(user)),
            _ => ConnectOptions::new(),
        };
        // What it says itself it need not hear.
        let options = options.no_echo().custom_inbox_prefix(format!("_INBOX_{NAME}")).event_callback(move |event| {
            if let Event::ServerError(error) = event {
                let text = error.to_string();
                log.lock().expect("no panic").violations.extend(text.split('"').nth(1).map(str::to_owned));
            }
            std::future::ready(())
        });
        let client = options.connect(&config.connection.servers).await.expect("connects");
        let run = RunId::of(config, &Ranked::strategy().init(&Ranked::start())).expect("a run");
        let file = config.keys.join(format!("{RUN}.{NAME}.key"));
        Self { client, key: WorkerKey::read_file(&file, RUN).expect("its own"), run, tally }
    }

    async fn say(&self, name: &'static str, subject: &str, reply: Option<&str>, payload: &[u8]) {
        self.tally.lock().expect("no panic").tried.insert(name);
        let (subject, payload) = (subject.to_owned(), payload.to_vec().into());
        let said = match reply {
            Some(reply) => self.client.publish_with_reply(subject, reply.to_owned(), payload).await,
            None => self.client.publish(subject, payload).await,
        };
        said.expect("sends");
    }

    /// Asks the server for something; notes an answer that is no error.
    async fn ask(&self, name: &'static str, subject: &str, payload: &str) -> Option<String> {
        self.tally.lock().expect("no panic").tried.insert(name);
        let request = self.client.request(subject.to_owned(), payload.to_owned().into());
        let answer = tokio::time::timeout(Duration::from_millis(150), request).await.ok()?.ok()?;
        let text = String::from_utf8_lossy(&answer.payload).into_owned();
        if !text.contains("\"error\"") && answer.status.is_none_or(|status| status.as_u16() < 400) {
            self.tally.lock().expect("no panic").answered.insert(name, text.clone());
        }
        Some(text)
    }

    /// Listens where it has no business.
    async fn overhear(&self) {
        let foreign = [
            "_INBOX.>".to_owned(),
            format!("_INBOX_{VICTIM}.>"),
            "_INBOX_coordinator.>".to_owned(),
            subject("result.*"),
            subject("status.*"),
            subject(&format!("work.{VICTIM}")),
            "$JS.ACK.>".to_owned(),
            "$JS.API.>".to_owned(),
        ];
        for subject in foreign {
            let Ok(mut heard) = self.client.subscribe(subject.clone()).await else { continue };
            let tally = self.tally.clone();
            tokio::spawn(async move {
                while let Some(message) = heard.next().await {
                    let (own, its) = (format!(".{NAME}"), format!("_INBOX_{NAME}"));
                    let from_itself = message.subject.ends_with(&own) || message.subject.starts_with(&its);
                    let is_request = message.reply.as_ref().is_some_and(|reply| reply.starts_with(&its));
                    if !from_itself && !is_request {
                        tally.lock().expect("no panic").heard.insert(subject.clone());
                    }
                }
            });
        }
    }

    /// Messages as the coordinator would write them, which it has not: with the attacker's MAC, and with nothing.
    fn forged(&self) -> Vec<Vec<u8>> {
        let origin = Origin { life: 7, number: u64::MAX };
        let scores = SliceResult::new(&work(0, 0), None, &Fitness::from(vec![1.0; 48]));
        let part = |generation, part, parts| Told::Part(ToldPart::new(generation, part, parts, &scores));
        let huge = Manifest {
            generation: 10u64.pow(18),
            draft: 1,
            first: 1,
            parts: u32::MAX,
            sum: [0; 32],
            files: vec![("model.bpk".to_owned(), 1 << 62)],
        };
        let bare = [
            Told::End { generation: 0 }.encode(&self.run, origin),
            part(0, 0, 1).encode(&self.run, origin),
            part(5, 0, u32::MAX).encode(&self.run, origin),
            work(3, 1).encode(&self.run),
            huge.encode(&self.run),
            b"garbage".to_vec(),
        ];
        let sealed = bare.iter().map(|bytes| self.key.seal(NAME, bytes.clone()));
        let signed = bare.iter().map(|bytes| [&bytes[..], &[0x5a; 64]].concat());
        sealed.chain(signed).chain(bare.iter().cloned()).collect()
    }

    /// Everything that can be said on subjects which are others'.
    async fn speak_as_others(&self) {
        let victims = [
            ("told", subject("fitness")),
            ("work", subject(&format!("work.{VICTIM}"))),
            ("checkpoint", subject("checkpoint.latest")),
            ("result of another", subject(&format!("result.{VICTIM}"))),
            ("status of another", subject(&format!("status.{VICTIM}"))),
        ];
        for forged in self.forged() {
            for (name, subject) in &victims {
                self.say(name, subject, None, &forged).await;
            }
        }
        let leaving = Status { leaving: true, held: Vec::new() }.encode(&self.run);
        self.say("status of another", &victims[4].1, None, &self.key.seal(VICTIM, leaving)).await;
        for number in 0..50 {
            let name = format!("invented-{number}");
            let status = Status { leaving: false, held: Vec::new() }.encode(&self.run);
            self.say("invented names", &subject(&format!("status.{name}")), None, &self.key.seal(&name, status)).await;
            self.say("invented names", &subject(&format!("result.{name}")), None, b"hello").await;
        }
    }

    /// The server's answers, sent to where the attacker may not speak.
    async fn answer_elsewhere(&self) {
        let (result, get) = (subject(&format!("result.{NAME}")), "$JS.API.DIRECT.GET.eggroll-run-fitness");
        let targets = [
            ("answers into the fitness", subject("fitness")),
            ("answers into another's results", subject(&format!("result.{VICTIM}"))),
            ("answers into another's work", subject(&format!("work.{VICTIM}"))),
            ("answers into the checkpoints", subject("checkpoint.latest")),
        ];
        // Of a generation that has not begun: it is no strike, so that the attacker stays in the run.
        let early = SliceResult::new(&work(u64::MAX, 0), None, &Fitness::from(vec![1.0; 4])).encode(&self.run);
        let early = self.key.seal(NAME, early);
        for (name, target) in &targets {
            for _ in 0..4 {
                self.say(name, &result, Some(target), &early).await;
                // Genuine fitness, once more.
                self.say(name, get, Some(target), br#"{"seq":1,"next_by_subj":">"}"#).await;
                self.say(
                    name,
                    "$JS.API.DIRECT.GET.eggroll-run-checkpoints.eggroll.run.checkpoint.latest",
                    Some(target),
                    b"",
                )
                .await;
                self.say(name, "$JS.API.STREAM.INFO.eggroll-run-fitness", Some(target), b"").await;
            }
        }
    }

    /// What the server does for who may ask.
    async fn ask_the_server(&self, destroys: bool) {
        let deliver = subject(&format!("result.{VICTIM}"));
        let push = format!(
            r#"{{"stream_name":"eggroll-run-fitness","config":{{"deliver_subject":"{deliver}","durable_name":"push","deliver_policy":"all","ack_policy":"none"}}}}"#
        );
        self.ask("push consumer", "$JS.API.CONSUMER.DURABLE.CREATE.eggroll-run-fitness.push", &push).await;
        self.ask(
            "push consumer",
            "$JS.API.CONSUMER.CREATE.eggroll-run-fitness",
            &push.replace(r#""durable_name":"push","#, ""),
        )
        .await;
        let pull = r#"{"stream_name":"eggroll-run-results","config":{"durable_name":"pull","ack_policy":"explicit"}}"#;
        self.ask("pull consumer", "$JS.API.CONSUMER.DURABLE.CREATE.eggroll-run-results.pull", pull).await;
        self.say("others' work", "$JS.API.CONSUMER.MSG.NEXT.eggroll-run-results.pull", Some(&deliver), b"8").await;
        for place in 1..20 {
            let acknowledge = format!("$JS.ACK.eggroll-run-results.pull.1.{place}.{place}.1700000000000000000.0");
            self.say("others' acknowledgements", &acknowledge, None, b"+ACK").await;
        }
        for stream in ["results", "fitness"] {
            let names =
                self.ask("names of consumers", &format!("$JS.API.CONSUMER.NAMES.eggroll-run-{stream}"), "").await;
            let names: serde_json::Value =
                names.and_then(|names| serde_json::from_str(&names).ok()).unwrap_or_default();
            let found = names["consumers"].as_array().into_iter().flatten().filter_map(|name| name.as_str());
            for consumer in found.chain(["invented"]) {
                let subject = format!("$JS.API.CONSUMER.DELETE.eggroll-run-{stream}.{consumer}");
                self.ask("others' consumers", &subject, "").await;
            }
        }
        if destroys {
            self.ask("message", "$JS.API.STREAM.MSG.DELETE.eggroll-run-fitness", r#"{"seq":1}"#).await;
            self.ask("purge", "$JS.API.STREAM.PURGE.eggroll-run-fitness", "").await;
            let stream = r#"{"name":"mine","subjects":["mine"],"storage":"memory"}"#;
            self.ask("another stream", "$JS.API.STREAM.CREATE.mine", stream).await;
            self.ask("stream", "$JS.API.STREAM.DELETE.eggroll-run-fitness", "").await;
        }
    }

    /// Takes work, and answers it with what no rank shaping would notice: 10¹⁸, NaN, scores out of range, and failures that are none.
    async fn lie(&self, work: &Work) {
        let scores = |score: f32| vec![score; work.members as usize];
        let of =
            |scores: Vec<f32>| SliceResult::new(work, work.digest.clone(), &Fitness::from(scores)).encode(&self.run);
        let lies = [
            of(scores(1e18)),
            of(scores(f32::NAN)),
            of(scores(0.5)),
            Failed::new(Held::from(work), "\x1b[2J it does not work").encode(&self.run),
            self.run.0.to_vec(),
        ];
        let lie = lies[work.slice as usize % lies.len()].clone();
        self.say("scores of 1e18", &subject(&format!("result.{NAME}")), None, &self.key.seal(NAME, lie)).await;
    }

    /// All of it, until the run is over.
    async fn attack(&self, is_over: &AtomicBool, destroys: bool) {
        self.overhear().await;
        let mut offers = self.client.subscribe(subject(&format!("work.{NAME}"))).await.expect("may hear its work");
        while !is_over.load(Ordering::Relaxed) {
            let status = Status { leaving: false, held: Vec::new() }.encode(&self.run);
            self.say("status", &subject(&format!("status.{NAME}")), None, &self.key.seal(NAME, status)).await;
            self.speak_as_others().await;
            self.answer_elsewhere().await;
            self.ask_the_server(destroys).await;
            while let Ok(Some(message)) = tokio::time::timeout(Duration::from_millis(30), offers.next()).await {
                let work = self.key.open(&message.payload).and_then(|bytes| Work::decode(bytes, &self.run).ok());
                let Some(work) = work else { continue };
                self.tally.lock().expect("no panic").offers += 1;
                // What the coordinator has signed, for another.
                self.say("work that was heard", &subject(&format!("work.{VICTIM}")), None, &message.payload).await;
                self.say("work that was heard", &subject("fitness"), None, &message.payload).await;
                self.lie(&work).await;
            }
        }
    }
}

fn work(generation: u64, slice: u32) -> Work {
    Work { generation, slice, first: 4 * slice, members: 4, attempt: 0, digest: None }
}

/// The password of a user of these tests.
fn password(user: &str) -> String {
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
    crate::nodes::work::<Ranked>(config, |model, members| {
        std::thread::sleep(Duration::from_millis(25));
        Ok(model.fitness(members))
    })
}

/// What holds whatever the server allows: keys.
fn check_keys(counts: &Counts, tally: &Tally) {
    assert_eq!(counts.ignored, BTreeSet::from([NAME.to_owned()]), "the liar alone");
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
    // Z-scores: one of 10¹⁸ is the estimate.
    let strategy = Net::strategy().init(&Net::start());
    let refused = Coordinator::connect(untrusted(&server, "coordinator", false), &strategy).map(drop);
    assert!(matches!(&refused, Err(NatsError::Shaping { found }) if found == "ZScore"), "{refused:?}");
    let trusted = NatsConfig { trust: Trust::Trusted, ..untrusted(&server, "coordinator", false) };
    assert!(Coordinator::connect(trusted, &strategy).is_ok(), "canary");
}
