//! `kill -9` while a process saves: what is on disk is complete, and the old one or the new one.

use crate::reliability::support::{child, layer, start_until};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::AdamConfig;
use burn::tensor::Tensor;
use eggroll_core::EggrollConfig;
use eggroll_nn::Linear;
use eggroll_run::*;
use eggroll_train::*;
use std::env;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

/// Set for the process that is to be killed: where to save.
const FOLDER: &str = "EGGROLL_TEST_SAVE_TO";
const ROUNDS: u64 = 24;
const KEEP: usize = 2;

/// Large enough that a save takes a while.
fn model() -> Linear {
    layer(96, 128)
}

/// The model with all its values the same, which says what was saved.
fn filled(value: f32) -> Linear {
    struct FillWith(f32);

    impl ModuleMapper for FillWith {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|tensor| tensor.full_like(self.0))
        }
    }
    model().map(&mut FillWith(value))
}

/// The value of [`filled`]; `None` if there are several.
fn value(model: &Linear) -> Option<f32> {
    #[derive(Default)]
    struct FilledValues(Vec<f32>);

    impl ModuleVisitor for FilledValues {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.extend(param.val().into_data().iter::<f32>());
        }
    }
    let mut values = FilledValues::default();
    model.visit(&mut values);
    values.0.iter().all(|value| *value == values.0[0]).then(|| values.0[0])
}

fn checkpoints(folder: &Path) -> Checkpoints {
    Checkpoints::new(folder.join("checkpoints")).with_keep(KEEP)
}

fn strategy(model: &Linear) -> EvolutionStrategy {
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_population_size(2);
    config.init(model)
}

/// Saves for ever: the checkpoint of each generation `g` twice, first with a model of `g`, then replaced by one of `g + ½`. Says so
/// after each.
#[test]
fn child_that_saves() {
    let Some(folder) = env::var_os(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    let (checkpoints, path) = (checkpoints(folder), folder.join("log"));
    let (mut strategy, mut model) = checkpoints.load_latest(model()).expect("loads").unwrap_or_else(|| {
        let model = model();
        (strategy(&model), model)
    });
    let mut log = match path.exists() {
        true => ReplayLog::resume(&path, &strategy).expect("resumes"),
        false => ReplayLog::create(&path, &strategy, &model).expect("a log"),
    };
    loop {
        // Equal fitness moves nothing: only the generation advances.
        let (population, fitness) = (strategy.ask(), Fitness::from(vec![0.0f32; 2]));
        strategy.tell(&mut model, population, fitness.clone()).expect("a generation");
        log.append(&strategy, &fitness).expect("appends");
        for half in [0.0, 0.5] {
            let value = strategy.generation() as f32 + half;
            checkpoints.save(&strategy, &filled(value)).expect("saves");
            writeln!(std::io::stdout(), "saved {value}").expect("the parent listens");
        }
    }
}

/// Starts the child, kills it a while after its first save, and returns the last value it has saved.
fn kill_after(folder: &Path, delay: Duration) -> f32 {
    let saved = |line: &str| line.strip_prefix("saved ").and_then(|value| value.trim().parse::<f32>().ok());
    let mut command = child(&[], "reliability::kill::child_that_saves");
    let (mut child, mut output, first) = start_until(command.env(FOLDER, folder), saved);
    std::thread::sleep(delay);
    child.kill().expect("SIGKILL");
    child.wait().expect("is gone");
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("reads");
    rest.lines().filter_map(saved).next_back().unwrap_or(first)
}

#[test]
fn what_is_on_disk_is_complete_whenever_a_save_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut interrupted = 0;
    for round in 0..ROUNDS {
        // Spread over the length of a save and more.
        let last = kill_after(folder.path(), Duration::from_micros(round * 7919 % 23 * 997));
        let checkpoints = checkpoints(folder.path());
        let list = checkpoints.list().expect("lists");
        assert!((1..=KEEP + 1).contains(&list.len()), "{list:?}");
        for path in &list {
            let (strategy, model) = load(path, model()).unwrap_or_else(|error| panic!("round {round}: {error}"));
            let value = value(&model).expect("one value: a whole model");
            assert!([0.0, 0.5].contains(&(value - strategy.generation() as f32)), "{path:?}: {value}");
        }
        let (strategy, model) = checkpoints.load_latest(model()).expect("loads").expect("is there");
        // What was reported as saved, or what was being saved next.
        let value = value(&model).expect("one value");
        assert!(value == last || value == last + 0.5, "round {round}: {value} on disk, {last} saved");
        let logged = replay_range(&folder.path().join("log")).expect("a log");
        assert!(logged.end >= strategy.generation(), "{logged:?} {}", strategy.generation());
        let mut names = std::fs::read_dir(folder.path().join("checkpoints")).expect("reads");
        let hidden = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.expect("an entry").file_name().to_string_lossy().starts_with('.')
        };
        interrupted += usize::from(names.any(hidden));
    }
    // Canary: kills do hit saves, and leave something unfinished.
    assert!(interrupted > 0, "no save was interrupted in {ROUNDS} rounds");
}
