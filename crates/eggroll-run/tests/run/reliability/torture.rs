//! Runs that are killed at their n-th system call, or whose n-th call fails: each continues to the end of a run that nothing happened
//! to. `scripts/torture` runs all of it.

use crate::reliability::support::{IntegerNet, LearningModel, Net, child, config, integer_config};
use burn::optim::AdamConfig;
use eggroll_core::NoiserConfig;
use eggroll_run::*;
use eggroll_train::*;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Set for the process that trains: where, with which noiser, how many generations, and how many between two checkpoints.
const CHILD: &str = "EGGROLL_TEST_TORTURED";
/// How much is done: `quick` as a part of CI, `all` otherwise.
const AMOUNT: &str = "EGGROLL_TORTURE";
const GENERATIONS: u64 = 4;
/// Generations in which memory is watched.
const SOAK: u64 = 4000;

/// A task of the other tests, in a learner.
struct Learn;

impl<T: LearningModel> EsTask<T> for Learn {
    type Output = Scalars;

    fn evaluate(&mut self, model: &T, population: &Population) -> Result<Fitness, UserError> {
        Ok(model.fitness(population))
    }

    fn validate(&mut self, _model: &T, report: &GenerationReport) -> Result<Vec<Scalars>, UserError> {
        Ok(vec![Scalars::from([("Score", (report.generation % 5) as f64)])])
    }
}

/// A run with every file that a run can have.
fn train<T: LearningModel>(folder: &Path, strategy: EvolutionStrategyConfig, generations: u64, every: u64) -> T {
    let run = RunFolder::new(folder);
    let settings = "settings".to_owned();
    match run.file("settings.json").is_file() {
        true => assert_eq!(run.resume::<String>().unwrap_or_else(|error| panic!("{error}")), settings),
        false => drop(run.begin(&settings).unwrap_or_else(|error| panic!("{error}"))),
    }
    let config = EsTrainingConfig::new(strategy, generations)
        .with_validate_every(2)
        .with_checkpoint_every(every)
        .with_replay_log(true)
        .with_data(Some("data".into()))
        .with_keep_best(Some(MetricTarget::highest("Score")));
    let training =
        EsTraining::new(run, config).with_display(Display::Progress).metric_valid(ScalarMetric::new("Score"));
    training.launch(T::start(), &mut Learn).unwrap_or_else(|error| panic!("{error}")).model
}

#[test]
fn child_that_trains() {
    let Ok(words) = env::var(CHILD) else {
        return;
    };
    let [folder, noiser, generations, every] = words.split('|').collect::<Vec<_>>()[..] else {
        panic!("{words}");
    };
    let (folder, noiser): (_, NoiserConfig) = (Path::new(folder), noiser.parse().expect("a noiser"));
    let [generations, every] = [generations, every].map(|number| number.parse().expect("a number"));
    let digest = match noiser {
        NoiserConfig::QEggroll(_) => {
            parameter_digest(&train::<IntegerNet>(folder, integer_config(), generations, every))
        }
        NoiserConfig::BaselineSubtraction(baseline) => {
            let noiser = eggroll_core::BaselineSubtractionConfig { group: 6, ..baseline };
            parameter_digest(&train::<Net>(folder, config(noiser, AdamConfig::new()), generations, every))
        }
        noiser => parameter_digest(&train::<Net>(folder, config(noiser, AdamConfig::new()), generations, every)),
    };
    println!("\ndigest {digest}\nresident {}", resident());
}

/// Kibibytes of this process in memory; 0 where that is not known.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0)
}

/// A process that trains, behind the words of a tracer, if there are any.
fn trainer(tracer: &[&str], folder: &Path, noiser: &str, generations: u64, every: u64) -> Command {
    let mut command = child(tracer, "reliability::torture::child_that_trains");
    command.env(CHILD, format!("{}|{noiser}|{generations}|{every}", folder.display()));
    command.env("RUST_BACKTRACE", "0").env("RAYON_NUM_THREADS", "1");
    command
}

/// What a finished child says under this name.
#[track_caller]
fn said(output: &Output, name: &str) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let error = String::from_utf8_lossy(&output.stderr);
    line.unwrap_or_else(|| panic!("no {name}: {text}{error}")).to_owned()
}

/// A log without gaps and doubles, a replay log of all generations, checkpoints that load, and nothing half-written.
fn check_files(what: &str, folder: &Path, generations: u64) {
    let lines: Vec<serde_json::Value> = JsonLines::read(folder.join("log.jsonl")).expect("a log");
    let train = lines.iter().filter(|line| line["split"] == "train");
    let found: Vec<u64> = train.map(|line| line["generation"].as_u64().expect("a number")).collect();
    assert!(found.iter().copied().eq(0..generations), "{what}: {found:?}");
    assert_eq!(replay_range(&folder.join("run.replay")).expect("a replay log"), 0..generations, "{what}");
    for name in ["", "checkpoints", "kept"] {
        let entries = fs::read_dir(folder.join(name)).expect("a folder");
        for entry in entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()) {
            assert!(!entry.starts_with('.'), "{what}: {name}/{entry} is left over");
        }
    }
    let saved = Checkpoints::new(folder.join("checkpoints")).list().expect("lists");
    // A kill between the last save and the end of the one before.
    assert!((2..=3).contains(&saved.len()), "{what}: {saved:?}");
}

