//! Decay towards the parameters that a run begins with.

use crate::support::{Cast, Net, bytes, input, layer};
use burn::lr_scheduler::exponential::ExponentialLrSchedulerConfig;
use burn::module::{Module, ModuleMapper, Param};
use burn::optim::{AdamConfig, SgdConfig};
use burn::tensor::{DType, Device, Tensor};
use eggroll_core::{EggrollConfig, QEggrollConfig};
use eggroll_nn::{Linear, integer};
use eggroll_train::*;

const MEMBERS: usize = 8;

fn config() -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new())
        .with_population_size(MEMBERS)
        .with_sigma(0.1)
        .with_learning_rate(0.5)
}

fn fitness() -> Fitness {
    (0..MEMBERS).map(|member| (member as f32 * 1.7).sin()).collect::<Vec<_>>().into()
}

fn generation<M: Module>(strategy: &mut EvolutionStrategy, model: &mut M) {
    let population = strategy.ask();
    strategy.tell(model, population, fitness()).expect("a generation");
}

fn values(net: &Net) -> Vec<f64> {
    let layers = [&net.first, &net.second];
    let of = |layer: &&Linear| {
        let bias = layer.bias.as_ref().expect("a bias").val().into_data();
        let weight = layer.weight.val().into_data();
        weight.iter::<f64>().chain(bias.iter::<f64>()).collect::<Vec<_>>()
    };
    layers.iter().flat_map(of).collect()
}

/// Multiplies all parameters.
struct MultiplyFloats(f64);

impl ModuleMapper for MultiplyFloats {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|value| value * self.0)
    }
}

/// `θ₁ = θ' − η·λ·(θ' − θ₀)` of the step `θ'` without decay, in f64, with a rate that changes.
#[test]
fn a_step_by_formula() {
    let rate = || ExponentialLrSchedulerConfig::new(0.5, 0.5);
    let plain = config().with_learning_rate(rate());
    let start = Net::new();
    let mut model = start.clone();
    let mut strategy = plain.clone().with_anchor_decay(0.4).init(&start);
    for step in 0..3 {
        let mut stepped = model.clone();
        let record = strategy.to_record();
        let mut free = plain.init(&model).load_record(StrategyRecord { anchor: None, ..record });
        generation(&mut free, &mut stepped);
        generation(&mut strategy, &mut model);
        let factor = 0.4 * strategy.report().expect("a report").learning_rate;
        assert_eq!(factor, 0.4 * 0.5f64.powi(step + 1));
        let expected =
            values(&stepped).into_iter().zip(values(&start)).map(|(theta, zero)| theta - factor * (theta - zero));
        let found = values(&model);
        assert!(expected.zip(&found).all(|(e, f)| (e - f).abs() < 1e-6), "{step}");
        assert_ne!(found, values(&stepped), "canary");
    }
}

/// The same noise and fitness in every generation are a constant gradient: `θ₀ − (1 − η·λ)·g/λ`.
#[test]
fn a_constant_gradient_comes_to_rest() {
    let (rate, decay) = (0.5, 0.8);
    let start = Net::new();
    let mut model = start.clone();
    let mut strategy = config().with_noise_reuse(0).with_anchor_decay(decay).init(&start);
    let gradients = strategy.gradient(&start, &strategy.ask(), &fitness()).expect("belongs together").expect("differs");
    for _ in 0..60 {
        generation(&mut strategy, &mut model);
    }
    let gradient: Vec<f64> =
        gradients.get::<2>(start.first.weight.id).expect("one").into_data().iter::<f64>().collect();
    let (zero, found) = (values(&start), values(&model));
    for (i, gradient) in gradient.into_iter().enumerate() {
        let expected = zero[i] - (1.0 - rate * decay) * gradient / decay;
        assert!((found[i] - expected).abs() < 1e-5, "{i}: {} {expected}", found[i]);
    }
}

#[test]
fn nothing_happens_without_a_step() {
    let start = Net::new();
    let mut model = start.clone();
    let mut strategy = config().with_anchor_decay(0.5).init(&start);
    generation(&mut strategy, &mut model);
    let before = bytes(&model);
    assert_ne!(before, bytes(&start), "canary");
    let population = strategy.ask();
    let report = strategy.tell(&mut model, population, vec![0.25; MEMBERS].into()).expect("a generation");
    assert!(!report.stepped);
    assert_eq!(bytes(&model), before);
}

#[test]
fn no_decay_changes_no_bit_and_holds_nothing() {
    let run = |decay: Option<f64>| {
        let mut model = Net::new();
        let mut strategy = config().with_anchor_decay(decay).init(&model);
        assert_eq!(strategy.anchor_digest().is_some(), decay.is_some_and(|decay| decay > 0.0));
        (0..3).for_each(|_| generation(&mut strategy, &mut model));
        bytes(&model)
    };
    assert_eq!(run(None), run(Some(0.0)));
    assert_ne!(run(None), run(Some(0.1)), "canary");
}

#[test]
fn wrong_decays_are_refused() {
    for wrong in [-0.25, f64::NAN, f64::INFINITY, 1e300, 1e-320] {
        let error = config().with_anchor_decay(wrong).try_init(&Net::new()).err().expect("refused").to_string();
        assert!(error.starts_with("anchor_decay must be 0 or above and fit f32"), "{error}");
        assert!(error.ends_with(&format!("not {wrong:?}")), "{error}");
    }
    let integers = integer::LinearConfig::new(4, 2).init(&Device::flex());
    let voting = EvolutionStrategyConfig::integer(QEggrollConfig::new()).with_anchor_decay(0.1);
    let error = voting.try_init(&integers).err().expect("refused").to_string();
    assert!(error.starts_with("anchor_decay is for float parameters, but \"weight\" is a trained integer"), "{error}");
}

