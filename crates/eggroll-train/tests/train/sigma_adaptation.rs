//! Noise scales that follow the curvature that a population sees.

use crate::support::{Net, bytes, input};
use eggroll_core::{EggrollConfig, QEggrollConfig};
use eggroll_nn::integer;
use eggroll_train::*;

const MEMBERS: usize = 32;

fn config(adaptation: SigmaAdaptation) -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(EggrollConfig::new(), OptimizerConfig::default())
        .with_population_size(MEMBERS)
        .with_sigma(0.5)
        .with_sigma_adaptation(adaptation)
}

fn rule() -> SigmaAdaptation {
    SigmaAdaptation { every: 1, lowest: 0.25, highest: 4.0, ..SigmaAdaptation::default() }
}

/// σ of every generation, where member `m` has the score `score(m)`.
fn sigmas(config: &EvolutionStrategyConfig, generations: usize, score: impl Fn(usize) -> f32) -> Vec<f64> {
    let mut net = Net::new();
    let mut strategy = config.init(&net);
    let mut generation = || {
        let population = strategy.ask();
        let fitness: Fitness = (0..MEMBERS).map(&score).collect::<Vec<_>>().into();
        strategy.tell(&mut net, population, fitness).expect("a generation").sigma
    };
    (0..generations).map(|_| generation()).collect()
}

/// A pair's slope alone: `±(q + 1)`.
fn slope(member: usize) -> f32 {
    (member / 2 + 1) as f32 * if member.is_multiple_of(2) { 1.0 } else { -1.0 }
}

/// A pair's mean alone varies, but for a slope of 1.
fn curvature(member: usize) -> f32 {
    (member / 2 * 10) as f32 + if member.is_multiple_of(2) { 1.0 } else { -1.0 }
}

#[test]
fn grows_on_slopes_and_ties_and_falls_on_curvature() {
    let octave = |score: fn(usize) -> f32| sigmas(&config(rule()), 30, score);
    let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
    for grows in [slope as fn(usize) -> f32, |_| 3.0] {
        let found = octave(grows);
        close(found[8], 1.0);
        assert_eq!((found[0], found[29]), (0.5, 2.0));
    }
    let found = octave(curvature);
    close(found[8], 0.25);
    assert_eq!((found[0], found[29]), (0.5, 0.125));
    let without = config(rule()).with_sigma_adaptation(None);
    assert_eq!(sigmas(&without, 3, curvature), [0.5; 3], "canary: off");
}

/// Groups with separate data have means of their own; tasks are summed.
#[test]
fn measures_from_the_means_of_groups_and_over_tasks() {
    let by_group = |member: usize| (member / 8 * 100) as f32 + if member.is_multiple_of(2) { 1.0 } else { -1.0 };
    let grouped = config(rule()).with_shaping(FitnessShaping::GroupStandardized { size: 8 });
    assert!(sigmas(&grouped, 2, by_group)[1] > 0.5);
    assert!(sigmas(&config(rule()), 2, by_group)[1] < 0.5, "canary: without groups");

    let mut net = Net::new();
    let mut strategy = config(rule()).init(&net);
    let population = strategy.ask();
    // Of two tasks, whose means differ and whose curvatures cancel.
    let tasks =
        [1.0, -1.0].map(|sign| (0..MEMBERS).map(move |member| 50.0 * sign + sign * curvature(member) + slope(member)));
    let fitness = Fitness::from(tasks.into_iter().flatten().collect::<Vec<f32>>()).with_tasks(2);
    strategy.tell(&mut net, population, fitness).expect("a generation");
    assert!(strategy.sigma() > 0.5);
}

#[test]
fn moves_where_it_may() {
    let every = config(SigmaAdaptation { every: 3, ..rule() });
    let found = sigmas(&every, 7, slope);
    assert_eq!(found[..3], [0.5; 3]);
    assert!(found[3] > 0.5 && found[3] == found[5] && found[6] > found[5], "{found:?}");
    // Within an unroll σ stays.
    let unrolls = config(SigmaAdaptation { every: 2, ..rule() }).with_unroll_horizon(4);
    let found = sigmas(&unrolls, 9, slope);
    assert!(
        found[..4] == [0.5; 4] && found[4] > 0.5 && found[4..8] == [found[4]; 4] && found[8] > found[7],
        "{found:?}"
    );
}

#[test]
fn goes_on_from_what_is_set() {
    let mut net = Net::new();
    let mut strategy = config(rule()).init(&net);
    strategy.set_sigma(1.5).expect("a sigma");
    let population = strategy.ask();
    let fitness: Fitness = (0..MEMBERS).map(slope).collect::<Vec<_>>().into();
    strategy.tell(&mut net, population, fitness).expect("a generation");
    assert!(strategy.sigma() > 1.5 && strategy.sigma() < 1.7, "{}", strategy.sigma());
}

/// The rate is relative to the schedule's σ, so that Adam's first step has one length whatever σ has become.
#[test]
fn rates_are_relative_to_the_schedule() {
    let step = |adaptation: Option<SigmaAdaptation>| {
        let mut net = Net::new();
        let config = config(rule()).with_sigma_adaptation(adaptation).with_rate_scale(RateScale::RelativeToSigma);
        let mut strategy = config.with_learning_rate(0.25).init(&net);
        strategy.set_sigma(2.0).expect("a sigma");
        let before = net.clone();
        let population = strategy.ask();
        let fitness = population.evaluate(|members| -members.mean((net.forward(input()) - 0.5).square()));
        strategy.tell(&mut net, population, fitness).expect("a generation");
        (net.first.weight.val() - before.first.weight.val()).abs().max().into_scalar::<f32>()
    };
    assert!((step(Some(rule())) - 0.125).abs() < 1e-4);
    assert!((step(None) - 0.5).abs() < 1e-4, "canary: relative to the σ that members had");
}

