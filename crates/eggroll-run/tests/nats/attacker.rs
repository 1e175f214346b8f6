//! A worker that tries everything that it can think of.

use crate::hostile::{Ranked, password};
use crate::nodes::*;
use crate::support::LearningModel;
use async_nats::{Client, ConnectOptions, Event};
use eggroll_run::distribution::nats::protocol::*;
use eggroll_run::distribution::nats::{NatsAuth, NatsConfig, WorkerKey};
use eggroll_train::*;
use futures_util::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What came of the attacks, by their names.
#[derive(Debug, Default)]
pub struct Tally {
    pub tried: BTreeSet<&'static str>,
    /// Requests that the server has answered without an error.
    pub answered: BTreeMap<&'static str, String>,
    /// Subjects of what the attacker has heard, and was not for it.
    pub heard: BTreeSet<String>,
    /// Subjects that the server has refused.
    pub violations: BTreeSet<String>,
    /// Offers that it was given.
    pub offers: u32,
}

pub struct Attacker {
    client: Client,
    key: WorkerKey,
    run: RunId,
    tally: Arc<Mutex<Tally>>,
}

pub const NAME: &str = "w1";
pub const VICTIM: &str = "w2";

fn subject(what: &str) -> String {
    format!("eggroll.{RUN}.{what}")
}

impl Attacker {
    pub async fn connect(config: &NatsConfig, tally: Arc<Mutex<Tally>>) -> Self {
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
                    // What the server answers it, wherever it asked to have that.
                    let headers = message.headers.as_ref();
                    let is_answer = message.payload.starts_with(b"{\"")
                        || message.status.is_some()
                        || headers.is_some_and(|headers| headers.get("Nats-Stream").is_some());
                    if !from_itself && !is_request && !is_answer {
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
                // An answer that there is nothing, to be taken for the server's when it is read.
                self.say(name, get, Some(target), br#"{"seq":1000000000,"next_by_subj":">"}"#).await;
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
            Failed::new(work.held(), "\x1b[2J it does not work").encode(&self.run),
            self.run.0.to_vec(),
        ];
        let lie = lies[work.slice as usize % lies.len()].clone();
        self.say("scores of 1e18", &subject(&format!("result.{NAME}")), None, &self.key.seal(NAME, lie)).await;
    }

    /// All of it, until the run is over.
    pub async fn attack(&self, is_over: &AtomicBool, destroys: bool) {
        self.overhear().await;
        let mut offers = self.client.subscribe(subject(&format!("work.{NAME}"))).await.expect("may hear its work");
        while !is_over.load(Ordering::Relaxed) {
            let status = Status { leaving: false, held: Vec::new() }.encode(&self.run);
            self.say("status", &subject(&format!("status.{NAME}")), None, &self.key.seal(NAME, status)).await;
            self.speak_as_others().await;
            self.answer_elsewhere().await;
            self.ask_the_server(destroys).await;
            // It is no flood that is tried here: that costs time, as the page says.
            tokio::time::sleep(Duration::from_millis(800)).await;
            while let Ok(Some(message)) = tokio::time::timeout(Duration::from_millis(30), offers.next()).await {
                let work =
                    self.key.open_work(NAME, &message.payload).and_then(|bytes| Work::decode(bytes, &self.run).ok());
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
