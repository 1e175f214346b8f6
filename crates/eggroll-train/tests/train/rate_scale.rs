//! Learning rates relative to the noise scale of each parameter.

use crate::support::{Net, bytes, input};
use burn::optim::AdamConfig;
use burn::tensor::Tensor;
use eggroll_core::{EggrollConfig, ParameterKind};
use eggroll_train::*;

fn config(optimizer: impl Into<OptimizerConfig>) -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(EggrollConfig::new(), optimizer)
        .with_population_size(32)
        .with_sigma(0.5)
        .with_rate_scale(RateScale::RelativeToSigma)
}

fn trained(config: &EvolutionStrategyConfig, rate: f64, generations: usize) -> Net {
    let mut net = Net::new();
    let mut strategy = config.clone().with_learning_rate(rate).init(&net);
    for _ in 0..generations {
        let population = strategy.ask();
        let fitness = population.evaluate(|members| -members.mean((net.forward(input()) - 0.5).square()));
        let report = strategy.tell(&mut net, population, fitness).expect("a generation");
        assert_eq!((report.learning_rate, report.stepped), (rate, true));
    }
    net
}

/// `η·σ`, bit for bit: both are powers of two.
#[test]
fn equals_the_product_as_an_absolute_rate() {
    let relative = config(OptimizerConfig::default());
    let absolute = |rate: f64| bytes(&trained(&relative.clone().with_rate_scale(RateScale::Absolute), rate, 3));
    let found = bytes(&trained(&relative, 0.25, 3));
    assert_eq!(found, absolute(0.125));
    assert_ne!(found, absolute(0.25), "canary: the rate alone");
}

/// `η·σ·min(1, 10·N/n)`: of all values but the frozen ones, and of all members.
#[test]
fn follows_the_share_of_the_population() {
    let close = |a: &Net, b: &Net, most: f32| {
        let far = |(a, b): (&Tensor<2>, &Tensor<2>)| (a.clone() - b.clone()).abs().max().into_scalar::<f32>();
        [&a.first, &a.second]
            .iter()
            .zip([&b.first, &b.second])
            .all(|(a, b)| far((&a.weight.val(), &b.weight.val())) < most)
    };
    for (members, frozen) in [(2, vec![]), (2, vec!["first"]), (32, vec![])] {
        let relative = config(OptimizerConfig::default()).with_population_size(members).with_frozen(frozen);
        let strategy = relative.init(&Net::new());
        let trained = strategy.parameters().trained(ParameterKind::Float);
        let values: usize = trained.map(|(_, entry)| entry.shape.iter().product::<usize>()).sum();
        let share = (10.0 * members as f64 / values as f64).min(1.0);
        let found = self::trained(&relative.clone().with_rate_scale(RateScale::RelativeToPopulation), 0.25, 3);
        assert!(close(&found, &self::trained(&relative, 0.25 * share, 3), 1e-6), "{values} values");
        assert_eq!(close(&found, &self::trained(&relative, 0.25, 3), 1e-6), share == 1.0, "canary: {values} values");
    }
}

/// The first step of Adam is as long as the rate: `η·σ·τ_p·s_p` for each parameter, in every value.
#[test]
fn follows_the_noise_of_each_parameter() {
    let relative = config(AdamConfig::new().with_epsilon(1e-12)).with_noise_scale(NoiseScale::RelativeToSpread);
    let before = Net::new();
    let spreads = relative.init(&before).parameters().spreads().expect("relative").to_vec();
    let scaled = config(AdamConfig::new().with_epsilon(1e-12)).with_scales([("*bias", 0.25), ("first.*", 2.0)]);
    let longest = |before: &Tensor<1>, after: &Tensor<1>| -> f64 {
        let step: f32 = (after.clone() - before.clone()).abs().max().into_scalar();
        f64::from(step)
    };
    let parts = |net: &Net| {
        [&net.first, &net.second]
            .map(|layer| [layer.weight.val().flatten(0, 1), layer.bias.as_ref().expect("a bias").val()])
    };
    let steps = |after: &Net| -> Vec<f64> {
        let (before, after) = (parts(&before), parts(after));
        before.iter().flatten().zip(after.iter().flatten()).map(|(b, a)| longest(b, a)).collect()
    };
    let near = |steps: &[f64], rate: f64, factors: &[f64]| {
        steps.iter().zip(factors).all(|(s, factor)| (s / (rate * factor) - 1.0).abs() < 1e-3)
    };
    for (config, factors) in [(&relative, &spreads[..]), (&scaled, &[2.0, 0.25, 1.0, 0.25])] {
        let found = steps(&trained(config, 0.25, 1));
        assert!(near(&found, 0.25 * 0.5, factors), "{found:?} for factors {factors:?}");
        let absolute = config.clone().with_rate_scale(RateScale::Absolute);
        assert!(!near(&steps(&trained(&absolute, 0.25, 1)), 0.25, factors), "canary");
    }
}

#[test]
fn is_read_and_refused() {
    let net = Net::new();
    for optimizer in ["clip_up", "integer_adam_w", "integer_muon"] {
        let optimizer: OptimizerConfig = optimizer.parse().expect("known");
        let error = config(optimizer.clone()).try_init(&net).err().expect("refused").to_string();
        assert!(error.contains("rate_scale relative_to_sigma") && error.contains("clip_up"), "{error}");
        let error = config(optimizer).in_relative_units().try_init(&net).err().expect("refused").to_string();
        assert!(error.contains("rate_scale relative_to_population"), "{error}");
    }
    let relative = config(OptimizerConfig::default());
    let json = serde_json::to_string(&relative).expect("writes");
    assert!(json.contains(r#""rate_scale":"relative_to_sigma""#), "{json}");
    let read: EvolutionStrategyConfig = serde_json::from_str(&json).expect("reads");
    assert_eq!(read.rate_scale, RateScale::RelativeToSigma);
    let absolute = serde_json::to_string(&relative.with_rate_scale(RateScale::Absolute)).expect("writes");
    assert!(!absolute.contains("rate_scale"), "files of earlier versions are read: {absolute}");
}
