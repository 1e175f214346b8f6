//! The numbers of the log, against values computed here.

use crate::learner::task::{Scripted, config, layer, log, training};
use burn::tensor::{DType, Device, Int, Tensor};
use eggroll_core::QEggrollConfig;
use eggroll_core::ops::integer::{Rounding, log_likelihood};
use eggroll_nn::Linear;
use eggroll_nn::integer::{Linear as IntegerLinear, LinearConfig};
use eggroll_run::diagnostics::{PairStatistics, SplitHalf, integer_statistics};
use eggroll_run::*;
use eggroll_train::*;
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

fn length(tensor: Tensor<2>) -> f64 {
    tensor.into_data().iter::<f64>().map(|value| value * value).sum::<f64>().sqrt()
}

fn close(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap_or_else(|| panic!("no number: {found}"));
    assert!((found - expected).abs() <= 1e-4 * expected.abs(), "{found} {expected}");
}

/// One generation by hand: fitness, gradient, step, and their halves.
#[test]
fn by_hand() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(1).with_diagnostics(true);
    let model = layer();
    let strategy = config.strategy.try_init(&model).expect("a strategy");
    let population = strategy.ask();
    let fitness = Scripted::default().evaluate(&model, &population).expect("fitness");
    let gradient = strategy.gradient(&model, &population, &fitness).expect("belongs together").expect("differs");
    let gradient = gradient.get::<2>(model.weight.id).expect("a gradient");
    let halves = strategy.gradient_halves(&model, &population, &fitness).expect("belongs together").expect("differs");
    let sum = halves[0].get::<2>(model.weight.id).expect("half") + halves[1].get::<2>(model.weight.id).expect("half");
    assert!(length(sum - gradient.clone()) < 1e-4 * length(gradient.clone()));
    let split = SplitHalf::new(&model, &halves).expect("not 0");

    let outcome = training(folder.path(), config).launch(model, &mut Scripted::default());
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    let line = &log(folder.path())[0];
    let values = fitness.values();
    close(&line["fitness_mean"], values.iter().map(|f| f64::from(*f)).sum::<f64>() / 16.0);
    close(&line["fitness_best"], values.iter().copied().fold(f32::MIN, f32::max).into());
    close(&line["fitness_worst"], values.iter().copied().fold(f32::MAX, f32::min).into());
    close(&line["sigma"], 0.02);
    close(&line["learning_rate"], 0.5);
    close(&line["gradient_norm"], length(gradient.clone()));
    close(&line["update_norm"], 0.5 * length(gradient));
    close(&line["parameter_norm"], length(outcome.model.weight.val()));
    close(&line["split_half_correlation"], split.correlation);
    close(&line["signal_to_noise"], split.signal_to_noise());
    close(&line["curvature_to_slope"], PairStatistics::new(&fitness).curvature_to_slope());
    assert_eq!(line["tied_pairs"], 0.0);
    assert_eq!(line["non_finite_fitness"], 0.0);
    // No integers, so no numbers of theirs.
    assert_eq!(line.get("least_entropy"), None);
}

/// A generation without a step has a gradient and a step of length 0.
#[test]
fn equal_fitness_has_no_gradient() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut equal = |model: &Linear, population: &Population| {
        let _used = population.evaluate(|members| {
            let x = Tensor::<2>::eye(3, &Device::flex());
            members.mean(model.forward_shared(x))
        });
        Ok(vec![1.0; 16].into())
    };
    let training = EsTraining::new(folder.path(), config(1).with_diagnostics(true)).with_display(Display::Progress);
    let outcome = training.launch(layer(), &mut equal).unwrap_or_else(|error| panic!("{error}"));
    let line = &log(folder.path())[0];
    assert_eq!(line["gradient_norm"], 0.0);
    assert_eq!(line["update_norm"], 0.0);
    assert_eq!(line["tied_pairs"], 1.0);
    let expected = "sigma may be too small: at 0.02, 100.0 % of the pairs have equal fitness. Raise it, or take a score with more distinct values";
    assert_eq!(outcome.warnings, [expected]);
    assert_eq!(line["warnings"], expected);
}

/// A diagnosis looks at what layers are given too: at rows of ±1, which only an activation at its ends would give. Without diagnostics
/// the score is not called once more.
#[test]
fn inputs_of_layers_are_looked_at() {
    let rows: Vec<f32> = (0..48).map(|i| if (i * i) % 7 < 3 { 1.0 } else { -1.0 }).collect();
    let x = Tensor::<1>::from_floats(&rows[..], &Device::flex()).reshape([16, 3]);
    let run = |diagnostics: bool| {
        let calls = AtomicUsize::new(0);
        let mut score = |model: &Linear, population: &Population| {
            Ok(population.evaluate(|members| {
                calls.fetch_add(members.count(), Relaxed);
                -members.mean((model.forward(members.repeat(x.clone())) - 1.0).square())
            }))
        };
        let folder = tempfile::tempdir().expect("a folder");
        let config = config(1).with_diagnostics(diagnostics);
        let training = EsTraining::new(folder.path(), config).with_display(Display::Progress);
        let outcome = training.launch(layer(), &mut score).unwrap_or_else(|error| panic!("{error}"));
        let said = outcome
            .warnings
            .iter()
            .any(|warning| warning.starts_with("activations may be saturated: 100.0 % of the inputs"));
        (said, calls.into_inner(), parameter_digest(&outcome.model))
    };
    let (looked, plain) = (run(true), run(false));
    assert_eq!((looked.0, looked.1), (true, 18));
    assert_eq!((plain.0, plain.1), (false, 16));
    assert_eq!(looked.2, plain.2, "looking changes nothing");
}

/// A model of integers has their numbers and none of floats.
#[test]
fn integer_models() {
    let device = Device::flex();
    let x = Tensor::<2, Int>::full([1, 16], 16, (&device, DType::I8));
    let mut score = |model: &IntegerLinear, population: &Population| {
        Ok(population.evaluate(|members| {
            let logits = model.forward(members.repeat(x.clone()));
            log_likelihood(
                logits,
                Tensor::<1, Int>::full([members.count()], 2, &device),
                members.count(),
                Rounding::Floor,
            )
        }))
    };
    let folder = tempfile::tempdir().expect("a folder");
    let strategy = EvolutionStrategyConfig::integer(QEggrollConfig::new()).with_population_size(64);
    let config = EsTrainingConfig::new(strategy, 2).with_validate_every(1).with_diagnostics(true);
    let training = EsTraining::new(folder.path(), config).with_display(Display::Progress);
    let model = LinearConfig::new(16, 4).init(&device);
    let outcome = training.launch(model.clone(), &mut score).unwrap_or_else(|error| panic!("{error}"));
    let lines = log(folder.path());
    let share = |line: &Value| line["changed_weights"].as_f64().expect("a share");
    // The schedule begins with every weight moving by one.
    assert_eq!((share(&lines[0]), lines[0]["most_saturated"].as_f64()), (1.0, Some(0.0)));
    let entropy = integer_statistics(&outcome.model)[0].entropy;
    close(&lines[1]["least_entropy"], entropy);
    let floats = ["gradient_norm", "sigma", "signal_to_noise", "learning_rate"];
    assert!(floats.iter().all(|name| lines[1].get(*name).is_none()), "{}", lines[1]);
}
