//! Who ends a run and who keeps its checkpoints: Burn's strategies, the interrupter, the task.

use crate::learner::task::{EVERY, Scripted, Seen, config, layer, log, saved, training};
use burn::train::checkpoint::KeepLastNCheckpoints;
use eggroll_nn::LinearConfig;
use eggroll_run::*;

/// Best at the third validation.
const SCRIPT: [f64; 6] = [1.0, 2.0, 3.0, 2.5, 2.0, 1.0];

fn score() -> MetricTarget {
    MetricTarget::highest("Score")
}

fn early(patience: usize) -> EsTrainingConfig {
    config(60).with_early_stopping(Some(EarlyStoppingConfig::new(score(), patience)))
}

#[test]
fn early_stopping_stops() {
    let stop = |config: EsTrainingConfig| {
        let folder = tempfile::tempdir().expect("a folder");
        let outcome = training(folder.path(), config).launch(layer(), &mut Scripted::new(SCRIPT));
        let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(saved(folder.path(), "checkpoints"), [outcome.strategy.generation()]);
        (outcome.stop, outcome.strategy.generation())
    };
    assert_eq!(stop(early(2)), (StopReason::Early { epoch: 5 }, 50));
    assert_eq!(stop(early(3)), (StopReason::Finished, 60));
    assert_eq!(stop(early(9)), (StopReason::Finished, 60));
    let mut lowest = early(1);
    lowest.early_stopping.as_mut().expect("set").metric.highest = false;
    assert_eq!(stop(lowest), (StopReason::Early { epoch: 2 }, 20));
    // Metrics of training will do as well: fitness improves here, the numbers of generations grow.
    let grows = |highest| {
        let metric = MetricTarget::highest("Twice").with_validation(false).with_highest(highest);
        config(60).with_early_stopping(Some(EarlyStoppingConfig::new(metric, 2)))
    };
    assert_eq!(stop(grows(true)).0, StopReason::Finished);
    assert_eq!(stop(grows(false)).0, StopReason::Early { epoch: 3 });
}

/// What early stopping has seen survives an interruption: it stops where it would have.
#[test]
fn early_stopping_goes_on_after_an_interruption() {
    for at in [24, 39, 43] {
        let folder = tempfile::tempdir().expect("a folder");
        let first = training(folder.path(), early(2));
        let mut task = Scripted::new(SCRIPT);
        task.interrupt = Some((at, first.interrupter()));
        let stop = first.launch(layer(), &mut task).unwrap_or_else(|error| panic!("{error}")).stop;
        assert_eq!(stop, StopReason::Interrupted(Interruption { reason: Some("enough".into()) }));
        let outcome = training(folder.path(), early(2)).launch(layer(), &mut Scripted::new(SCRIPT));
        let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(outcome.stop, StopReason::Early { epoch: 5 });
        // Again there is nothing left to do.
        let outcome = training(folder.path(), early(2)).launch(layer(), &mut Scripted::default());
        let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((outcome.stop, outcome.strategy.generation()), (StopReason::Early { epoch: 5 }, 50));
        // Without early stopping it continues.
        let outcome = training(folder.path(), config(60)).launch(layer(), &mut Scripted::new(SCRIPT));
        let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((outcome.stop, outcome.strategy.generation()), (StopReason::Finished, 60));
    }
}

#[test]
fn an_interruption_saves() {
    let folder = tempfile::tempdir().expect("a folder");
    let training = training(folder.path(), config(60));
    let mut task = Scripted { interrupt: Some((6, training.interrupter())), ..Scripted::default() };
    let outcome = training.launch(layer(), &mut task).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.stop, StopReason::Interrupted(Interruption { reason: Some("enough".into()) }));
    assert_eq!(saved(folder.path(), "checkpoints"), [7]);
    assert_eq!(log(folder.path()).len(), 7);
}

#[test]
fn errors_of_the_task_save_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut task = Scripted { fail: Some(3), ..Scripted::default() };
    let result = training(folder.path(), config(60)).launch(layer(), &mut task);
    assert_eq!(result.err().expect("fails").to_string(), "the simulator is gone");
    assert_eq!(saved(folder.path(), "checkpoints"), [3]);
    assert_eq!(log(folder.path()).len(), 3);
}

#[test]
fn hooks_are_called_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut task = Scripted::new(SCRIPT);
    training(folder.path(), config(12)).launch(layer(), &mut task).unwrap_or_else(|error| panic!("{error}"));
    let mut expected = vec![Seen::Begin(0)];
    for g in 0..12 {
        expected.extend([Seen::Before(g), Seen::After(g)]);
        if [9, 11].contains(&g) {
            expected.push(Seen::Validate(g));
        }
    }
    assert_eq!(task.seen, expected);
}

#[test]
fn the_best_epoch_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let best = config(60).with_keep_best(Some(score()));
    let first = training(folder.path(), best.clone());
    let mut task = Scripted::new([1.0, 3.0, 2.0]);
    task.interrupt = Some((32, first.interrupter()));
    first.launch(layer(), &mut task).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(saved(folder.path(), "kept"), [20]);
    // The run that continues knows which one it was.
    let mut task = Scripted::new([0.0, 0.0, 0.0, 2.5, 4.0, 1.0]);
    training(folder.path(), best).launch(layer(), &mut task).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(saved(folder.path(), "kept"), [5 * EVERY]);
    let kept = Checkpoints::new(folder.path().join("kept"));
    let model = LinearConfig::new(3, 2).with_bias(false).init(&burn::tensor::Device::flex());
    assert_eq!(kept.load_latest(model).expect("loads").expect("is there").0.generation(), 50);
}

#[test]
fn any_checkpointing_strategy_of_burn_will_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let training = training(folder.path(), config(45)).with_checkpointing(KeepLastNCheckpoints::new(2));
    training.launch(layer(), &mut Scripted::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(saved(folder.path(), "kept"), [40, 45]);
}
