//! Sigma and learning rate that are set while a strategy runs, in checkpoints and replay logs; functions of the program in files.

use crate::reliability::support::{LearningModel, Net, generation};
use burn::optim::AdamConfig;
use eggroll_core::EggrollConfig;
use eggroll_run::*;
use eggroll_train::*;
use std::path::Path;

const GENERATIONS: u64 = 8;

fn config() -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_population_size(12)
}

/// Sets something before most generations.
fn adjust(strategy: &mut EvolutionStrategy) {
    match strategy.generation() {
        2 => strategy.set_sigma(0.5).expect("a sigma"),
        3 => strategy.set_learning_rate(0.01).expect("a rate"),
        5 => strategy.set_sigma(None).expect("the schedule's"),
        6 => strategy.set_learning_rate(0.3).expect("a rate"),
        _ => {}
    }
}

/// Trains up to a generation; logs if there is a log.
fn train(strategy: &mut EvolutionStrategy, mut model: Net, until: u64, mut log: Option<&mut ReplayLog>) -> Net {
    while strategy.generation() < until {
        adjust(strategy);
        model = generation(strategy, model, log.as_deref_mut());
    }
    model
}

fn start(config: &EvolutionStrategyConfig) -> (EvolutionStrategy, Net) {
    let model = Net::start();
    (config.init(&model), model)
}

fn digest(until: u64) -> String {
    let (mut strategy, model) = start(&config());
    parameter_digest(&train(&mut strategy, model, until, None))
}

#[test]
fn checkpoints_have_them() {
    for at in 1..GENERATIONS {
        let folder = tempfile::tempdir().expect("a folder");
        let checkpoints = Checkpoints::new(folder.path());
        let (mut strategy, model) = start(&config());
        let model = train(&mut strategy, model, at, None);
        checkpoints.save(&strategy, &model).expect("saves");
        let (mut strategy, model) = checkpoints.load_latest(Net::start()).expect("loads").expect("is there");
        let model = train(&mut strategy, model, GENERATIONS, None);
        assert_eq!(parameter_digest(&model), digest(GENERATIONS), "{at}");
    }
    let (mut strategy, mut plain) = start(&config());
    for _ in 0..GENERATIONS {
        let population = strategy.ask();
        let fitness = plain.fitness(&population);
        strategy.tell(&mut plain, population, fitness).expect("a generation");
    }
    assert_ne!(parameter_digest(&plain), digest(GENERATIONS), "canary: nothing was set");
}

/// A log makes the model of every generation, also where it is continued after a checkpoint and its later records are dropped.
#[test]
fn replay_logs_have_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.replay");
    let logged = |strategy: &mut EvolutionStrategy, model: Net, until: u64| {
        let mut log = ReplayLog::open(&path, strategy, &model).expect("a log");
        train(strategy, model, until, Some(&mut log))
    };
    let (mut strategy, model) = start(&config());
    let model = logged(&mut strategy, model, 4);
    let (record, saved) = (strategy.to_record(), model.clone());
    logged(&mut strategy, model, 7);
    let mut resumed = config().init(&saved).load_record(record);
    logged(&mut resumed, saved, GENERATIONS);
    for until in 0..=GENERATIONS {
        let (strategy, model) = replay(&path, Net::start(), Some(until)).expect("replays");
        assert_eq!(parameter_digest(&model), digest(until), "{until}");
        assert_eq!(strategy.generation(), until);
    }
    let (middle, model) = replay(&path, Net::start(), Some(5)).expect("replays");
    let (_, model) = replay_from(&path, middle, model, None).expect("replays");
    assert_eq!(parameter_digest(&model), digest(GENERATIONS));
}

/// A checkpoint names the functions of the program that it cannot have.
#[test]
fn missing_functions_are_named() {
    let ranks = CustomShaping::new("ranks", |scores| FitnessShaping::CenteredRank.shape(scores));
    let sigma = CustomSigma::new("falling", |generation| 0.1 / (1.0 + generation as f64));
    let config = config().with_shaping(ranks).with_sigma(sigma);
    let folder = tempfile::tempdir().expect("a folder");
    let (strategy, model) = start(&config);
    let saved: &Path = &Checkpoints::new(folder.path()).save(&strategy, &model).expect("saves");
    let error = load(saved, Net::start()).err().expect("refused").to_string();
    assert!(error.contains("\"falling\" is a function of the program that saved this"), "{error}");
}
