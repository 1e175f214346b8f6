//! Factors of the noise scale by pattern. `noise_scale.rs` compares them with models that are scaled by hand.

use crate::support::{Net, bytes, input, layer};
use burn::optim::SgdConfig;
use burn::tensor::Device;
use eggroll_core::{EggrollConfig, OpenEsConfig, QEggrollConfig, Role, TableError};
use eggroll_nn::{Linear, integer};
use eggroll_train::*;

const MEMBERS: usize = 12;

fn config() -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(2), SgdConfig::new())
        .with_population_size(MEMBERS)
        .with_sigma(0.25)
        .with_learning_rate(0.5)
}

/// The noise scale of each parameter of a strategy for [`Net`].
fn sigmas(config: &EvolutionStrategyConfig) -> [f64; 4] {
    let population = config.init(&Net::new()).ask();
    [0, 1, 2, 3].map(|position| population.perturbation().parameter(position).sigma)
}

fn trained(config: &EvolutionStrategyConfig) -> Vec<u8> {
    let mut net = Net::new();
    let mut strategy = config.init(&net);
    for _ in 0..3 {
        let population = strategy.ask();
        let fitness = population.evaluate(|members| -members.mean((net.forward(input()) - 0.5).square()));
        strategy.tell(&mut net, population, fitness).expect("a generation");
    }
    bytes(&net)
}

#[test]
fn the_first_pattern_decides() {
    let scaled = config().with_scales([("second.*", 2.0), ("*bias", 0.5), ("*", 0.25)]);
    assert_eq!(sigmas(&scaled), [0.0625, 0.125, 0.5, 0.5]);
    assert_eq!(sigmas(&config().with_scales([("first.????", 4.0)])), [0.25, 1.0, 0.25, 0.25], "1 where none matches");
    let relative = config().with_noise_scale(NoiseScale::RelativeToSpread);
    let spreads = relative.init(&Net::new()).parameters().spreads().expect("relative").to_vec();
    let scaled = relative.with_scales([("second.*", 2.0)]);
    let expected = [0, 1, 2, 3].map(|p| 0.25 * spreads[p] * if p < 2 { 1.0 } else { 2.0 });
    assert_eq!(sigmas(&scaled), expected);
    let table = scaled.init(&Net::new()).to_record();
    assert_eq!(table.spreads.expect("relative"), spreads, "a record has them as measured");
}

/// One parameter, bit for bit: `s` is a power of two, and the default scale of the estimate does not divide by σ.
#[test]
fn equals_sigma_times_the_factor() {
    let start = Linear { bias: None, ..layer(4, 2) };
    for noiser in [EggrollConfig::new().with_rank(2).into(), OpenEsConfig::new().into()] {
        let config = EvolutionStrategyConfig { noiser, ..config() };
        let run = |config: &EvolutionStrategyConfig| {
            let (mut model, mut strategy) = (start.clone(), config.init(&start));
            for _ in 0..3 {
                let population = strategy.ask();
                let fitness =
                    population.evaluate(|members| -members.mean((model.forward_shared(input()) - 0.5).square()));
                strategy.tell(&mut model, population, fitness).expect("a generation");
            }
            bytes(&model)
        };
        let scaled = run(&config.clone().with_scales([("weight", 0.125)]));
        assert_eq!(scaled, run(&config.clone().with_sigma(0.25 * 0.125)));
        assert_ne!(scaled, run(&config), "canary");
    }
}

#[test]
fn members_are_their_models() {
    let net = Net::new();
    let scaled = config().with_scales([("*bias", 0.3), ("second.*", 7.0)]);
    let scores = |config: &EvolutionStrategyConfig| {
        let population = config.init(&net).ask();
        let batched = population.evaluate(|members| -members.mean((net.forward(input()) - 0.5).square()));
        let each = population.evaluate_each(&net, |member| -(member.forward(input()) - 0.5).square().mean());
        (batched.values().to_vec(), each.values().to_vec())
    };
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4 * a.abs());
    let (batched, each) = scores(&scaled);
    assert!(near(&batched, &each), "{batched:?} {each:?}");
    assert!(!near(&batched, &scores(&config()).1), "canary");
}

