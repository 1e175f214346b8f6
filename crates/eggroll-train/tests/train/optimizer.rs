//! Defaults of optimizers by name.

use crate::support::layer;
use burn::module::Param;
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Tensor};
use eggroll_nn::Linear;
use eggroll_train::OptimizerConfig;
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
