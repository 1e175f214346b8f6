//! Runs of every kind, ended at a random moment, gently or not: each continues to the digests of the run that nobody ended.

use super::support::{Ended, OutputFolder, Running, SMALL, example};
use serde_json::Value;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const TEXT: [&str; 16] = [
    "--width",
    "16",
    "--seq",
    "16",
    "--population",
    "16",
    "--generations",
    "60",
    "--validate-every",
    "15",
    "--checkpoint-every",
    "10",
    "--validation-bytes",
    "500",
    "--samples",
    "0",
];
const LANGUAGE_MODEL: [&str; 9] =
    ["--population", "4", "--prompts", "2", "--evaluate-every", "2", "--steps", "4", "--no-measure"];

/// How a run is begun and continued.
struct Kind {
    example: &'static str,
    begin: Vec<String>,
    resume: Vec<String>,
}

impl Kind {
    fn command(&self, words: &[String], out: &str) -> Command {
        let mut command = Command::new(example(self.example));
        command.args(words).args(["--out", out]);
        command
    }
}

fn kinds(place: &OutputFolder) -> Vec<Kind> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let digits = place.digits();
    let mnist = |settings: &[&str], devices: &[&str]| Kind {
        example: "mnist",
        begin: words(&[&[digits.as_str()], &SMALL[..], settings, devices].concat()),
        resume: words(&[&[digits.as_str(), "--resume"], devices].concat()),
    };
    let text = |settings: &[&str]| Kind {
        example: "char_lm",
        begin: words(&[&TEXT[..], settings].concat()),
        resume: words(&["--resume", "--samples", "0"]),
    };
    let mut kinds = vec![
        mnist(&["--generations", "5000"], &[]),
        mnist(&["--generations", "5000", "--noiser", "q-eggroll"], &[]),
        // Two replicas, each a thread.
        mnist(&["--generations", "3000"], &["--devices", "flex,flex"]),
        text(&["--layers", "1"]),
        text(&["--model", "transformer", "--layers", "1"]),
        text(&["--model", "gru", "--layers", "1", "--decay", "60"]),
        text(&["--model", "float-transformer", "--layers", "1", "--decay", "60"]),
    ];
    // The model of scripts/smollm2.
    if std::env::var_os("EGGROLL_REQUIRE_SMOLLM2").is_some() {
        kinds.push(Kind {
            example: "llm",
            begin: words(&LANGUAGE_MODEL),
            resume: words(&["--resume", "--no-measure"]),
        });
    }
    kinds
}

/// What a run has made: the digests of its result.
fn digests(ended: &Ended) -> BTreeMap<String, Value> {
    let Value::Object(result) = ended.result() else { panic!("no object: {ended:?}") };
    let digests: BTreeMap<_, _> = result.into_iter().filter(|(key, _)| key.ends_with("digest")).collect();
    assert!(digests.contains_key("parameter_digest"), "{digests:?}");
    digests
}

/// A number of 0 to 1, another one each time.
fn random() -> f64 {
    RandomState::new().hash_one(0) as f64 / u64::MAX as f64
}

#[test]
fn runs_of_every_kind_continue_bit_for_bit() {
    let place = OutputFolder::new();
    for (index, kind) in kinds(&place).into_iter().enumerate() {
        let begun = Instant::now();
        let whole =
            Running::start(&mut kind.command(&kind.begin, &place.path(&format!("whole-{index}"))), &place).end();
        let moment = begun.elapsed().mul_f64(random());
        let signal = if random() < 0.5 { "TERM" } else { "KILL" };
        let name = format!("{} {:?}, {signal} after {moment:?}", kind.example, kind.begin);
        assert_eq!(whole.status, 0, "{name}: {whole:?}");

        let out = place.path(&format!("stopped-{index}"));
        let mut running = Running::start(&mut kind.command(&kind.begin, &out), &place);
        running.signal_after(moment, signal);
        let stopped = running.end();
        println!("{name}: status {}", stopped.status);
        assert!(matches!(stopped.status, 0 | 75 | 137 | 143), "{name}: {stopped:?}");
        // Canary: what is there before the end has other digests.
        if stopped.status == 75 && stopped.output.contains("RESULT") {
            assert_ne!(digests(&stopped), digests(&whole), "{name}");
        }
        let words = if Path::new(&out).join("settings.json").exists() { &kind.resume } else { &kind.begin };
        let resumed = Running::start(&mut kind.command(words, &out), &place).end();
        assert_eq!(resumed.status, 0, "{name}: {resumed:?}");
        assert_eq!(digests(&resumed), digests(&whole), "{name}");
    }
}

/// Images of noise: what is right of them stops growing soon. Without patience the run continues.
#[test]
fn a_run_stops_early_and_continues() {
    let place = OutputFolder::new();
    let generations = ["--generations", "3000"];
    let early = Running::start(place.mnist(&generations).args(["--patience", "3"]), &place).end();
    assert_eq!((early.status, &early.result()["stopped"]), (0, &Value::Bool(false)), "{early:?}");
    assert!(early.output.contains(": no better result in 3 validations"), "{early:?}");
    let resume = [&place.digits(), "--resume", "--out", &place.path("out")].map(str::to_owned);
    let resumed = Running::start(Command::new(example("mnist")).args(resume), &place).end();
    assert!(resumed.errors.contains("early_stopping"), "{resumed:?}");
    let whole = OutputFolder::new();
    let whole = Running::start(&mut whole.mnist(&generations), &whole).end();
    assert_eq!(digests(&resumed), digests(&whole));
    assert_ne!(digests(&early), digests(&whole), "canary");
}