/// Frozen parameters are no part of it, also where the anchor has others.
#[test]
fn frozen_parameters_stay() {
    let start = Net::new();
    let mut model = start.clone();
    let other = start.clone().map(&mut MultiplyFloats(3.0));
    let strategy = config().with_anchor_decay(0.5).with_frozen(["first.bias"]).init(&start);
    let mut strategy = strategy.try_with_anchor(&other).expect("the same parameters");
    generation(&mut strategy, &mut model);
    let bias = |net: &Net| net.first.bias.as_ref().expect("a bias").val().into_data();
    assert_eq!(bias(&model), bias(&start));
    // A step goes a quarter of the way to the other model.
    let plain = &mut start.clone();
    generation(&mut config().with_frozen(["first.bias"]).init(&start), plain);
    let (stepped, anchor, found) = (values(plain), values(&other), values(&model));
    let at = 30; // second.weight
    assert!((found[at] - (stepped[at] - 0.25 * (stepped[at] - anchor[at]))).abs() < 1e-6);
}

/// A record has the digest of the anchor: another model is refused, the first one gives the same bits.
#[test]
fn a_run_continues_with_its_anchor_only() {
    let config = || EvolutionStrategyConfig { optimizer: AdamConfig::new().into(), ..config().with_anchor_decay(0.4) };
    let run = |strategy: &mut EvolutionStrategy, model: &mut Net| (0..3).for_each(|_| generation(strategy, model));
    let start = Net::new();
    let mut model = start.clone();
    let mut strategy = config().init(&start);
    run(&mut strategy, &mut model);
    let saved = model.clone();
    let record = || strategy.to_record();

    let error = config().init(&saved).try_load_record(record()).err().expect("another anchor").to_string();
    let digests =
        [strategy.anchor_digest(), config().init(&saved).anchor_digest()].map(|digest| digest.expect("one").to_owned());
    assert!(digests.iter().all(|digest| digest.len() == 64 && error.contains(digest)), "{error}");
    assert!(error.contains("try_with_anchor"), "{error}");
    let none = config().with_anchor_decay(None).init(&saved).try_load_record(record()).err().expect("none").to_string();
    assert!(none.contains(&digests[0]) && none.contains("has none"), "{none}");

    // The model that the run began with, made anew: Burn's identifiers differ.
    let anew = config().init(&saved).try_with_anchor(&Net::new()).expect("the same parameters");
    let mut models = [saved.clone(), saved.clone(), saved.clone()];
    let mut resumed = [
        anew.try_load_record(record()).expect("loads"),
        config().init(&start).load_record(record()),
        config().init(&saved).with_anchor_of(&strategy).load_record(record()),
    ];
    resumed.iter_mut().zip(&mut models).for_each(|(strategy, model)| run(strategy, model));
    run(&mut strategy, &mut model);
    assert!(models.iter().all(|resumed| bytes(resumed) == bytes(&model)));
}

#[test]
#[should_panic(expected = "the record decays towards other parameters")]
fn load_record_panics_of_another_anchor() {
    let config = config().with_anchor_decay(0.4);
    let record = config.init(&Net::new()).to_record();
    config.init(&Net::new().map(&mut MultiplyFloats(2.0))).load_record(record);
}

#[test]
fn anchors_of_other_models_are_refused() {
    let strategy = config().with_anchor_decay(0.4).init(&Net::new());
    let other = Net { first: layer(4, 5), second: layer(5, 2) };
    let error = strategy.clone().try_with_anchor(&other).err().expect("refused").to_string();
    assert_eq!(error, "the anchor of the decay is another model: it has no \"first.weight\" of shape [4, 6]");
    // Without decay there is none.
    assert!(config().init(&Net::new()).try_with_anchor(&other).is_ok());
}

/// An optimizer of the program makes the whole step.
#[test]
fn advance_leaves_the_model_alone() {
    let start = Net::new();
    let mut strategy = config().with_anchor_decay(0.4).init(&start);
    let population = strategy.ask();
    let gradients = strategy.gradient(&start, &population, &fitness()).expect("belongs together");
    assert!(gradients.is_some());
    strategy.advance(population, &fitness()).expect("a generation");
    assert_eq!(strategy.generation(), 1);
    // The gradient has no part of the decay in it.
    let plain = config().init(&start);
    let expected = plain.gradient(&start, &plain.ask(), &fitness()).expect("belongs together").expect("differs");
    let (id, gradients) = (start.first.weight.id, gradients.expect("differs"));
    let data = |gradients: &burn::optim::GradientsParams| gradients.get::<2>(id).expect("one").into_data();
    assert_eq!(data(&gradients), data(&expected));
}

/// Steps of half precision are rounded once.
#[test]
fn half_precision() {
    let start = Net::new().map(&mut Cast(DType::BF16));
    let mut model = start.clone();
    let mut strategy = config().with_anchor_decay(2.0).init(&start);
    let population = strategy.ask();
    population.evaluate_mut(|members| members.mean(start.forward(input().cast(DType::BF16))));
    strategy.tell(&mut model, population, fitness()).expect("a generation");
    // η·λ is 1: back where it began.
    assert_eq!(bytes(&model), bytes(&start));
    assert_eq!(model.first.weight.val().dtype(), DType::BF16);
}
