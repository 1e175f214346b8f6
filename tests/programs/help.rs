//! What the examples say of themselves.

use super::support::example;
use std::process::Command;

/// The text of `--help`.
pub fn help(program: &str) -> String {
    let output = Command::new(example(program)).arg("--help").output().expect("runs");
    assert!(output.status.success(), "{program}");
    String::from_utf8(output.stdout).expect("text")
}

/// The long options that have a value.
pub fn options(program: &str) -> Vec<String> {
    let text = help(program);
    let words = text.lines().filter_map(|line| line.trim_start().strip_prefix("--")?.split_once(" <"));
    words.map(|(name, _)| format!("--{name}")).collect()
}

/// One command line for all tasks of control.
#[test]
fn tasks_of_control_share_their_options() {
    let of_cartpole = options("cartpole");
    for (program, own) in [("classic", &["--env"][..]), ("memory", &["--cues", "--delay"]), ("pendulum", &[])] {
        let mut found = options(program);
        found.retain(|option| !own.contains(&option.as_str()));
        assert_eq!(found, of_cartpole, "{program}");
    }
}

/// Who stops a run finds the status and the deadline where the options are.
#[test]
fn help_tells_of_signals() {
    for program in ["mnist", "char_lm", "cartpole", "classic", "memory", "pendulum"] {
        let text = help(program);
        assert!(text.contains("exit status 75") && text.contains("EGGROLL_GRACE_SECONDS"), "{program}: {text}");
    }
}
