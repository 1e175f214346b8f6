//! What a run takes from the model that it began with: spreads that noise is relative to, and what parameters decay to.

use crate::reliability::support::{LearningModel, Net, config as of, train};
use burn::module::{Module, ModuleMapper, Param};
use burn::optim::AdamConfig;
use burn::tensor::Tensor;
use eggroll_core::EggrollConfig;
use eggroll_run::Error;
use eggroll_run::*;
use eggroll_train::*;

const GENERATIONS: u64 = 6;

fn plain() -> EvolutionStrategyConfig {
    of(EggrollConfig::new(), AdamConfig::new())
}

fn config() -> EvolutionStrategyConfig {
    plain().with_noise_scale(NoiseScale::RelativeToSpread).with_scales([("second.*", 0.5)]).with_anchor_decay(0.5)
}

struct ScaleFloats(f64);

impl ModuleMapper for ScaleFloats {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|value| value * self.0)
    }
}

fn other() -> Net {
    Net::start().map(&mut ScaleFloats(1.5))
}

/// Another first model is no damage that an older checkpoint could make good.
#[test]
fn checkpoints_of_another_anchor_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoints = Checkpoints::new(folder.path());
    let start = Net::start();
    let mut strategy = config().init(&start);
    let model = train(&mut strategy, start, 2, None);
    checkpoints.save(&strategy, &model).expect("saves");
    let error = checkpoints.load_latest(other()).err().expect("refused");
    assert!(matches!(&error, Error::Saved(SavedError::Start { .. })), "{error}");
    let text = error.to_string();
    let digests = [Net::start(), other()].map(|model| config().init(&model).anchor_digest().expect("one").to_owned());
    assert!(text.contains("strategy.json") && digests.iter().all(|digest| text.contains(digest)), "{text}");
    assert!(load(&checkpoints.list().expect("a list")[0], other()).is_err());
}

/// A replay from the middle needs the spreads and the anchor of the first model.
#[test]
fn replay_from_the_middle_has_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.replay");
    let start = Net::start();
    let mut strategy = config().init(&start);
    let mut log = ReplayLog::create(&path, &strategy, &start).expect("a log");
    let model = train(&mut strategy, start, 3, Some(&mut log));
    let record = strategy.to_record();
    let last = train(&mut strategy, model.clone(), GENERATIONS, Some(&mut log));
    drop(log);
    // With a strategy that has the start of the run, and with others.
    let resumed = || config().init(&model).try_with_anchor(&Net::start()).expect("the same parameters");
    let strategy = resumed().try_load_record(record).expect("loads");
    let (_, made) = replay_from(&path, strategy.clone(), model.clone(), None).expect("replays");
    assert_eq!(parameter_digest(&made), parameter_digest(&last));
    let refused = |strategy: EvolutionStrategy| {
        let error = replay_from(&path, strategy.clone(), model.clone(), None).map(drop).expect_err("refused");
        assert!(matches!(&error, Error::Saved(SavedError::Start { .. })), "{error}");
        assert!(ReplayLog::resume(&path, &strategy).is_err());
        error.to_string()
    };
    let spreads = refused(resumed());
    assert!(spreads.contains("the spread of \"first.weight\" is 0."), "{spreads}");
    let with_spreads = |strategy: EvolutionStrategy| {
        let spreads = config().init(&Net::start()).to_record().spreads;
        let record = StrategyRecord { spreads, ..strategy.to_record() };
        strategy.load_record(record)
    };
    let anchor = refused(with_spreads(config().init(&model)));
    assert!(anchor.contains("the decay's anchor has the digest "), "{anchor}");
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
    assert!(error.contains("the decay's anchor has the digest "), "{error}");
    let (_, made) = replay_from(&path, first, start, None).expect("replays");
    assert_eq!(parameter_digest(&made), parameter_digest(&model));
}
