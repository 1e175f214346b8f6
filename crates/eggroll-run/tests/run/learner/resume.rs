//! Runs that continue, runs from the saved configuration alone, and runs made again from their fitness.

use crate::learner::task::{Scripted, config, layer, log, training};
use crate::reliability::child;
use burn::optim::AdamConfig;
use eggroll_nn::Linear;
use eggroll_run::*;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

fn run(folder: &Path, config: EsTrainingConfig, interrupt: Option<u64>) -> Linear {
    let training = training(folder, config);
    let mut task = Scripted::new([0.5, 1.5, 2.5]);
    task.interrupt = interrupt.map(|at| (at, training.interrupter()));
    training.launch(layer(), &mut task).unwrap_or_else(|error| panic!("{error}")).model
}

fn adam() -> EsTrainingConfig {
    let mut config = config(30).with_diagnostics(true).with_checkpoint_every(7);
    config.strategy.optimizer = AdamConfig::new().into();
    config
}

#[test]
fn a_run_from_the_saved_file_gives_the_same_bits() {
    let (first, second) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let model = run(first.path(), adam(), None);
    let again = run(second.path(), EsTrainingConfig::of_run(first.path()).expect("a configuration"), None);
    assert_eq!(parameter_digest(&again), parameter_digest(&model));
    assert_eq!(log(second.path()), log(first.path()));
    let mut other = adam();
    other.strategy.seed += 1;
    let third = tempfile::tempdir().expect("a folder");
    assert_ne!(parameter_digest(&run(third.path(), other, None)), parameter_digest(&model), "canary");
}

/// Interrupted in the middle of an epoch, at its end, and killed behind the last checkpoint: the same model, the same log.
#[test]
fn a_run_that_goes_on_equals_one_that_was_not_stopped() {
    let straight = tempfile::tempdir().expect("a folder");
    let expected = run(straight.path(), adam(), None);
    for at in [12, 19] {
        for killed in [false, true] {
            let folder = tempfile::tempdir().expect("a folder");
            run(folder.path(), adam(), Some(at));
            if killed {
                // As if the last checkpoint had never been written: one of the earlier generations is the latest.
                let last = Checkpoints::new(folder.path().join("checkpoints")).list().expect("lists").pop();
                fs::remove_dir_all(last.expect("saved")).expect("removed");
            }
            let model = run(folder.path(), adam(), None);
            assert_eq!(parameter_digest(&model), parameter_digest(&expected), "{at} {killed}");
            assert_eq!(log(folder.path()), log(straight.path()), "{at} {killed}");
        }
    }
}

/// A finished run may be given more generations.
#[test]
fn more_generations() {
    let folder = tempfile::tempdir().expect("a folder");
    let short = EsTrainingConfig { generations: 15, ..adam() };
    run(folder.path(), short, None);
    let model = run(folder.path(), adam(), None);
    let straight = tempfile::tempdir().expect("a folder");
    assert_eq!(parameter_digest(&model), parameter_digest(&run(straight.path(), adam(), None)));
}

#[test]
fn a_log_is_cut_where_the_run_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log.jsonl");
    let mut log = JsonLines::open(&path, 0).expect("opens");
    (0..6).for_each(|generation| log.write(&serde_json::json!({ "generation": generation })).expect("writes"));
    let lines = || fs::read_to_string(&path).expect("reads").lines().count();
    assert_eq!(lines(), 6);
    fs::write(&path, fs::read_to_string(&path).expect("reads") + "{\"generation\":6,\"cut").expect("writes");
    drop(log);
    drop(JsonLines::open(&path, 4).expect("opens"));
    assert_eq!(lines(), 4);
}

/// Set for the process that is to be killed: the folder of its run.
const FOLDER: &str = "EGGROLL_TEST_RUN_IN";

fn logged(generations: u64) -> EsTrainingConfig {
    EsTrainingConfig { generations, ..adam() }.with_replay_log(true).with_report_every(10)
}

#[test]
fn child_that_trains() {
    if let Some(folder) = env::var_os(FOLDER) {
        run(Path::new(&folder), logged(1 << 40), None);
    }
}

/// Starts the child and kills it a while after its next checkpoint.
fn kill(folder: &Path, delay: Duration) {
    let latest = || Checkpoints::new(folder.join("checkpoints")).list().expect("lists").pop();
    let before = latest();
    let mut child = child(&[], "learner::resume::child_that_trains")
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let begun = Instant::now();
    while latest() == before {
        assert!(begun.elapsed() < Duration::from_secs(60), "the child saves nothing");
        sleep(Duration::from_millis(1));
    }
    sleep(delay);
    child.kill().expect("SIGKILL");
    child.wait().expect("is gone");
}

/// The log of a run that was killed again and again makes every checkpoint of it, and the run that was not.
#[test]
fn a_killed_runs_log_makes_its_checkpoints() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, checkpoints) = (folder.path().join("run.replay"), Checkpoints::new(folder.path().join("checkpoints")));
    [0, 3, 7].into_iter().for_each(|delay| kill(folder.path(), Duration::from_millis(delay)));
    let (killed, _) = checkpoints.load_latest(layer()).expect("loads").expect("saved");
    let generations = killed.generation() + 20;
    let model = run(folder.path(), logged(generations), None);
    assert_eq!(replay_range(&path).expect("a log"), 0..generations);
    let saved = checkpoints.list().expect("lists");
    assert_eq!(saved.len(), 2);
    for saved in saved {
        let (strategy, model) = load(&saved, layer()).expect("loads");
        let (_, replayed) = replay(&path, layer(), Some(strategy.generation())).expect("replays");
        assert_eq!(parameter_digest(&replayed), parameter_digest(&model), "{}", saved.display());
    }
    let straight = tempfile::tempdir().expect("a folder");
    assert_eq!(parameter_digest(&run(straight.path(), logged(generations), None)), parameter_digest(&model));
    let (_, earlier) = replay(&path, layer(), Some(generations - 1)).expect("replays");
    assert_ne!(parameter_digest(&earlier), parameter_digest(&model), "canary");
}
