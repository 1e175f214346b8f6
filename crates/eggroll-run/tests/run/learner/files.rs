//! What a run writes, and what it refuses.

use crate::learner::task::{EVERY, Scripted, config, layer, log, saved, training};
use burn::config::Config;
use burn::tensor::{Device, Int, Tensor};
use burn::train::ClassificationOutput;
use burn::train::logger::FileMetricLogger;
use burn::train::metric::AccuracyMetric;
use eggroll_core::{BaselineSubtractionConfig, counters};
use eggroll_nn::Linear;
use eggroll_run::*;
use eggroll_train::*;
use std::fs;

#[test]
fn a_run_without_a_terminal_writes_its_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(25).with_checkpoint_every(20).with_keep_checkpoints(9);
    let logger = FileMetricLogger::new(folder.path().join("burn"));
    let mut task = Scripted::new([1.0, 2.0, 3.0]);
    let outcome = training(folder.path(), config.clone()).with_metric_logger(logger).launch(layer(), &mut task);
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((outcome.stop, outcome.strategy.generation()), (StopReason::Finished, 25));

    assert_eq!(saved(folder.path(), "checkpoints"), [20, 25]);
    let saved = EsTrainingConfig::of_run(folder.path()).expect("a configuration");
    assert_eq!(saved.to_string(), config.to_string());
    let lines = log(folder.path());
    let of = |split: &str| lines.iter().filter(|line| line["split"] == split).collect::<Vec<_>>();
    let (train, valid) = (of("train"), of("valid"));
    assert_eq!((train.len(), valid.len()), (25, 3));
    for (g, line) in train.iter().enumerate() {
        assert_eq!(line["generation"], g);
        assert_eq!(line["epoch"], g as u64 / EVERY + 1);
        assert_eq!(line["twice"], 2.0 * g as f64);
    }
    let scores: Vec<_> = valid.iter().map(|line| (&line["generation"], &line["score"])).collect();
    assert_eq!(scores.len(), 3);
    assert!(scores.iter().zip([(9, 1.0), (19, 2.0), (24, 3.0)]).all(|(a, b)| *a.0 == b.0 && *a.1 == b.1), "{scores:?}");
    // Burn's logger together with ours: the last line is the mean of the epoch.
    let twice = fs::read_to_string(folder.path().join("burn/train/epoch-3/Twice.log")).expect("a log");
    assert_eq!(twice.lines().last().expect("lines"), "44,final");
}

/// Reports are made every so many generations, and at the end of an epoch; between them a generation reads once.
#[test]
fn reads_between_reports() {
    let reads = |report_every: u64, generations: u64| {
        let folder = tempfile::tempdir().expect("a folder");
        let config = config(generations).with_report_every(report_every).with_validate_every(1000);
        let before = counters::snapshot();
        let outcome = training(folder.path(), config).launch(layer(), &mut Scripted::default());
        assert_eq!(outcome.unwrap_or_else(|error| panic!("{error}")).stop, StopReason::Finished);
        ((counters::snapshot() - before).host_reads, log(folder.path()).len())
    };
    // The last generation and those divided by the interval are reported, with one more read each.
    assert_eq!(reads(6, 13), (13 + 3, 3));
    assert_eq!(reads(1, 13), (13 + 13, 13));
}

/// Burn's own outputs and metrics on the validation split.
#[test]
fn burns_metrics_of_a_validation() {
    struct Classify;

    impl EsTask<Linear> for Classify {
        type Output = ClassificationOutput;

        fn evaluate(&mut self, model: &Linear, population: &Population) -> Result<Fitness, UserError> {
            Scripted::default().evaluate(model, population)
        }

        fn validate(&mut self, _: &Linear, _: &GenerationReport) -> Result<Vec<ClassificationOutput>, UserError> {
            let device = Device::flex();
            let batch = |target: i32| {
                let output = Tensor::from_floats([[0.0, 1.0]], &device);
                let targets = Tensor::<1, Int>::from_ints([target], &device);
                ClassificationOutput::new(Tensor::zeros([1], &device), output, targets)
            };
            Ok(vec![batch(1), batch(0), batch(1), batch(1)])
        }
    }

    let folder = tempfile::tempdir().expect("a folder");
    let training = EsTraining::new(folder.path(), config(EVERY)).with_display(Display::Progress);
    training
        .metric_valid(AccuracyMetric::new())
        .launch(layer(), &mut Classify)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(log(folder.path()).last().expect("a line")["accuracy"], 75.0);
}

#[test]
fn refusals_name_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |config: EsTrainingConfig| {
        let result = training(folder.path(), config).launch(layer(), &mut Scripted::new([1.0; 9]));
        result.err().expect("refused").to_string()
    };
    assert_eq!(refused(config(5).with_validate_every(0)), "validate_every must be at least 1 generation, not 0");
    assert_eq!(refused(config(5).with_report_every(0)), "report_every must be at least 1 generation, not 0");
    assert!(!folder.path().join("training.json").exists(), "before anything is written");
    let unknown = MetricTarget::highest("Accuracy");
    let message = "no metric is named \"Accuracy\"; there are [\"Score\"]";
    assert_eq!(refused(config(5).with_keep_best(Some(unknown.clone()))), message);
    assert_eq!(refused(config(5).with_early_stopping(Some(EarlyStoppingConfig::new(unknown, 2)))), message);

    // A number that no metric follows is not lost without a word.
    let without = EsTraining::new(folder.path(), config(5)).with_display(Display::Progress);
    let without = without.launch(layer(), &mut Scripted::default());
    assert!(
        without.err().expect("refused").to_string().starts_with("no metric is named \"Twice\"; there are [\"Evalu")
    );

    // Nothing has been trained yet: the run may be another one.
    training(folder.path(), config(5))
        .launch(layer(), &mut Scripted::new([1.0; 9]))
        .unwrap_or_else(|error| panic!("{error}"));
    let belongs = "training.json belongs to another run: its `";
    let logged = refused(config(9).with_replay_log(true));
    assert!(logged.ends_with(&format!("{belongs}replay_log` is false, this run's is true")), "{logged}");
    fs::write(folder.path().join("training.json"), "{\"generations\": 5}").expect("writes");
    let message = refused(config(5));
    assert!(message.contains("training.json") && message.contains("missing field `strategy`"), "{message}");
}

