//! Signals: what a stopped run says, how it is ended at once, and which signals are left alone.

use super::support::{Place, Running, SMALL, example, is_ignored, run, signal, wait_until_watched};
use eggroll_examples::interrupt::checkpoints_in;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// More generations than there is time for.
const LONG: [&str; 2] = ["--generations", "10000000"];
/// A generation of a billion steps.
const ENDLESS: [&str; 6] = ["--population", "64", "--hidden", "4", "--episodes", "65536"];

fn digest(result: &Value) -> String {
    result["parameter_digest"].as_str().expect("a digest").to_owned()
}

/// Each of the three signals stops a run: status 75, `"stopped": true` and a checkpoint, from which the run continues bit for bit.
#[test]
fn a_stopped_run_says_so_and_goes_on() {
    for signal in ["INT", "TERM", "HUP"].into_iter().filter(|name| !is_ignored(name)) {
        let place = Place::new();
        let generations = ["--generations", "6000"];
        let running = Running::start(&mut place.mnist(&generations), &place);
        running.wait_for("\n        50 ");
        running.signal(signal);
        let stopped = running.end();
        assert_eq!(stopped.status, 75, "{signal}: {stopped:?}");
        assert_eq!(stopped.result()["stopped"], true);
        assert!(stopped.errors.contains(&format!("SIG{signal}: stopping after this generation")), "{stopped:?}");
        assert!(fs::read_dir(place.path("out/checkpoints")).expect("a folder").count() > 0);

        let resumed = run(&mut place.mnist_resumed(), &place);
        assert_eq!(resumed.status, 0, "{resumed:?}");
        assert!(resumed.output.contains("continuing after generation"), "{resumed:?}");
        assert_eq!(resumed.result()["stopped"], false);
        let whole = run(place.mnist(&generations).args(["--seed", "0"]), &place);
        assert_eq!(digest(&whole.result()), digest(&resumed.result()));
        assert_ne!(digest(&whole.result()), digest(&stopped.result()), "canary: the run was over before the signal");
    }
}

/// Programs without checkpoints say it too.
#[test]
fn every_example_says_that_it_was_stopped() {
    let place = Place::new();
    let (digits, out, text) = (place.digits(), place.path("out"), place.text());
    let small = ["--population", "8", "--hidden", "4"];
    let control = [&small[..], &["--out", &out, "--seeds", "100000", "--budget", "100000000"]].concat();
    let cases: [(&str, &[&str], &str); 10] = [
        (
            "char_lm",
            &["--data", &text, "--out", &out, "--population", "8", "--width", "8", "--validate-every", "10"],
            "\n        10 ",
        ),
        ("cartpole", &control, "noiser"),
        ("pendulum", &control, "noiser"),
        ("memory", &control, "noiser"),
        ("classic", &control, "noiser"),
        ("cartpole", &["--throughput", "--seconds", "1000", "--population", "8"], ""),
        ("mnist", &["--compare", &digits, "--batch", "4", "--population", "131072"], ""),
        ("finetune", &[&digits, "--hidden", "4", "--batch", "4", "--epochs", "1000000"], ""),
        ("soak", &["--generations", "10000000", "--population", "4"], ""),
        ("throughput", &["--sizes", "small", "--populations", "8", "--seconds", "1000"], ""),
    ];
    for (program, arguments, words) in cases {
        let _ = fs::remove_dir_all(&out);
        let running = Running::start(Command::new(example(program)).args(arguments), &place);
        running.wait_for(words);
        wait_until_watched(running.id());
        running.signal("TERM");
        let ended = running.end();
        assert_eq!(ended.status, 75, "{program} {arguments:?}: {ended:?}");
        assert_eq!(ended.result()["stopped"], true, "{program}");
    }
}

#[test]
fn measurements_say_that_they_were_stopped() {
    let place = Place::new();
    let (digits, out) = (place.digits(), place.path("out"));
    let cases: [(&str, &[&str]); 2] = [
        ("paper_setting", &["--width", "16", "--batch", "8", "--dtype", "f32", "--seconds", "1000"]),
        (
            "backend_comparison",
            &["--data", &digits, "--out", &out, "--size", "small", "--population", "8", "--seconds", "1000"],
        ),
    ];
    for (program, arguments) in cases {
        let running = Running::start(Command::new(example(program)).args(arguments), &place);
        wait_until_watched(running.id());
        running.signal("TERM");
        let ended = running.end();
        assert_eq!((ended.status, &ended.result()["stopped"]), (75, &Value::Bool(true)), "{program}: {ended:?}");
    }
}

/// The end of its time is the end of a run.
#[test]
fn a_spent_limit_is_no_stop() {
    let place = Place::new();
    let mut command = Command::new(example("char_lm"));
    command.args(["--data", &place.text(), "--out", &place.path("out"), "--population", "8", "--width", "8"]);
    let ended = run(command.args(["--seconds", "0.3"]), &place);
    assert_eq!((ended.status, &ended.result()["stopped"]), (0, &Value::Bool(false)), "{ended:?}");
}

/// A run whose generation does not end soon.
fn endless(place: &Place) -> Command {
    let mut command = Command::new(example("pendulum"));
    command.args(ENDLESS).args(["--out", &place.path("out")]);
    command
}

#[test]
fn a_second_signal_ends_a_run_at_once() {
    for (second, status) in
        [("INT", 130), ("TERM", 143), ("HUP", 129)].into_iter().filter(|(name, _)| !is_ignored(name))
    {
        let place = Place::new();
        let running = Running::start(&mut endless(&place), &place);
        running.wait_for("generation  seconds");
        running.signal("TERM");
        running.wait_for("SIGTERM: stopping");
        running.signal(second);
        let ended = running.end();
        assert_eq!(ended.status, status, "{ended:?}");
        assert!(ended.errors.contains(&format!("SIG{second}: ended at once; nothing is kept")), "{ended:?}");
    }
}

