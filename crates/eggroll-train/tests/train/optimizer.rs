//! Defaults of optimizers by name.

use crate::support::layer;
use burn::lr_scheduler::LrSchedulerConfig;
use burn::module::Param;
use burn::optim::grad_clipping::GradientClippingConfig;
use burn::optim::{AdamConfig, AdamWConfig, GradientsParams, SgdConfig};
use burn::tensor::{Device, Tensor};
use eggroll_core::EggrollConfig;
use eggroll_nn::Linear;
use eggroll_train::{ClipUpConfig, ConfigError, EvolutionStrategyConfig, MuonAdamWConfig, OptimizerConfig};
use serde_json::{Value, json};

fn text(config: &OptimizerConfig) -> Value {
    serde_json::to_value(config).expect("writes")
}

fn read(config: Value) -> OptimizerConfig {
    serde_json::from_value(config).expect("reads")
}

/// How far the first step moves a weight, at a learning rate of 1 and gradients of this size.
fn first_step(config: &OptimizerConfig, gradient: f64) -> f32 {
    let model = Linear { weight: Param::from_tensor(Tensor::zeros([2, 2], &Device::flex())), bias: None };
    let mut gradients = GradientsParams::new();
    gradients.register(model.weight.id, Tensor::<2>::full([2, 2], gradient, &Device::flex()));
    let moved = config.init().step(1.0, model, gradients);
    -moved.weight.val().mean().into_scalar::<f32>()
}

/// Estimates at a small sigma are as small as Burn's epsilon.
#[test]
fn epsilons_are_far_below_estimates() {
    for name in ["adam", "adam_w", "rms_prop", "ada_grad", "adan", "lamb", "muon"] {
        let config: OptimizerConfig = name.parse().expect("registered");
        assert_eq!(text(&read(json!({ "name": name }))), text(&config), "{name}");
        let settings = text(&config);
        let epsilon = settings.get("others").unwrap_or(&settings)["epsilon"].as_f64().expect("a number");
        assert!((epsilon - 1e-8).abs() < 1e-14, "{name}: {epsilon}");
    }
    assert_eq!(text(&OptimizerConfig::default()), text(&"adam".parse().expect("registered")));
    let given = read(json!({ "name": "adam", "epsilon": 1e-5 }));
    assert_eq!(text(&given), text(&AdamConfig::new().into()), "what is given counts");

    let (long, small) = (first_step(&OptimizerConfig::default(), 0.1), first_step(&OptimizerConfig::default(), 3.6e-5));
    assert!((small / long - 1.0).abs() < 1e-2, "{small} {long}");
    let canary = first_step(&AdamConfig::new().into(), 3.6e-5);
    assert!((canary - 0.78).abs() < 0.01, "canary: {canary}");
}

/// Burn's AdamW would clip, but not the matrices.
#[test]
fn clipping_that_leaves_out_matrices_is_refused() {
    let clipping = GradientClippingConfig::Norm(1.0);
    let others = AdamWConfig::new().with_grad_clipping(Some(clipping));
    let error = OptimizerConfig::from(MuonAdamWConfig::new().with_others(others)).validate().expect_err("refused");
    assert!(matches!(error, ConfigError::MuonClipping), "{error}");
    assert!(OptimizerConfig::from(MuonAdamWConfig::new()).validate().is_ok(), "canary");
}

/// Choosing another optimizer by name is no trap: on random scores, steps are a share of the noise that neither stands still nor drowns
/// the weights.
#[test]
fn default_rates_fit_their_optimizers() {
    const GENERATIONS: u64 = 10;
    let moved = |config: EvolutionStrategyConfig| {
        let mut model = layer(16, 16);
        let mut strategy = config.with_population_size(32).init(&model);
        let mut squares = 0.0;
        for generation in 0..GENERATIONS {
            let scores = (0..32).map(|member| ((member * 7 + generation * 11) as f32).sin()).collect::<Vec<_>>();
            let (population, before) = (strategy.ask(), model.clone());
            strategy.tell(&mut model, population, scores.into()).expect("a generation");
            squares += (model.weight.val() - before.weight.val()).square().mean().into_scalar::<f32>();
        }
        f64::from(squares / GENERATIONS as f32).sqrt() / 0.02
    };
    for name in OptimizerConfig::NAMES.iter().filter(|name| !name.starts_with("integer_")) {
        let optimizer: OptimizerConfig = name.parse().expect("registered");
        let of_sigma = moved(EvolutionStrategyConfig::new(EggrollConfig::new(), optimizer));
        assert!((0.01..0.6).contains(&of_sigma), "{name}: steps of {of_sigma} sigma");
    }
    let canary = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_learning_rate(0.002);
    assert!(moved(canary) < 0.005, "canary: Adam's rate is not that of SGD");
}

/// The rate of a configuration: by default that of its optimizer, with the settings that it has; a given one counts, and files say it.
#[test]
fn a_given_rate_counts() {
    let rate = |config: &EvolutionStrategyConfig| match config.learning_rate {
        LrSchedulerConfig::Constant(rate) => rate,
        ref other => panic!("{other:?}"),
    };
    let new = |optimizer: OptimizerConfig| EvolutionStrategyConfig::new(EggrollConfig::new(), optimizer);
    let read = |config: Value| serde_json::from_value::<EvolutionStrategyConfig>(config).expect("reads");
    let clip_up = new(ClipUpConfig::new().with_max_speed(0.3).into());
    assert_eq!((rate(&clip_up), rate(&new(OptimizerConfig::default()))), (0.15, 0.002));
    let short = json!({ "noiser": { "name": "eggroll" }, "optimizer": { "name": "clip_up", "max_speed": 0.5 } });
    assert_eq!(rate(&read(short.clone())), 0.25);
    let mut given = short;
    given["learning_rate"] = json!({ "Constant": 0.002 });
    assert_eq!(rate(&read(given)), 0.002);
    assert_eq!(rate(&clip_up.clone().with_learning_rate(0.01)), 0.01);
    let saved = serde_json::to_value(&clip_up).expect("writes");
    assert_eq!(saved["learning_rate"], json!({ "Constant": 0.15 }));
}
