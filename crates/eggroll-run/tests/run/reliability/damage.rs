//! Damaged checkpoints and replay logs: refused, or as they were; never a panic, never an allocation beyond what is on disk.

use crate::reliability::allocations::largest;
use crate::reliability::support::*;
use burn::optim::AdamConfig;
use eggroll_core::EggrollConfig;
use eggroll_run::*;
use eggroll_train::*;
use proptest::prelude::*;
use proptest::sample::Index;
use sha2::{Digest, Sha256};
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Beyond the size of the files: what a model, its strategy and error messages take, and tables of the process that grow now and then.
/// Wrong lengths would ask for thousands of times as much.
const SLACK: usize = 1 << 20;
const CASES: u32 = 500;
const STATE: &str = "strategy.json";

fn saved() -> (TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let digests = digests::<Net>(&config(EggrollConfig::new(), AdamConfig::new()), 3, &log);
    let (strategy, model) = replay(&log, Net::start(), None).expect("replays");
    let path = Checkpoints::new(folder.path().join("checkpoints")).save(&strategy, &model).expect("saves");
    (folder, path, digests[3].clone())
}

fn bytes_of(folder: &Path) -> usize {
    let len = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").metadata().expect("a file").len();
    fs::read_dir(folder).expect("a folder").map(len).sum::<u64>() as usize
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

/// Loads, watched: the digest of the model, or the error.
fn load_watched(folder: &Path) -> Result<Result<String, String>, TestCaseError> {
    let (outcome, bytes) = largest(|| load(folder, Net::start()));
    let size = bytes_of(folder);
    prop_assert!(bytes <= size + SLACK, "an allocation of {bytes} bytes for {size} bytes on disk");
    Ok(outcome.map(|(_, model)| parameter_digest(&model)).map_err(|error| error.to_string()))
}

#[test]
fn a_damaged_checkpoint_is_refused_or_whole() {
    let (_folder, path, digest) = saved();
    prop_damage(&path, |_, damaged| {
        match load_watched(damaged)? {
            // Only what nobody reads may change: a line more in the list of checksums.
            Ok(found) => prop_assert_eq!(&found, &digest, "damage went unnoticed"),
            Err(error) => prop_assert!(error.contains("generation-000000000003"), "{error}"),
        }
        Ok(())
    });
    assert_eq!(load_watched(&path).expect("no failure"), Ok(digest), "canary: the undamaged one loads");
}

/// As if it had been written so: its checksum agrees with the damage, and the parser and the strategy see it. Parts that are Burn's
/// records are never parsed if they are not what was written.
#[test]
fn a_state_that_was_written_wrongly_does_not_panic() {
    let (_folder, path, digest) = saved();
    let reached = Cell::new(0);
    prop_damage(&path, |name, damaged| {
        if name == STATE {
            sign(damaged);
            let outcome = load_watched(damaged)?;
            reached.set(reached.get() + u32::from(outcome.is_err_and(|error| !error.contains("checksum"))));
        }
        Ok(())
    });
    // Canary: it is not the checksum that refuses.
    assert!(reached.get() > CASES / 20, "{} states were parsed", reached.get());
    sign(&path);
    assert_eq!(load_watched(&path).expect("no failure"), Ok(digest));
}

/// Burn's records too, of checkpoints of low-rank noise and of integers: with a length and a checksum that agree with the damage, Burn parses
/// them.
fn records_that_were_written_wrongly<T: LearningModel>(strategy: EvolutionStrategyConfig) {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    digests::<T>(&strategy, 3, &log);
    let (strategy, model) = replay(&log, T::start(), None).expect("replays");
    let path = Checkpoints::new(folder.path().join("checkpoints")).save(&strategy, &model).expect("saves");
    let (loaded, refused) = (Cell::new(0), Cell::new(0));
    prop_damage(&path, |name, damaged| {
        if !name.ends_with(".bpk") {
            return Ok(());
        }
        let state = damaged.join(STATE);
        let mut text: serde_json::Value = serde_json::from_slice(&fs::read(&state).expect("reads")).expect("JSON");
        text["parts"][name]["bytes"] = fs::metadata(damaged.join(name)).expect("a file").len().into();
        fs::write(&state, text.to_string()).expect("writes");
        sign(damaged);
        let (outcome, bytes) = largest(|| load(damaged, T::start()));
        let size = bytes_of(damaged);
        // Burn panics of some, and a backtrace takes what it takes.
        let text = outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let panicked = text.contains("cannot be loaded") || text.contains("Burn cannot read it");
        prop_assert!(panicked || bytes <= size + SLACK, "an allocation of {bytes} bytes for {size} bytes on disk");
        match outcome {
            Ok(_) => loaded.set(loaded.get() + 1),
            Err(_) => {
                prop_assert!(text.contains("generation-000000000003") && !text.contains("checksum"), "{text}");
                refused.set(refused.get() + 1);
            }
        }
        Ok(())
    });
    // Canary: values may change unnoticed, what they are may not.
    assert!(loaded.get() > 0 && refused.get() > CASES / 20, "{} loaded, {} refused", loaded.get(), refused.get());
}

#[test]
fn records_of_floats_that_were_written_wrongly_do_not_panic() {
    records_that_were_written_wrongly::<Net>(config(EggrollConfig::new().with_rank(2), AdamConfig::new()));
}

#[test]
fn records_of_integers_that_were_written_wrongly_do_not_panic() {
    let optimizer = OptimizerConfig::IntegerAdamW(IntegerAdamWConfig::new());
    records_that_were_written_wrongly::<IntegerNet>(EvolutionStrategyConfig { optimizer, ..integer_config() });
}

/// Damages one file of a copy of the checkpoint, and hands over its name and the copy.
fn prop_damage(path: &Path, property: impl Fn(&str, &Path) -> Result<(), TestCaseError>) {
    let inputs = (any::<Index>(), proptest::collection::vec(damage(), 1..4));
    check_loader("tests/corpus/checkpoint.txt", CASES, &inputs, |(file, damages)| {
        let folder = tempfile::tempdir().expect("a folder");
        let damaged = folder.path().join("generation-000000000003");
        copy(path, &damaged);
        let files = files(&damaged);
        let file = &files[file.index(files.len())];
        let mut bytes = fs::read(file).expect("reads");
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        fs::write(file, bytes).expect("writes");
        property(&file.file_name().expect("a name").to_string_lossy(), &damaged)
    });
}

/// Writes all checksums anew.
fn sign(folder: &Path) {
    let mut sums = String::new();
    for file in files(folder).iter().filter(|file| !file.ends_with("SHA256SUMS")) {
        let sum: String =
            Sha256::digest(fs::read(file).expect("reads")).iter().map(|byte| format!("{byte:02x}")).collect();
        sums += &format!("{sum}  {}\n", file.file_name().expect("a name").to_string_lossy());
    }
    fs::write(folder.join("SHA256SUMS"), sums).expect("writes");
}

#[test]
fn a_damaged_replay_log_is_refused_or_replays_what_is_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let config = config(EggrollConfig::new(), AdamConfig::new());
    let digests = digests::<Net>(&config, 4, &path);
    let bytes = fs::read(&path).expect("reads");
    let (refused, cut) = (Cell::new(0), Cell::new(0));
    check_loader("tests/corpus/replay.txt", CASES, &proptest::collection::vec(damage(), 1..4), |damages| {
        let mut damaged = bytes.clone();
        damages.iter().for_each(|damage| damage.apply(&mut damaged));
        let path = folder.path().join("damaged");
        fs::write(&path, &damaged).expect("writes");
        let (outcome, allocated) = largest(|| replay(&path, Net::start(), None));
        prop_assert!(allocated <= damaged.len() + SLACK, "{allocated} bytes for {}", damaged.len());
        match outcome {
            Ok((strategy, model)) => {
                let generation = strategy.generation() as usize;
                prop_assert_eq!(&parameter_digest(&model), &digests[generation]);
                cut.set(cut.get() + u32::from(generation < 4));
                let log = ReplayLog::resume(&path, &strategy).map(drop);
                prop_assert!(log.is_ok(), "{log:?}");
            }
            Err(error) => {
                let error = error.to_string();
                prop_assert!(error.contains("damaged") || error.contains("this is not a replay log"), "{error}");
                refused.set(refused.get() + 1);
            }
        }
        Ok(())
    });
    // Canary: both happen.
    assert!(refused.get() > 0 && cut.get() > 0, "{} refused, {} cut off", refused.get(), cut.get());
}
