//! Runs of every kind are ended at a random moment, by TERM or KILL. Each continues to the digests of an uninterrupted run.

use super::support::{Ended, OutputFolder, Running, SMALL, example, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const TEXT: [&str; 15] = [
    "--width",
    "16",
    "--layers",
    "1",
    "--seq",
    "16",
    "--population",
    "16",
    "--validate-every",
    "15",
    "--checkpoint-every",
    "10",
    "--validation-bytes",
    "500",
    "--samples=0",
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
    fn run(&self, words: &[String], out: &str, place: &OutputFolder) -> Running {
        Running::start(Command::new(example(self.example)).args(words).args(["--out", out]), place)
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
        begin: words(&[&TEXT[..], &["--generations", "60"], settings].concat()),
        resume: words(&["--resume", "--samples=0"]),
    };
    let mut kinds = vec![
        mnist(&["--generations", "5000"], &[]),
        mnist(&["--generations", "5000", "--noiser", "q-eggroll"], &[]),
        // Two replicas, each a thread.
        mnist(&["--generations", "3000"], &["--devices", "flex,flex"]),
        text(&[]),
        text(&["--model", "transformer"]),
        // It learns: it has no reason to stop early.
        text(&["--model", "gru", "--decay", "60", "--patience", "2"]),
        text(&["--model", "float-transformer", "--decay", "60"]),
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

/// Whether the run in a folder has anything to continue from: a checkpoint, or a step of a language model in its output.
fn has_saved(out: &str, stopped: &Ended) -> bool {
    let checkpoints = std::fs::read_dir(Path::new(out).join("checkpoints")).into_iter().flatten().flatten();
    let mut names = checkpoints.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.any(|name| name.starts_with("generation-")) || stopped.output.contains("\nstep 1,")
}

#[test]
fn runs_of_every_kind_continue_bit_for_bit() {
    let place = OutputFolder::new();
    for (index, kind) in kinds(&place).into_iter().enumerate() {
        let begun = Instant::now();
        let whole = kind.run(&kind.begin, &place.path(&format!("whole-{index}")), &place).end();
        let share = random();
        let moment = begun.elapsed().mul_f64(share);
        let (signal, statuses) = if random() < 0.5 { ("TERM", [75, 143]) } else { ("KILL", [137, 137]) };
        let name = format!("{} {:?}, {signal} after {moment:?}", kind.example, kind.begin);
        assert!(whole.status == 0 && !whole.output.contains("stopped early"), "{name}: {whole:?}");

        let out = place.path(&format!("stopped-{index}"));
        let mut running = kind.run(&kind.begin, &out, &place);
        running.signal_after(moment, signal);
        let stopped = running.end();
        println!("{name}: status {}", stopped.status);
        if stopped.status == 0 {
            assert_eq!(digests(&stopped), digests(&whole), "{name}: it was at its end");
            continue;
        }
        assert!(statuses.contains(&stopped.status), "{name}: {stopped:?}");
        if stopped.status == 75 && stopped.output.contains("RESULT") {
            assert_eq!(stopped.result()["stopped"], true, "{name}");
            assert!(share > 0.8 || digests(&stopped) != digests(&whole), "canary: {name}");
        }
        let has_begun = Path::new(&out).join("settings.json").exists();
        let continues = has_saved(&out, &stopped) && !stopped.output.contains("stopped after generation 0:");
        let resumed = kind.run(if has_begun { &kind.resume } else { &kind.begin }, &out, &place).end();
        assert_eq!(resumed.status, 0, "{name}: {resumed:?}");
        assert_eq!(digests(&resumed), digests(&whole), "{name}");
        assert!(!continues || resumed.output.contains("continuing after"), "{name}: it began again, {resumed:?}");
    }
}

/// Fewer generations first, then all of them.
#[test]
fn limits_change_when_a_run_continues() {
    let place = OutputFolder::new();
    let text = |more: &[&str], out: &str| {
        let mut command = Command::new(example("char_lm"));
        Running::start(command.args(more).args(["--out", &place.path(out)]), &place).end()
    };
    let begin = |generations: &'static str, out: &str| {
        text(&[&TEXT[..], &["--decay", "30", "--generations", generations]].concat(), out)
    };
    let (whole, first) = (begin("30", "whole"), begin("17", "first"));
    let all = text(&["--resume", "--samples=0", "--generations", "30"], "first");
    assert_eq!(digests(&all), digests(&whole));
    assert_ne!(digests(&first), digests(&whole), "canary");
}

/// Of images of noise: accuracy soon stops rising. Without patience the run continues.
#[test]
fn a_run_stops_early_and_continues() {
    let place = OutputFolder::new();
    let generations = ["--generations", "3000"];
    let early = run(place.mnist(&generations).args(["--patience", "3"]), &place);
    assert_eq!((early.status, &early.result()["stopped"]), (0, &Value::Bool(false)), "{early:?}");
    assert!(early.output.contains(": no better result in 3 validations"), "{early:?}");
    let resume = [&place.digits(), "--resume", "--out", &place.path("out")].map(str::to_owned);
    let resumed = run(Command::new(example("mnist")).args(resume), &place);
    assert_eq!((resumed.status, &resumed.result()["stopped"]), (0, &Value::Bool(false)), "{resumed:?}");
    assert!(resumed.errors.contains("early_stopping"), "{resumed:?}");
    let whole = OutputFolder::new();
    let whole = run(&mut whole.mnist(&generations), &whole);
    assert_eq!(digests(&resumed), digests(&whole));
    assert_ne!(digests(&early), digests(&whole), "canary");
}
