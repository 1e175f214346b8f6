//! What a process writes is its own until it ends, however it ends.

use crate::reliability::support::{child, layer, start_until};
use burn::optim::AdamConfig;
use eggroll_core::EggrollConfig;
use eggroll_nn::Linear;
use eggroll_run::Error;
use eggroll_run::*;
use eggroll_train::*;
use std::env;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

/// Set for the process that holds everything: where.
const FOLDER: &str = "EGGROLL_TEST_HOLD_IN";

fn strategy(model: &Linear) -> EvolutionStrategy {
    EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_population_size(2).init(model)
}

/// A loop with checkpoints and a replay log, which calls `inside` in its first generation.
fn train(folder: &Path, mut inside: impl FnMut()) -> Result<Linear, Error> {
    let model = layer(2, 3);
    let training = TrainingLoop::new(1)
        .with_checkpoints(Checkpoints::new(folder.join("checkpoints")), 1)
        .with_replay_log(folder.join("run.replay"));
    training.run(
        &mut strategy(&model),
        model,
        |_, _| Ok(Fitness::from(vec![0.0f32; 2])),
        |_, _| {
            inside();
            Ok(ControlFlow::Break(()))
        },
    )
}

#[test]
fn child_that_holds_everything() {
    let Some(folder) = env::var_os(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    let run = RunFolder::new(folder.join("run"));
    run.begin(&1).expect("begins");
    let _log = JsonLines::open(folder.join("log.jsonl"), 0).expect("opens");
    let wait = || {
        writeln!(std::io::stdout(), "\nheld").expect("the parent listens");
        std::thread::sleep(std::time::Duration::from_secs(600));
    };
    train(folder, wait).expect("waits");
}

/// Every way to write what another process writes, by name.
fn attempts(folder: &Path) -> Vec<(&'static str, Result<(), Error>)> {
    let model = layer(2, 3);
    let mut later = strategy(&model);
    let population = later.ask();
    later.tell(&mut model.clone(), population, Fitness::from(vec![0.0f32; 2])).expect("a generation");
    let run = |attempt: fn(RunFolder) -> Result<(), Error>| attempt(RunFolder::new(folder.join("run")));
    vec![
        ("run", run(|run| run.begin(&2).map(drop))),
        ("run", run(|run| run.resume::<u8>().map(drop))),
        ("log.jsonl", JsonLines::open(folder.join("log.jsonl"), 0).map(drop)),
        ("run.replay", ReplayLog::open(folder.join("run.replay"), &strategy(&model), &model).map(drop)),
        ("run.replay", ReplayLog::resume(folder.join("run.replay"), &strategy(&model)).map(drop)),
        ("checkpoints", Checkpoints::new(folder.join("checkpoints")).save(&later, &model).map(drop)),
        ("checkpoints", train(folder, || {}).map(drop)),
    ]
}

#[test]
fn in_use_until_the_process_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let held = |line: &str| line.starts_with("held").then_some(());
    let mut command = child(&[], "reliability::locks::child_that_holds_everything");
    let (mut child, _output, ()) = start_until(command.env(FOLDER, folder.path()), held);
    for (name, outcome) in attempts(folder.path()) {
        let Err(Error::Run(RunError::InUse { path, process })) = outcome else {
            panic!("{name}: {outcome:?}");
        };
        assert_eq!(path, folder.path().join(name));
        assert_eq!(process, cfg!(unix).then(|| child.id()), "{name}");
    }
    assert!(Checkpoints::new(folder.path().join("checkpoints")).list().is_ok(), "whoever reads needs no lock");
    child.kill().expect("SIGKILL");
    child.wait().expect("is gone");
    for (name, outcome) in attempts(folder.path()) {
        outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert!(folder.path().join("run.previous-1/settings.json").exists(), "nothing is lost");
}

/// In one process too, and only as long as it writes.
#[test]
fn one_writer_in_a_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = RunFolder::new(folder.path().join("run"));
    first.begin(&1).expect("begins");
    let second = RunFolder::new(folder.path().join("run/"));
    let error = second.begin(&2).expect_err("in use").to_string();
    assert!(error.contains("/run is in use by process") && error.contains("which is this one"), "{error}");
    let clone = first.clone();
    drop(first);
    assert!(second.resume::<u8>().is_err(), "a clone has it");
    drop(clone);
    assert_eq!(second.resume::<u8>().expect("free"), 1);
    drop(second);
    if cfg!(unix) {
        let names: Vec<_> = fs::read_dir(folder.path().join("run")).expect("a folder").collect();
        assert_eq!(names.len(), 1, "no lock is left: {names:?}");
    }
}

/// Links in the place of locks and drafts are refused, or replaced: what they lead to is not written.
#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("mine"), "years").expect("writes");
    fs::create_dir(at("run")).expect("makes");
    symlink(at("mine"), at("run/.lock")).expect("links");
    let error = RunFolder::new(at("run")).begin(&1).expect_err("a link").to_string();
    assert!(error.contains(".lock") && error.contains("a link"), "{error}");
    fs::remove_file(at("run/.lock")).expect("removes");
    symlink(at("nowhere"), at("run/.lock")).expect("links");
    assert!(RunFolder::new(at("run")).begin(&1).is_err() && !at("nowhere").exists(), "a link to nowhere");
    fs::remove_file(at("run/.lock")).expect("removes");
    // Names of drafts, of earlier versions and of this one, and the file itself.
    for link in ["settings.draft", ".settings.json.draft", ".settings.json.abcdef.draft", "settings.json"] {
        symlink(at("mine"), at("run").join(link)).expect("links");
    }
    symlink(at("mine"), at("log.jsonl")).expect("links");
    RunFolder::new(at("run")).save_settings(&1).expect("saves");
    assert!(fs::symlink_metadata(at("run/settings.json")).expect("is there").is_file(), "replaced");
    let mut log = JsonLines::open(at("log.jsonl"), 0).expect("opens");
    log.write(&serde_json::json!({ "generation": 0 })).expect("writes");
    assert_eq!(fs::read_to_string(at("mine")).expect("reads"), "years");
}

/// What killed writers have left goes when the next one has the lock.
#[test]
fn drafts_are_swept() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let model = layer(2, 3);
    Checkpoints::new(at("run/checkpoints")).save(&strategy(&model), &model).expect("saves");
    fs::write(at("run/settings.json"), "1").expect("writes");
    let leftovers = [
        "run/.settings.json.Xy12ab.draft",
        "run/checkpoints/.generation-000000000007.Xy12ab.draft/model.bpk",
        "run/checkpoints/.generation-000000000007.draft/model.bpk",
        ".log.jsonl.Xy12ab.draft",
    ];
    for name in leftovers {
        fs::create_dir_all(at(name).parent().expect("a folder")).expect("makes");
        fs::write(at(name), "half").expect("writes");
    }
    // Of another file, and of the user.
    let others =
        [".other.jsonl.Xy12ab.draft", "run/chapter.draft", "run/.notes.draft", ".log.jsonl.replay.Xy12ab.draft"];
    for name in others {
        fs::write(at(name), "mine").expect("writes");
    }
    drop(JsonLines::open(at("log.jsonl"), 0).expect("opens"));
    let run = RunFolder::new(at("run"));
    assert_eq!(run.resume::<u8>().expect("resumes"), 1);
    Checkpoints::new(at("run/checkpoints")).save(&strategy(&model), &model).expect("saves");
    for name in leftovers {
        assert!(!at(name).exists(), "{name}");
    }
    for name in others {
        assert!(at(name).exists(), "{name}");
    }
}
