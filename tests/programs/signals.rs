//! How a run is stopped: with a checkpoint from which it continues bit for bit, or at once.

use super::support::{OutputFolder, Running, SMALL, example, run};
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

#[test]
fn a_stopped_run_continues_bit_for_bit() {
    let place = OutputFolder::new();
    let generations = ["--generations", "6000"];
    let running = Running::start(&mut place.mnist(&generations), &place);
    running.wait_for("\n        50 ");
    running.signal("TERM");
    let stopped = running.end();
    assert_eq!((stopped.status, &stopped.result()["stopped"]), (75, &Value::Bool(true)), "{stopped:?}");
    assert!(stopped.errors.contains("SIGTERM: stopping after this generation"), "{stopped:?}");

    let resume = [&place.digits(), "--resume", "--out", &place.path("out")].map(str::to_owned);
    let resumed = run(Command::new(example("mnist")).args(resume), &place);
    assert_eq!((resumed.status, &resumed.result()["stopped"]), (0, &Value::Bool(false)), "{resumed:?}");
    let whole = run(&mut place.mnist(&generations), &place).result();
    assert_eq!(whole["parameter_digest"], resumed.result()["parameter_digest"]);
    assert_ne!(whole["parameter_digest"], stopped.result()["parameter_digest"], "canary: over before the signal");
}

/// A second signal, or the deadline after the first, ends a generation that would not end.
#[test]
fn a_run_is_ended_at_once() {
    // A generation of a billion steps.
    let endless = ["--population", "64", "--hidden", "4", "--episodes", "65536"];
    for (grace, words) in [("600", "SIGTERM: ended at once"), ("0.5", "SIGTERM: not ended within 0.5 s")] {
        let place = OutputFolder::new();
        let mut command = Command::new(example("pendulum"));
        command.args(endless).args(["--out", &place.path("out")]).env("EGGROLL_GRACE_SECONDS", grace);
        let running = Running::start(&mut command, &place);
        running.wait_for("generation  seconds");
        // The first generation begins a moment after the header.
        sleep(Duration::from_secs(3));
        running.signal("TERM");
        if grace == "600" {
            running.wait_for("SIGTERM: stopping");
            running.signal("TERM");
        }
        let ended = running.end();
        assert!(ended.status == 143 && ended.errors.contains(words), "{ended:?}");
        assert!(ended.errors.contains("nothing is kept of the run"), "{ended:?}");
    }
}

/// `nohup` ignores HUP, a shell without job control INT of its background jobs: both stay ignored.
#[test]
fn ignored_signals_stay_ignored() {
    for signal in ["HUP", "INT"] {
        let place = OutputFolder::new();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("trap '' {signal}; exec \"$0\" \"$@\"")]).arg(example("mnist"));
        command.arg(place.digits()).args(SMALL).args(["--generations", "3000", "--out", &place.path("out")]);
        let running = Running::start(&mut command, &place);
        running.wait_for("\n        50 ");
        running.signal(signal);
        running.signal(signal);
        let ended = running.end();
        assert_eq!((ended.status, &ended.result()["stopped"]), (0, &Value::Bool(false)), "{signal}: {ended:?}");
    }
}

/// `mnist … | grep -m 1` ends quietly with the status of a closed pipe, and with a checkpoint; a full disk is an error.
#[test]
fn a_closed_output_ends_a_run_quietly() {
    let place = OutputFolder::new();
    let script = "\"$0\" \"$@\" | grep -m 1 \"^ *50 \" > /dev/null; echo \"${PIPESTATUS[0]}\"";
    let mut command = Command::new("bash");
    command.args(["-c", script]).arg(example("mnist")).arg(place.digits()).args(SMALL);
    let ended = run(command.args(["--generations", "3000", "--out", &place.path("out")]), &place);
    assert_eq!(ended.output, "141\n", "{ended:?}");
    assert!(!ended.errors.contains("panicked") && !ended.errors.contains("Broken pipe"), "{ended:?}");
    assert!(fs::read_dir(place.path("out/checkpoints")).expect("a folder").count() > 0);
    if cfg!(target_os = "linux") {
        let full = fs::File::options().write(true).open("/dev/full").expect("Linux");
        let output = place.mnist(&["--generations", "3"]).stdout(full).output().expect("runs");
        assert_ne!(output.status.code(), Some(141));
        assert!(String::from_utf8_lossy(&output.stderr).contains("No space left on device"));
    }
}
