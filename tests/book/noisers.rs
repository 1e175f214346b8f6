//! Choosing the noise.

use burn::optim::{AdamConfig, SgdConfig};
use eggroll::nn::LinearConfig;
use eggroll::prelude::*;

#[test]
fn chosen_in_code() {
    let model = LinearConfig::new(16, 4).init(&Device::flex());
    let low_rank = EggrollConfig::new().with_rank(4);
    let signs = EggrollConfig::new().with_distribution(NoiseDistribution::Rademacher);
    let dense = OpenEsConfig::new();
    let by_name: NoiserConfig = "sign_eggroll".parse().expect("a registered noiser");

    let strategy = EvolutionStrategyConfig::new(low_rank, AdamConfig::new()).init(&model);
    assert_eq!(strategy.parameters().entries()[0].role, Role::LowRank { rank: 4 });
    EvolutionStrategyConfig::new(signs, AdamConfig::new()).init(&model);
    let strategy = EvolutionStrategyConfig::new(dense, AdamConfig::new()).init(&model);
    assert_eq!(strategy.parameters().entries()[0].role, Role::Dense);
    assert_eq!(by_name, NoiserConfig::SignEggroll(EggrollConfig::new()));
}

#[test]
fn baselines() {
    let model = LinearConfig::new(16, 4).init(&Device::flex());
    let noiser = BaselineSubtractionConfig::new(8).with_eggroll(EggrollConfig::new().with_rank(2));
    let config = EvolutionStrategyConfig::new(noiser, AdamConfig::new()).with_population_size(64);
    assert_eq!(config.shaping, FitnessShaping::BaselineSubtraction { size: 8 });
    assert_eq!(config.clip_norm, Some(1.0));
    assert!(config.try_init(&model).is_ok());
}

#[test]
fn chosen_in_a_file() {
    let text = r#"{ "name": "eggroll", "rank": 4, "distribution": "rademacher" }"#;
    let noiser: NoiserConfig = serde_json::from_str(text).expect("a noiser");
    let expected = EggrollConfig::new().with_rank(4).with_distribution(NoiseDistribution::Rademacher);
    assert_eq!(noiser, expected.into());
    let error = serde_json::from_str::<NoiserConfig>(r#"{ "name": "eggrol" }"#).expect_err("refused").to_string();
    assert!(error.contains("eggrol") && error.contains("open_es"), "{error}");
}

#[test]
fn roles() {
    let model = LinearConfig::new(16, 4).init(&Device::flex());
    // ANCHOR: roles
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new())
        .with_roles([("*weight", Role::LowRank { rank: 2 }), ("*", Role::Dense)])
        .with_frozen(["bias"]);
    // ANCHOR_END: roles
    let roles: Vec<Role> = config.init(&model).parameters().entries().iter().map(|entry| entry.role).collect();
    assert_eq!(roles, [Role::LowRank { rank: 2 }, Role::Frozen]);
}

#[test]
fn sources() {
    let model = LinearConfig::new(16, 4).init(&Device::flex());
    let x = Tensor::<2>::ones([1, 16], &Device::flex());
    let score = |source| {
        let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new())
            .with_noise_source(source) // OnTheFly, Cached, or Table { len }
            .with_noise_reuse(10); // ten generations share one draw
        config.init(&model).ask().evaluate(|members| members.mean(model.forward_shared(x.clone())))
    };
    assert_eq!(score(NoiseSourceConfig::OnTheFly), score(NoiseSourceConfig::Cached));
    assert_ne!(score(NoiseSourceConfig::OnTheFly), score(NoiseSourceConfig::Table { len: 1 << 16 }));
}
