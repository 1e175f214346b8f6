//! What a run takes from the model that it began with: spreads that noise is relative to, and what parameters decay to.

use crate::reliability::support::{Net, Task, config as of, train};
use burn::module::{Module, ModuleMapper, Param};
use burn::optim::AdamConfig;
use burn::tensor::Tensor;
use eggroll_core::EggrollConfig;
use eggroll_run::Error;
use eggroll_run::*;
use eggroll_train::*;
use std::fs;
use std::path::Path;

const GENERATIONS: u64 = 6;

fn plain() -> EvolutionStrategyConfig {
    of(EggrollConfig::new(), AdamConfig::new())
}

fn config() -> EvolutionStrategyConfig {
    plain().with_noise_scale(NoiseScale::RelativeToSpread).with_scales([("second.*", 0.5)]).with_anchor_decay(0.5)
}

struct Times(f64);

impl ModuleMapper for Times {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|value| value * self.0)
    }
}

fn other() -> Net {
    Net::start().map(&mut Times(1.5))
}

fn digest(config: &EvolutionStrategyConfig, until: u64) -> String {
    let start = Net::start();
    parameter_digest(&train(&mut config.init(&start), start, until, None))
}

/// A folder with the checkpoint of generation `at`.
fn saved(config: &EvolutionStrategyConfig, at: u64, folder: &Path) -> Checkpoints {
    let checkpoints = Checkpoints::new(folder);
    let start = Net::start();
    let mut strategy = config.init(&start);
    let model = train(&mut strategy, start, at, None);
    checkpoints.save(&strategy, &model).expect("saves");
    checkpoints
}

#[test]
fn checkpoints_continue_bit_for_bit() {
    let relative = plain().with_noise_scale(NoiseScale::RelativeToSpread);
    for (config, first) in [(config(), Net::start as fn() -> Net), (relative, other)] {
        for at in 0..3 {
            let folder = tempfile::tempdir().expect("a folder");
            let loaded = saved(&config, at, folder.path()).load_latest(first()).expect("loads");
            let (mut strategy, model) = loaded.expect("is there");
            let model = train(&mut strategy, model, GENERATIONS, None);
            assert_eq!(parameter_digest(&model), digest(&config, GENERATIONS), "{at}");
        }
        assert_ne!(digest(&config, GENERATIONS), digest(&plain(), GENERATIONS), "canary");
    }
}

/// Another first model is no damage that an older checkpoint could make good.
#[test]
fn checkpoints_of_another_anchor_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoints = saved(&config(), 2, folder.path());
    let error = checkpoints.load_latest(other()).err().expect("refused");
    assert!(matches!(&error, Error::Saved(SavedError::Start { .. })), "{error}");
    let text = error.to_string();
    let digests = [Net::start(), other()].map(|model| config().init(&model).anchor_digest().expect("one").to_owned());
    assert!(text.contains("strategy.json") && digests.iter().all(|digest| text.contains(digest)), "{text}");
    assert!(load(&checkpoints.list().expect("a list")[0], other()).is_err());
}

/// Without relative noise and decay a checkpoint is as it was before there were such.
#[test]
fn files_of_earlier_versions() {
    let folder = tempfile::tempdir().expect("a folder");
    let read = |config: &EvolutionStrategyConfig, name: &str| {
        let path = saved(config, 1, &folder.path().join(name)).list().expect("a list").remove(0);
        fs::read_to_string(path.join("strategy.json")).expect("reads")
    };
    let (earlier, now) = (read(&plain(), "plain"), read(&config(), "relative"));
    let fields = ["spreads", "\"anchor\"", "noise_scale", "scales", "anchor_decay"];
    assert!(fields.iter().all(|field| !earlier.contains(field) && now.contains(field)), "{earlier}\n{now}");
}

#[test]
fn replay_logs_make_the_same_models() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.replay");
    let start = Net::start();
    let mut strategy = config().init(&start);
    let mut log = ReplayLog::create(&path, &strategy, &start).expect("a log");
    let model = train(&mut strategy, start, 3, Some(&mut log));
    let record = strategy.to_record();
    train(&mut strategy, model.clone(), GENERATIONS, Some(&mut log));
    drop(log);
    for until in [0, 3, GENERATIONS] {
        let (_, made) = replay(&path, Net::start(), Some(until)).expect("replays");
        assert_eq!(parameter_digest(&made), digest(&config(), until), "{until}");
    }

    // From the middle, with a strategy that has the start of the run, and with others.
    let resumed = || config().init(&model).try_with_anchor(&Net::start()).expect("the same parameters");
    let strategy = resumed().try_load_record(record).expect("loads");
    let (_, made) = replay_from(&path, strategy.clone(), model.clone(), None).expect("replays");
    assert_eq!(parameter_digest(&made), digest(&config(), GENERATIONS));
    let refused = |strategy: EvolutionStrategy| {
        let error = replay_from(&path, strategy.clone(), model.clone(), None).map(drop).expect_err("refused");
        assert!(matches!(&error, Error::Saved(SavedError::Start { .. })), "{error}");
        assert!(ReplayLog::resume(&path, &strategy).is_err());
        error.to_string()
    };
    let spreads = refused(resumed());
    assert!(spreads.contains("the spread of \"first.weight\" was 0."), "{spreads}");
    let with_spreads = |strategy: EvolutionStrategy| {
        let spreads = config().init(&Net::start()).to_record().spreads;
        let record = StrategyRecord { spreads, ..strategy.to_record() };
        strategy.load_record(record)
    };
    let anchor = refused(with_spreads(config().init(&model)));
    assert!(anchor.contains("the digest of the decay's anchor was "), "{anchor}");
    ReplayLog::resume(&path, &strategy).expect("its own");
}

/// A log whose strategy did not begin with the model that it logs first.
#[test]
fn replay_does_not_guess_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.replay");
    let start = Net::start();
    let strategy = plain().with_anchor_decay(0.5).init(&start);
    let mut strategy = strategy.try_with_anchor(&other()).expect("the same parameters");
    let first = strategy.clone();
    let mut log = ReplayLog::create(&path, &strategy, &start).expect("a log");
    let model = train(&mut strategy, start.clone(), 2, Some(&mut log));
    drop(log);
    let error = replay(&path, start.clone(), None).map(drop).expect_err("refused").to_string();
    assert!(error.contains("the digest of the decay's anchor was "), "{error}");
    let (_, made) = replay_from(&path, first, start, None).expect("replays");
    assert_eq!(parameter_digest(&made), parameter_digest(&model));
}

/// What a run of the loop saves on its way continues too.
#[test]
fn training_loops_continue() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |until: u64| {
        let checkpoints = Checkpoints::new(folder.path()).with_config(&config());
        let (mut strategy, model) = match checkpoints.load_latest(Net::start()).expect("loads") {
            Some(loaded) => loaded,
            None => {
                let model = Net::start();
                (config().init(&model), model)
            }
        };
        let evaluate = |model: &Net, population: &Population| Ok(model.fitness(population));
        let go_on = |_: &Net, _: &GenerationReport| Ok(std::ops::ControlFlow::Continue(()));
        let training = TrainingLoop::new(until).with_checkpoints(checkpoints, 1);
        parameter_digest(&training.run(&mut strategy, model, evaluate, go_on).expect("trains"))
    };
    run(3);
    assert_eq!(run(GENERATIONS), digest(&config(), GENERATIONS));
}
