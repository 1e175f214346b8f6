//! A small model learns a rule.

use crate::made::{config, model_with_seed, strategy_config};
use burn::optim::AdamConfig;
use eggroll_core::transformer::Precision;
use eggroll_lm::{HostLlama, Item, Items, score, score_population};
use eggroll_train::{EvolutionStrategyConfig, Fitness};

/// The answer to a question of four kinds.
const ANSWERS: [u32; 4] = [61, 40, 77, 52];

/// Questions: any token, then one of the four kinds.
fn items(others: std::ops::Range<u32>) -> Vec<Item> {
    let of = |other: u32| (0..4u32).map(move |kind| Item::new(&[other, 80 + kind], &[ANSWERS[kind as usize]]));
    others.flat_map(of).collect()
}

/// The exact share of held-out items before and after.
fn learn(seed: u32, precision: Precision, train: &[Item]) -> [f64; 2] {
    let held_out = items(20..36);
    let mut model = model_with_seed(&config(false, false), seed);
    let config = EvolutionStrategyConfig { optimizer: AdamConfig::new().into(), ..strategy_config(64) };
    let config = config.with_seed(u64::from(seed)).with_sigma(0.05).with_learning_rate(0.01);
    let mut strategy = config.try_init(&model).expect("a strategy");
    let mut host = HostLlama::new(&model, precision);
    let share = |host: &HostLlama| {
        let scored = score(host, &held_out).expect("scores");
        scored.iter().filter(|scored| scored.exact).count() as f64 / scored.len() as f64
    };
    let before = share(&host);
    for _ in 0..120 {
        let population = strategy.ask();
        let scored = score_population(&host, &population, Items::Shared(train)).expect("scores");
        let mean = |scored: &Vec<eggroll_lm::Scored>| {
            scored.iter().map(|scored| scored.log_probability()).sum::<f32>() / scored.len() as f32
        };
        strategy
            .tell(&mut model, population, Fitness::from(scored.iter().map(mean).collect::<Vec<_>>()))
            .expect("told");
        host.update(&model, strategy.parameters());
    }
    [before, share(&host)]
}

#[test]
fn a_rule_is_learned() {
    for (seed, precision) in [(1, Precision::F32), (2, Precision::Int8), (3, Precision::Int8), (1, Precision::Bf16)] {
        let [before, after] = learn(seed, precision, &items(0..8));
        assert!(before < 0.2 && after > 0.8, "seed {seed}, {precision}: {before} {after}");
    }
}

/// A canary: what is learned is the rule, not the questions.
#[test]
fn other_answers_do_not_teach_it() {
    // Every kind has every wrong answer.
    let wrong: Vec<Item> = items(0..8)
        .iter()
        .enumerate()
        .map(|(index, item)| {
            let (other, kind) = (index / 4, index % 4);
            Item::new(item.prompt(), &[ANSWERS[(kind + 1 + other % 3) % 4]])
        })
        .collect();
    let [before, after] = learn(1, Precision::Int8, &wrong);
    assert!(before < 0.2 && after < 0.5, "{before} {after}");
}