fn amount() -> Option<bool> {
    match env::var(AMOUNT).as_deref() {
        Ok("all") => Some(true),
        Ok("quick") => Some(false),
        _ => {
            eprintln!("skipped: scripts/torture sets {AMOUNT}");
            None
        }
    }
}

/// System calls that change files, and how often an undisturbed run makes each.
fn calls(folder: &Path, noiser: &str) -> BTreeMap<String, usize> {
    let names = "rename,renameat,renameat2,fsync,fdatasync,mkdir,mkdirat,unlink,unlinkat,rmdir,write,ftruncate,openat";
    let (list, only) = (folder.join("calls"), format!("trace={names}"));
    let tracer = ["strace", "-f", "-qq", "-o", list.to_str().expect("a text"), "-e", &only];
    let output = trainer(&tracer, &folder.join("run"), noiser, GENERATIONS, 1).output().expect("starts");
    said(&output, "digest");
    let text = fs::read_to_string(&list).expect("a list");
    let mut calls = BTreeMap::new();
    // `openat` opens everything, libraries too: it counts where it creates.
    for line in text.lines().filter(|line| !line.contains("openat(") || line.contains("O_CREAT")) {
        let name = line.split_whitespace().nth(1).and_then(|call| call.split('(').next()).unwrap_or_default();
        *calls.entry(name.to_owned()).or_default() += 1;
    }
    calls.remove("openat");
    // The second half of a call that another thread's interrupted.
    calls.remove("<...");
    calls
}

#[test]
fn killed_or_failing_at_the_nth_call() {
    let Some(all) = amount() else {
        return;
    };
    let probe = Command::new("strace").args(["-f", "-e", "trace=none", "true"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: strace cannot trace here");
        return;
    }
    let (mut killed, mut failed) = (0, 0);
    for (turn, noiser) in NoiserConfig::NAMES.into_iter().enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        let whole = trainer(&[], &folder.path().join("whole"), noiser, GENERATIONS, 1).output().expect("starts");
        let expected = said(&whole, "digest");
        check_files(noiser, &folder.path().join("whole"), GENERATIONS);
        let calls = calls(folder.path(), noiser);
        assert!(["rename", "fsync", "unlinkat", "write"].iter().all(|call| calls.contains_key(*call)), "{calls:?}");
        for (call, count) in &calls {
            // Each call of each kind; of the quick part one, another for each noiser.
            let step = if all { 1 } else { (*count).max(1) };
            for nth in (1 + turn % step..=*count).step_by(step) {
                for fault in ["signal=KILL", "error=ENOSPC"] {
                    let run = folder.path().join(format!("{call}-{nth}-{}", &fault[..6]));
                    let inject = format!("inject={call}:{fault}:when={nth}");
                    let (only, nowhere) = (format!("trace={call}"), "/dev/null");
                    let tracer = ["strace", "-f", "-qq", "-o", nowhere, "-e", &only, "-e", &inject];
                    let output = trainer(&tracer, &run, noiser, GENERATIONS, 1).output().expect("starts");
                    let ended = output.status.success();
                    killed += usize::from(!ended && fault.starts_with("signal"));
                    failed += usize::from(!ended && fault.starts_with("error"));
                    let again = trainer(&[], &run, noiser, GENERATIONS, 1).output().expect("starts");
                    assert_eq!(said(&again, "digest"), expected, "{noiser}: {inject}");
                    check_files(&inject, &run, GENERATIONS);
                    fs::remove_dir_all(&run).expect("removes");
                }
            }
        }
        println!("{noiser}: {calls:?}");
    }
    println!("{killed} runs were killed, {failed} ended with an error");
    assert!(killed > 10 && failed > 5, "canary: {killed} kills, {failed} errors");
}

/// Memory of a learner in one process, at a tenth of its generations and at the end.
#[test]
fn a_learner_keeps_its_memory() {
    if amount().is_none() {
        return;
    }
    struct MemoryTask {
        resident: Vec<u64>,
    }

    impl EsTask<Net> for MemoryTask {
        type Output = Scalars;

        fn evaluate(&mut self, model: &Net, population: &Population) -> Result<Fitness, UserError> {
            if population.generation().is_multiple_of(SOAK / 10) {
                self.resident.push(resident());
            }
            Ok(model.fitness(population))
        }
    }

    let folder = tempfile::tempdir().expect("a folder");
    let noiser: NoiserConfig = NoiserConfig::NAMES[0].parse().expect("a noiser");
    let config = EsTrainingConfig::new(config(noiser, AdamConfig::new()), SOAK).with_checkpoint_every(50);
    let training = EsTraining::new(folder.path(), config.with_replay_log(true)).with_display(Display::Progress);
    let mut task = MemoryTask { resident: Vec::new() };
    let outcome = training.launch(Net::start(), &mut task).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.stop, StopReason::Finished);
    println!("resident at every tenth of {} generations, in KiB: {:?}", SOAK, task.resident);
    let (early, late) = (task.resident[1], task.resident[9]);
    assert!(late < early + 16 * 1024, "{:?}", task.resident);
}
