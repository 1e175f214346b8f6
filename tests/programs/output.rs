//! A standard output that nobody reads any more.

use super::support::{Place, SMALL, example};
use std::fs;
use std::process::Command;

/// `mnist … | grep -m 1` ends quietly, as programs do that PIPE ends, and with a checkpoint.
#[test]
fn a_closed_output_ends_a_run_quietly() {
    let place = Place::new();
    let script = "\"$0\" \"$@\" | grep -m 1 \"^ *50 \" > /dev/null; echo \"${PIPESTATUS[0]}\"";
    let mut command = Command::new("bash");
    command.args(["-c", script]).arg(example("mnist")).arg(place.digits()).args(SMALL);
    let output = command.args(["--generations", "3000", "--out", &place.path("out")]).output().expect("bash");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "141\n");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("panicked") && !errors.contains("Broken pipe"), "{errors}");
    let saved = fs::read_dir(place.path("out/checkpoints")).expect("a folder");
    assert!(saved.count() > 0, "the generations before are saved");
}

/// What was set stands in lines that fit a terminal, and numbers of the table have no sign of their own at 0.
#[test]
fn settings_are_short_lines() {
    let place = Place::new();
    let text = place.text();
    let mnist = place.mnist(&["--generations", "3"]).output().expect("runs");
    let small =
        ["--width", "8", "--seq", "8", "--population", "8", "--generations", "2", "--samples", "0", "--data", &text];
    let char_lm =
        Command::new(example("char_lm")).args(small).args(["--out", &place.path("texts")]).output().expect("runs");
    for (output, set) in [(mnist, "population 8"), (char_lm, "width 8")] {
        let text = String::from_utf8(output.stdout).expect("text");
        let settings: Vec<&str> = text.lines().take_while(|line| !line.contains("#  parameter")).collect();
        assert!(settings.len() > 2 && settings.iter().all(|line| line.chars().count() <= 80), "{text}");
        let words = settings.join(" ");
        assert!(words.contains(set) && !words.contains(['{', '"', '(']) && words.contains("seed 0"), "{words}");
    }
}

/// A full disk is an error, not a reader that has gone.
#[test]
#[cfg(target_os = "linux")]
fn a_full_output_is_no_closed_one() {
    let place = Place::new();
    let full = fs::File::options().write(true).open("/dev/full").expect("Linux");
    let mut command = place.mnist(&["--generations", "3"]);
    let output = command.stdout(full).output().expect("runs");
    assert_ne!(output.status.code(), Some(141));
    assert!(String::from_utf8_lossy(&output.stderr).contains("No space left on device"));
}
