//! Choosing what the estimate is fed to.

use burn::grad_clipping::GradientClippingConfig;
use burn::optim::{AdamConfig, AdamWConfig};
use eggroll::nn::LinearConfig;
use eggroll::prelude::*;

#[test]
fn chosen_in_code() {
    let model = LinearConfig::new(16, 4).init(&Device::flex());
    let decayed = AdamWConfig::new().with_weight_decay(0.01);
    let of_limited_speed = ClipUpConfig::new().with_max_speed(0.3);
    // Of each parameter alone, by Burn; and of all together.
    let clipped = AdamConfig::new().with_grad_clipping(Some(GradientClippingConfig::Value(0.1)));

    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), decayed)
        .with_frozen(["bias"]) // no noise, no update, no decay
        .with_clip_norm(1.0);
    assert!(config.try_init(&model).is_ok());
    assert!(EvolutionStrategyConfig::new(EggrollConfig::new(), of_limited_speed).try_init(&model).is_ok());
    assert!(EvolutionStrategyConfig::new(EggrollConfig::new(), clipped).try_init(&model).is_ok());
}

#[test]
fn chosen_in_a_file() {
    let text = r#"{
        "noiser": { "name": "eggroll", "rank": 2 },
        "optimizer": { "name": "adam_w", "weight_decay": 0.01 },
        "population_size": 512
    }"#;
    let config: EvolutionStrategyConfig = serde_json::from_str(text).expect("a strategy");
    let expected = AdamWConfig::new().with_epsilon(1e-8).with_weight_decay(0.01);
    let expected = EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(2), expected).with_population_size(512);
    let text = |config| serde_json::to_string(config).expect("writes");
    assert_eq!(text(&config), text(&expected));
}