/// One signal is enough for what sends only one: `timeout`, `docker stop`.
#[test]
fn a_generation_that_does_not_end_has_a_deadline() {
    let place = Place::new();
    let running = Running::start(endless(&place).env("EGGROLL_GRACE_SECONDS", "0.5"), &place);
    running.wait_for("generation  seconds");
    running.signal("TERM");
    let ended = running.end();
    assert_eq!(ended.status, 143, "{ended:?}");
    let words = "SIGTERM: not ended within 0.5 s (EGGROLL_GRACE_SECONDS), so at once; nothing is kept of the run";
    assert!(ended.errors.contains(words), "{ended:?}");
}

/// What is kept is named: the latest checkpoint, or that there is none.
#[test]
fn an_end_at_once_names_the_latest_checkpoint() {
    let place = Place::new();
    let kept = checkpoints_in(Path::new(&place.path("out")));
    assert!(kept().ends_with("out has no checkpoint: the run is lost"), "{}", kept());
    let ended = run(&mut place.mnist(&["--generations", "60"]), &place);
    assert_eq!(ended.status, 0, "{ended:?}");
    let words = kept();
    assert!(
        words.starts_with("kept: ") && words.contains("60; what came later is lost. Continue with --resume"),
        "{words}"
    );
}

#[test]
fn a_wrong_grace_is_named() {
    for wrong in ["-1", "soon", "NaN", "1e300", ""] {
        let place = Place::new();
        let ended = run(place.mnist(&["--generations", "2"]).env("EGGROLL_GRACE_SECONDS", wrong), &place);
        assert_eq!(ended.status, 0);
        let words = format!("warning: EGGROLL_GRACE_SECONDS must be a number of seconds, not {wrong:?}");
        assert!(ended.errors.contains(&words), "{ended:?}");
    }
}

/// `nohup` ignores HUP, a shell without job control INT of what it runs in the background: both stay ignored.
#[test]
fn ignored_signals_stay_ignored() {
    let place = Place::new();
    let mnist = example("mnist");
    for (start, signal) in [("exec nohup \"$0\" \"$@\"", "HUP"), ("trap '' INT; exec \"$0\" \"$@\"", "INT")] {
        let _ = fs::remove_dir_all(place.path("out"));
        let mut command = Command::new("sh");
        command.args(["-c", start]).arg(&mnist).arg(place.digits()).args(SMALL);
        command.args(["--generations", "3000", "--out", &place.path("out")]);
        let running = Running::start(&mut command, &place);
        running.wait_for("\n        50 ");
        running.signal(signal);
        running.signal(signal);
        let ended = running.end();
        assert_eq!((ended.status, &ended.result()["stopped"]), (0, &Value::Bool(false)), "{signal}: {ended:?}");
        assert!(!ended.errors.contains("stopping"), "{ended:?}");
    }
}

/// A trace is complete whether a run stops after its generation or at once.
#[test]
fn a_trace_is_complete_after_each() {
    for second in [false, true] {
        let place = Place::new();
        let trace = place.path("trace.json");
        let mut command = match second {
            false => place.mnist(&LONG),
            true => endless(&place),
        };
        let running = Running::start(command.args(["--trace", &trace]), &place);
        running.wait_for("generation  seconds");
        std::thread::sleep(Duration::from_millis(50));
        running.signal("TERM");
        if second {
            running.wait_for("SIGTERM: stopping");
            running.signal("TERM");
        }
        let ended = running.end();
        assert_eq!(ended.status, if second { 143 } else { 75 }, "{ended:?}");
        let text = fs::read_to_string(&trace).expect("a trace");
        let trace: Value = serde_json::from_str(&text).expect("complete");
        assert!(trace["summary"].is_object());
    }
}

/// A trial that is stopped from outside has no record: the sweep says so, and the next call runs it again.
#[test]
fn a_sweep_runs_a_stopped_trial_again() {
    let place = Place::new();
    let file = place.path("sweep.toml");
    let (digits, mnist) = (place.digits(), example("mnist"));
    let small = SMALL.map(|word| format!("'{word}'")).join(", ");
    // A shell that says who it is becomes the trial.
    let id = place.path("id");
    let text = format!(
        "command = ['sh', '-c', 'echo $$ > {id}; exec \"$0\" \"$@\"', '{}', '{digits}', {small}, '--generations', '20000',\n\
         '--out', '{{folder}}', '--lr', '{{lr}}']\n\
         objective = 'test_accuracy'\n[parameters]\nlr = [0.01]\n",
        mnist.display()
    );
    fs::write(&file, &text).expect("writes");
    let sweep = || {
        let mut command = Command::new(example("sweep"));
        command.args([&file, "--out", &place.path("sweep")]);
        command
    };
    let running = Running::start(&mut sweep(), &place);
    running.wait_until("a trial", || fs::read_to_string(&id).is_ok_and(|id| id.ends_with('\n')));
    let trial: u32 = fs::read_to_string(&id).expect("reads").trim().parse().expect("a number");
    wait_until_watched(trial);
    signal(trial, "TERM");
    let ended = running.end();
    assert_eq!(ended.status, 75, "{ended:?}");
    assert_eq!(ended.result()["stopped"], true);
    assert_eq!(ended.result()["pending"], 1, "{ended:?}");
    assert!(ended.output.contains("stopped, the next call runs it again"), "{ended:?}");

    let again = run(&mut sweep(), &place);
    assert!(again.output.contains(" 1 of them to run"), "{again:?}");
    assert_eq!((again.status, &again.result()["finished"]), (0, &Value::from(1)), "{again:?}");
    assert_eq!(again.result()["stopped"], false);
}
