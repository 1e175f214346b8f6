//! Files that are replaced: by any name, next to each other, and when a write fails.

use crate::reliability::support::{child, layer};
use burn::optim::AdamConfig;
use eggroll_core::EggrollConfig;
use eggroll_nn::Linear;
use eggroll_run::Error;
use eggroll_run::*;
use eggroll_train::*;
use serde_json::json;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Set for a child process: it runs in the folder that it is about.
const CHILD: &str = "EGGROLL_TEST_FILES_CHILD";

/// Runs the test `name` of this file as a child in `folder`: by `shell`, which is to run `"$@"`.
fn run_in(folder: &Path, name: &str, shell: &str) -> Output {
    let mut command = child(&["sh", "-c", shell, "sh"], &format!("reliability::files::{name}"));
    command.current_dir(folder).env(CHILD, "yes").output().expect("starts")
}

#[track_caller]
fn passed(output: &Output) {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("1 passed"), "canary: no such test");
}

fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// The names of a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn strategy(model: &Linear) -> EvolutionStrategy {
    EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_population_size(2).init(model)
}

/// Logs and checkpoints whose path is a bare name, or the empty one, of a process in this folder.
#[test]
fn child_with_bare_names() {
    if !is_child() {
        return;
    }
    for generation in 0..3 {
        let mut log = JsonLines::open("log.jsonl", generation).expect("opens");
        log.write(&json!({ "generation": generation })).expect("writes");
    }
    assert_eq!(fs::read_to_string("log.jsonl").expect("a log").lines().count(), 3);
    let model = layer(2, 3);
    let strategy = strategy(&model);
    drop(ReplayLog::create("run.replay", &strategy, &model).expect("begins"));
    drop(ReplayLog::open("run.replay", &strategy, &model).expect("goes on"));
    // Of another model: begun anew.
    drop(ReplayLog::open("run.replay", &strategy, &layer(3, 3)).expect("begins anew"));
    for folder in ["checkpoints", "", "a/b/c"] {
        let checkpoints = Checkpoints::new(folder);
        checkpoints.save(&strategy, &model).expect("saves");
        checkpoints.save(&strategy, &model).expect("replaces");
        assert_eq!(checkpoints.list().expect("lists").len(), 1, "{folder:?}");
        checkpoints.load_latest(layer(2, 3)).expect("loads").expect("is there");
    }
}

#[test]
fn bare_names() {
    let folder = tempfile::tempdir().expect("a folder");
    passed(&run_in(folder.path(), "child_with_bare_names", "exec \"$@\""));
    let expected = ["a", "checkpoints", "generation-000000000000", "log.jsonl", "run.replay"];
    assert_eq!(names(folder.path()), expected, "and nothing else");
}

/// Two files of one stem, each replaced again and again by its own thread.
#[test]
fn files_of_one_stem() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = |name: &str| -> Vec<String> {
        (0..200).map(|line| json!({ "generation": line, "of": name }).to_string()).collect()
    };
    let replaced = |name: &str| {
        let (path, lines) = (folder.path().join(name), lines(name));
        fs::write(&path, lines.join("\n")).expect("writes");
        for kept in (100..200).rev() {
            drop(JsonLines::open(&path, kept).expect("opens"));
            let found = fs::read_to_string(&path).expect("a log");
            assert!(found.lines().eq(&lines[..kept as usize]), "{name} has other lines before {kept}");
        }
    };
    std::thread::scope(|scope| {
        let threads = ["run.jsonl", "run.log"].map(|name| scope.spawn(move || replaced(name)));
        threads.into_iter().for_each(|thread| thread.join().expect("both are replaced"));
    });
    assert_eq!(names(folder.path()), ["run.jsonl", "run.log"], "no draft is left");
}

/// Files of more than this cannot be written by a child.
const LIMIT: usize = 8 * 1024;

/// A log and a checkpoint that do not fit, of a process in this folder.
#[test]
fn child_whose_writes_fail() {
    if !is_child() {
        return;
    }
    let refused = |outcome: Result<PathBuf, Error>, file: &str| match outcome {
        Err(Error::Io { path, .. }) => assert!(path.ends_with(file), "{path:?}"),
        other => panic!("{file}: {other:?}"),
    };
    let log = env::current_dir().expect("a folder").join("log.jsonl");
    refused(JsonLines::open(&log, u64::MAX).map(|_| log.clone()), "log.jsonl");
    let large = layer(64, 64);
    let outcome = Checkpoints::new(env::current_dir().expect("a folder")).save(&strategy(&large), &large);
    refused(outcome, "model.bpk");
}

#[cfg(unix)]
#[test]
fn a_write_that_fails_leaves_what_was_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines: Vec<String> = (0..1000).map(|line| json!({ "generation": line }).to_string()).collect();
    let text = lines.join("\n");
    assert!(text.len() > LIMIT, "canary: it fits");
    fs::write(folder.path().join("log.jsonl"), &text).expect("writes");
    let small = layer(2, 3);
    let saved = Checkpoints::new(folder.path()).save(&strategy(&small), &small).expect("saves");
    // In blocks of 512 bytes; without the signal, writes fail as they do on a full disk.
    let limited = format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", LIMIT / 512);
    passed(&run_in(folder.path(), "child_whose_writes_fail", &limited));
    assert_eq!(fs::read_to_string(folder.path().join("log.jsonl")).expect("a log"), text);
    assert_eq!(names(folder.path()), ["generation-000000000000", "log.jsonl"], "no draft is left");
    load(&saved, layer(2, 3)).expect("the old checkpoint");
}