#[test]
fn learns_from_far_too_much_noise() {
    let loss = |net: &Net| (net.forward(input()) - 0.5).square().mean().into_scalar::<f32>();
    let trained = |adaptation: Option<SigmaAdaptation>| {
        let mut net = Net::new();
        let config = config(rule()).with_sigma(5.0).with_learning_rate(0.02).with_sigma_adaptation(adaptation);
        let mut strategy = config.init(&net);
        for _ in 0..300 {
            let population = strategy.ask();
            let fitness = population.evaluate(|members| -members.mean((net.forward(input()) - 0.5).square()));
            strategy.tell(&mut net, population, fitness).expect("a generation");
        }
        loss(&net)
    };
    let [with, without] = [Some(SigmaAdaptation { every: 1, lowest: 1e-4, ..rule() }), None].map(trained);
    assert!(with < without / 2.0, "{with} {without}");
}

/// A schedule that ends is an error of its generation, whether σ moves there or not, and changes nothing.
#[test]
fn schedules_that_end_are_refused() {
    for (wrong, every) in [(f64::NAN, 1), (f64::NAN, 4), (-1.0, 1), (0.0, 3), (f64::INFINITY, 2), (1e-60, 1)] {
        let schedule = CustomSigma::new("ends", move |generation| if generation < 2 { 0.5 } else { wrong });
        let config = config(SigmaAdaptation { every, ..rule() }).with_rate_scale(RateScale::RelativeToSigma);
        let mut net = Net::new();
        let mut strategy = config.with_sigma(schedule).init(&net);
        let fitness = || Fitness::from((0..MEMBERS).map(slope).collect::<Vec<_>>());
        for _ in 0..2 {
            let population = strategy.ask();
            strategy.tell(&mut net, population, fitness()).expect("a generation");
        }
        let before = bytes(&net);
        let population = strategy.ask();
        let error = strategy.tell(&mut net, population, fitness()).expect_err("refused");
        assert!(matches!(error, Error::Tell(TellError::Sigma { generation: 2, .. })), "{wrong}, {every}: {error}");
        let population = strategy.ask();
        assert!(strategy.advance(population, &fitness()).is_err(), "{wrong}, {every}");
        assert_eq!((bytes(&net), strategy.generation()), (before, 2));
    }
}

#[test]
fn wrong_settings_are_named() {
    let refused =
        |adaptation: SigmaAdaptation| config(adaptation).try_init(&Net::new()).err().expect("refused").to_string();
    let one = SigmaAdaptation::default();
    for (wrong, expected) in [
        (SigmaAdaptation { every: 0, ..one }, "every of the adaptation of sigma must be at least 1 generation, not 0"),
        (
            SigmaAdaptation { lowest: 0.0, ..one },
            "lowest of the adaptation of sigma must be above 0 and at most 1, not 0",
        ),
        (
            SigmaAdaptation { lowest: 1.5, ..one },
            "lowest of the adaptation of sigma must be above 0 and at most 1, not 1.5",
        ),
        (
            SigmaAdaptation { highest: 0.5, ..one },
            "highest of the adaptation of sigma must be finite and at least 1, not 0.5",
        ),
        (
            SigmaAdaptation { highest: f64::NAN, ..one },
            "highest of the adaptation of sigma must be finite and at least 1, not NaN",
        ),
        (
            SigmaAdaptation { least_curvature: -1.0, ..one },
            "least_curvature of the adaptation of sigma must be finite and not negative, not -1",
        ),
        (
            SigmaAdaptation { most_curvature: 0.01, ..one },
            "most_curvature of the adaptation of sigma must be finite and above least_curvature, not 0.01",
        ),
    ] {
        assert_eq!(refused(wrong), expected);
    }
    let model = integer::LinearConfig::new(16, 4).init(&burn::tensor::Device::flex());
    let integers = EvolutionStrategyConfig::integer(QEggrollConfig::new()).with_sigma_adaptation(one);
    let error = integers.try_init(&model).err().expect("refused").to_string();
    assert!(error.contains("sigma_adaptation") && error.contains("weight"), "{error}");
}

#[test]
fn configurations_as_text() {
    let on = config(rule());
    let text = serde_json::to_string(&on).expect("writes");
    assert_eq!(serde_json::from_str::<EvolutionStrategyConfig>(&text).expect("reads").sigma_adaptation, Some(rule()));
    assert!(!serde_json::to_string(&on.with_sigma_adaptation(None)).expect("writes").contains("sigma_adaptation"));
    let short = r#"{"noiser":{"name":"eggroll"},"optimizer":{"name":"adam"},"sigma_adaptation":{"every":9}}"#;
    let config: EvolutionStrategyConfig = serde_json::from_str(short).expect("reads");
    assert_eq!(config.sigma_adaptation, Some(SigmaAdaptation { every: 9, ..SigmaAdaptation::default() }));
    let wrong = short.replace("every", "evry");
    assert!(serde_json::from_str::<EvolutionStrategyConfig>(&wrong).is_err());
}