#[test]
fn refusals_name_pattern_and_value() {
    let net = Net::new();
    for scale in [0.0, -0.5, f64::NAN, f64::INFINITY, 1e300, 1e-320] {
        let error = config().with_scales([("first.*", 1.0), ("*bias", scale)]).try_init(&net).err().expect("refused");
        assert!(matches!(error, Error::Table(TableError::Scale { .. })), "{error}");
        let start = format!("the pattern \"*bias\" has the noise scale {scale:?}: ");
        assert!(error.to_string().starts_with(&start) && error.to_string().contains("Freeze"), "{error}");
    }
    let error = config().with_scales([("third.*", 2.0)]).try_init(&net).err().expect("refused").to_string();
    assert!(
        error.starts_with("scales: \"third.*\" matches no parameter: ") && error.contains("\"first.weight\""),
        "{error}"
    );

    let integers = integer::LinearConfig::new(4, 2).init(&Device::flex());
    let voting = EvolutionStrategyConfig::integer(QEggrollConfig::new());
    let error = voting.clone().with_scales([("w*", 2.0)]).try_init(&integers).err().expect("refused").to_string();
    let parts = ["the pattern \"w*\" has the noise scale 2.0", "\"weight\" is a trained integer parameter"];
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");

    // Frozen parameters may be among those that match.
    let frozen = config().with_roles([("*bias", Role::Frozen)]).with_scales([("*", 2.0)]);
    assert!(frozen.try_init(&net).is_ok());
    // σ that the factor makes too small; that it makes too large; that is too large by itself, as fuzzing has found.
    let refused = |config: EvolutionStrategyConfig| {
        let mut strategy = config.init(&net);
        let (population, fitness) = (strategy.ask(), Fitness::from(vec![1.0; MEMBERS]));
        strategy.tell(&mut net.clone(), population, fitness).expect_err("refused").to_string()
    };
    for (sigma, scale) in [("1e-20", "1e-30"), ("100000.0", "10000000000000.0")] {
        let scales = [("second.weight", scale.parse().expect("a number"))];
        let error = refused(config().with_sigma(sigma.parse::<f64>().expect("a number")).with_scales(scales));
        assert!(error.starts_with(&format!("sigma of generation 0 is {sigma}, times {scale}")), "{error}");
        assert!(error.contains("\"second.weight\""), "{error}");
    }
    let error = refused(config().with_sigma(1.8e19));
    assert!(error.starts_with("sigma of generation 0 is 1.8e19, too small or too large"), "{error}");
}

/// Part of what updates depend on, and left out where there are none.
#[test]
fn configurations_round_trip() {
    let scaled = config().with_scales([("second.*", 0.1), ("*bias", 3.0)]);
    let json = serde_json::to_string(&scaled).expect("writes");
    assert!(json.contains(r#""scales":[["second.*",0.1],["*bias",3.0]]"#), "{json}");
    let read: EvolutionStrategyConfig = serde_json::from_str(&json).expect("reads");
    assert_eq!(read.scales, scaled.scales);
    assert_eq!(trained(&read), trained(&scaled));
    assert_ne!(trained(&read), trained(&config()), "canary");
    let updates = |config: &EvolutionStrategyConfig| serde_json::to_string(&config.of_updates()).expect("writes");
    assert_ne!(updates(&scaled), updates(&config()));
    assert!(!updates(&config()).contains("scales"), "files of earlier versions are read");
}

#[test]
fn a_record_continues_with_its_factors() {
    let scaled = config().with_noise_scale(NoiseScale::RelativeToSpread).with_scales([("second.*", 0.5)]);
    let net = Net::new();
    // Of the same configuration for a model of other spreads: the record has the spreads, the configuration the factors.
    let other = Net {
        first: layer(4, 6),
        second: Linear { weight: net.second.weight.clone().map(|w| w * 3.0), ..layer(6, 2) },
    };
    let record = scaled.init(&net).to_record();
    let loaded = scaled.init(&other).try_load_record(record).expect("loads");
    let sigma = |strategy: &EvolutionStrategy| [0, 1, 2, 3].map(|p| strategy.ask().perturbation().parameter(p).sigma);
    assert_eq!(sigma(&loaded), sigma(&scaled.init(&net)));
    assert_ne!(sigma(&scaled.init(&other)), sigma(&loaded), "canary");
}