/// Two metrics of one column would lose one of them, in another way in each log.
#[test]
fn metrics_that_share_a_column_are_refused() {
    let launch = |train: &[&str], valid: &[&str]| {
        let folder = tempfile::tempdir().expect("a folder");
        let metric = |name: &&str| ScalarMetric::new(*name);
        let training = EsTraining::new(folder.path(), config(5)).with_display(Display::Progress);
        let training = train.iter().map(metric).fold(training, EsTraining::metric_train);
        let training = valid.iter().map(metric).fold(training, EsTraining::metric_valid);
        let result = training.metric_train(ScalarMetric::new("Twice")).launch(layer(), &mut Scripted::default());
        assert!(result.is_ok() || !folder.path().join("training.json").exists(), "before anything is written");
        result.err().map(|error| error.to_string())
    };
    let refused: [(&[&str], &[&str], &str); 10] = [
        (&["Top-1", "top 1"], &[], "\"top 1\" shares the column `top_1` of the logs with the metric \"Top-1\""),
        (&[], &["top 1", "TOP_1"], "\"TOP_1\" shares the column `top_1` of the logs with the metric \"top 1\""),
        (&["Top-1"], &["top 1"], "\"top 1\" shares the column"),
        (&["Loss", "Loss"], &[], "\"Loss\" shares the column `loss` of the logs with the metric \"Loss\""),
        (&["Generation"], &[], "what every row has as \"generation\""),
        (&[], &["Epoch"], "what every row has as \"epoch\""),
        (&["split"], &[], "what every row has as \"split\""),
        (&["Sigma"], &[], "the learner's \"Sigma\""),
        (&["warnings"], &[], "the learner's \"Warnings\""),
        (&[], &["fitness-mean"], "the learner's \"Fitness mean\""),
    ];
    for (train, valid, expected) in refused {
        let message = launch(train, valid).expect("refused");
        assert!(message.contains(expected), "{message}");
    }
    // Training and validation have separate rows.
    assert_eq!(launch(&["Loss", "Top 10"], &["Loss", "Top 1", "Sigma"]), None);
    // A number of the learner's is not replaced by one of the task's, nor the other way round.
    let folder = tempfile::tempdir().expect("a folder");
    let mut task = Scripted { number: Some("Sigma"), ..Scripted::default() };
    let message = training(folder.path(), config(5)).launch(layer(), &mut task).err().expect("refused").to_string();
    assert!(
        message.contains("\"Sigma\" shares the column `sigma` of the logs with the learner's \"Sigma\""),
        "{message}"
    );
}

/// What a file leaves out is as the builder sets it.
#[test]
fn a_short_file_is_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("training.json");
    let read = |text: &str| {
        fs::write(&path, text).expect("writes");
        EsTrainingConfig::of_run(folder.path())
    };
    let strategy = r#""strategy": { "noiser": { "name": "baseline_subtraction" }, "optimizer": { "name": "adam" } }"#;
    let short = read(&format!("{{ {strategy}, \"generations\": 5, \"keep_checkpoints\": 4 }}")).expect("reads");
    let strategy_of = EvolutionStrategyConfig::new(BaselineSubtractionConfig::new(8), OptimizerConfig::default());
    assert_eq!(short.to_string(), EsTrainingConfig::new(strategy_of, 5).with_keep_checkpoints(4).to_string());
    // As an editor saves it.
    let marked =
        read(&format!("\u{feff}{{ {strategy}, \"generations\": 5, \"keep_checkpoints\": 4 }}")).expect("reads");
    assert_eq!(marked.to_string(), short.to_string());
    fs::write(folder.path().join("settings.json"), "\u{feff}7").expect("writes");
    assert_eq!(RunFolder::new(folder.path()).settings::<u8>().expect("reads"), 7);
    let error = read(&format!("{{ {strategy}, \"generations\": 5, \"epochs\": 4 }}")).expect_err("refused").to_string();
    assert!(error.contains("training.json") && error.contains("`epochs`") && error.contains("`replay_log`"), "{error}");
}

/// Settings of the program's own go with the configuration.
#[test]
fn settings_are_read_back() {
    let config = config(5).with_settings(serde_json::json!({ "hidden": [3, 4] }));
    let again = EsTrainingConfig::load_binary(config.to_string().as_bytes()).expect("reads");
    let settings: std::collections::BTreeMap<String, Vec<usize>> = again.read_settings().expect("settings");
    assert_eq!(settings["hidden"], [3, 4]);
    assert!(
        again.read_settings::<u8>().expect_err("refused").to_string().starts_with("the settings of the run are not")
    );
}
