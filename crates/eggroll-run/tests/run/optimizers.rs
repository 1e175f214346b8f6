//! Every registered optimizer: it trains, leaves frozen parameters alone, and continues bit for bit from what it saved.

use burn::grad_clipping::GradientClippingConfig;
use burn::module::{Param, ParamId};
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{
    AdaGradConfig, AdafactorConfig, AdamConfig, AdamWConfig, AdanConfig, GradientsParams, LambConfig, LionConfig,
    MuonConfig, RmsPropConfig, SgdConfig,
};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use eggroll_core::ops::integer::{Rounding, log_likelihood};
use eggroll_core::{EggrollConfig, QEggrollConfig, Role};
use eggroll_nn::{Linear, integer};
use eggroll_run::*;
use eggroll_train::*;

fn tensor<const D: usize>(shape: [usize; D], phase: f32) -> Tensor<D> {
    let values: Vec<f32> = (0..shape.iter().product()).map(|i| (i as f32 * 0.7 + phase).sin()).collect();
    Tensor::from_data(TensorData::new(values, shape), &Device::flex())
}

fn layer() -> Linear {
    Linear { weight: Param::from_tensor(tensor([5, 3], 0.0)), bias: Some(Param::from_tensor(tensor([3], 1.0))) }
}

fn loss(layer: &Linear) -> f32 {
    (layer.forward(tensor([8, 5], 0.5)) - tensor([8, 3], 2.0)).square().mean().into_scalar()
}

/// Optimizers with all that they can keep and decay, and a learning rate that fits: at least one for every name but that of integers.
fn optimizers() -> Vec<(OptimizerConfig, f64)> {
    let decay = || Some(WeightDecayConfig::new(1e-3));
    let momentum = |nesterov| Some(MomentumConfig::new().with_nesterov(nesterov));
    let sgd = || SgdConfig::new().with_weight_decay(decay());
    vec![
        (sgd().into(), 0.3),
        (sgd().with_momentum(momentum(false)).into(), 0.05),
        (sgd().with_momentum(momentum(true)).into(), 0.05),
        (AdamConfig::new().with_amsgrad(true).with_weight_decay(decay()).into(), 0.05),
        (AdamWConfig::new().with_weight_decay(0.1).with_amsgrad(true).into(), 0.05),
        (RmsPropConfig::new().with_centered(true).with_weight_decay(decay()).into(), 0.01),
        (AdaGradConfig::new().with_lr_decay(1e-3).with_weight_decay(decay()).into(), 0.3),
        (AdanConfig::new().with_weight_decay(0.1).into(), 0.05),
        (LambConfig::new().with_weight_decay(0.1).into(), 0.05),
        (LionConfig::new().with_weight_decay(0.1).into(), 0.02),
        (AdafactorConfig::new().with_weight_decay(0.1).into(), 0.05),
        (muon().into(), 0.05),
        (ClipUpConfig::new().with_max_speed(0.1).into(), 0.05),
    ]
}

fn muon() -> MuonAdamWConfig {
    let matrices = MuonConfig::new().with_weight_decay(Some(WeightDecayConfig::new(0.1)));
    MuonAdamWConfig::new().with_matrices(matrices).with_others(AdamWConfig::new().with_weight_decay(0.1))
}

fn config(optimizer: &OptimizerConfig, rate: f64) -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(EggrollConfig::new(), optimizer.clone())
        .with_population_size(32)
        .with_sigma(0.05)
        .with_learning_rate(rate)
}

fn train(strategy: &mut EvolutionStrategy, mut model: Linear, until: u64) -> Linear {
    while strategy.generation() < until {
        let population = strategy.ask();
        let fitness = population.evaluate(|members| {
            let error = model.forward_shared(tensor([8, 5], 0.5)) - members.repeat(tensor([8, 3], 2.0));
            -members.mean(error.square())
        });
        strategy.tell(&mut model, population, fitness).expect("a generation");
    }
    model
}

/// The name that configuration files have.
fn name(optimizer: &OptimizerConfig) -> String {
    let json = serde_json::to_value(optimizer).expect("writes");
    json["name"].as_str().expect("a name").to_owned()
}

#[test]
fn names_are_those_of_the_registry() {
    let tested: Vec<String> = optimizers().iter().map(|(optimizer, _)| name(optimizer)).collect();
    for known in OptimizerConfig::NAMES {
        let optimizer: OptimizerConfig = known.parse().expect("a registered optimizer");
        assert_eq!(name(&optimizer), *known);
        optimizer.validate().expect("defaults are valid");
        let text = serde_json::to_string(&optimizer).expect("writes");
        let read: OptimizerConfig = serde_json::from_str(&text).expect("reads");
        assert_eq!(serde_json::to_string(&read).expect("writes"), text);
        assert!(known.starts_with("integer_") || tested.iter().any(|name| name == known), "{known} is not tested");
    }
    let all: Vec<String> = OptimizerConfig::NAMES.iter().map(|name| format!("`{name}`")).collect();
    let parsed = "sdg".parse::<OptimizerConfig>().expect_err("refused").to_string();
    let read = serde_json::from_str::<OptimizerConfig>(r#"{"name":"sdg"}"#).expect_err("refused").to_string();
    for error in [parsed, read] {
        assert!(error.contains("`sdg`") && error.contains(&all.join(", ")), "{error}");
    }
}

#[test]
fn all_train() {
    for (optimizer, rate) in optimizers() {
        let start = layer();
        let (before, after) = (loss(&start), loss(&train(&mut config(&optimizer, rate).init(&start), start, 150)));
        assert!(after < 0.5 * before, "{optimizer:?}: {before} {after}");
    }
}

/// No update and no decay, by name and by role; what is trained moves.
#[test]
fn frozen_parameters_stay() {
    let values = |tensor: Tensor<2>| tensor.into_data().try_to_vec::<f32>().expect("f32");
    let bias =
        |layer: &Linear| layer.bias.as_ref().expect("a bias").val().into_data().try_to_vec::<f32>().expect("f32");
    for (optimizer, rate) in optimizers() {
        let start = layer();
        let frozen = config(&optimizer, rate).with_frozen(["weight"]);
        let end = train(&mut frozen.init(&start), start.clone(), 3);
        assert_eq!(values(end.weight.val()), values(start.weight.val()), "{optimizer:?}");
        assert_ne!(bias(&end), bias(&start), "canary: {optimizer:?}");
        let frozen = config(&optimizer, rate).with_roles([("bias", Role::Frozen)]);
        let end = train(&mut frozen.init(&start), start.clone(), 3);
        assert_eq!(bias(&end), bias(&start), "{optimizer:?}");
        assert_ne!(values(end.weight.val()), values(start.weight.val()), "canary: {optimizer:?}");
    }
}

#[test]
fn saved_state_goes_on_bit_for_bit() {
    for (optimizer, rate) in optimizers() {
        let start = layer();
        let config = config(&optimizer, rate);
        let straight = train(&mut config.init(&start), start.clone(), 9);
        let folder = tempfile::tempdir().expect("a folder");
        let checkpoints = Checkpoints::new(folder.path());
        let mut strategy = config.init(&start);
        let model = train(&mut strategy, start, 4);
        checkpoints.save(&strategy, &model).expect("saves");
        let (mut strategy, model) = checkpoints.load_latest(layer()).expect("loads").expect("is there");
        assert_eq!(parameter_digest(&train(&mut strategy, model, 9)), parameter_digest(&straight), "{optimizer:?}");
    }
}

/// The state of an optimizer is more than nothing: a step without it leads elsewhere. Plain gradient descent has none.
#[test]
fn canary_state_matters() {
    for (optimizer, rate) in optimizers().into_iter().skip(1) {
        let model = layer();
        let gradient = |phase, size: f32| {
            let mut gradients = GradientsParams::new();
            gradients.register(model.weight.id, tensor([5, 3], phase) * size);
            gradients
        };
        let (mut fresh, mut used) = (optimizer.init(), optimizer.init());
        let moved = used.step(rate, model.clone(), gradient(1.0, 100.0));
        let next = |optimizer: &mut Optimizer| optimizer.step(rate, moved.clone(), gradient(3.0, 1.0));
        let [fresh, used] = [&mut fresh, &mut used].map(next);
        assert_ne!(parameter_digest(&fresh), parameter_digest(&used), "{optimizer:?}");
    }
}

/// Burn's clipping of single parameters by value and norm, and ours of all together.
#[test]
fn clipping() {
    let moved = |config: EvolutionStrategyConfig| {
        let start = layer();
        let end = train(&mut config.init(&start), start.clone(), 1);
        let change = |new: Tensor<1>, old: Tensor<1>| (new - old).into_data().try_to_vec::<f32>().expect("f32");
        let flat = |layer: &Linear| layer.weight.val().reshape([15]);
        let bias = |layer: &Linear| layer.bias.as_ref().expect("a bias").val();
        [change(flat(&end), flat(&start)), change(bias(&end), bias(&start))]
    };
    let length = |values: &[f32]| values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
    let sgd = |clipping| config(&SgdConfig::new().with_gradient_clipping(clipping).into(), 1.0);
    let plain = moved(sgd(None));
    assert!(plain.iter().all(|part| length(part) > 0.02), "{plain:?}");

    let by_norm = moved(sgd(Some(GradientClippingConfig::Norm(0.01))));
    assert!(by_norm.iter().all(|part| (length(part) - 0.01).abs() < 1e-4), "{by_norm:?}");
    let by_value = moved(sgd(Some(GradientClippingConfig::Value(0.004))));
    assert!(by_value.concat().iter().all(|value| value.abs() < 0.0041), "{by_value:?}");
    let whole = moved(sgd(None).with_clip_norm(0.01)).concat();
    assert!((length(&whole) - 0.01).abs() < 1e-4, "{whole:?}");
    let factor = 0.01 / length(&plain.concat());
    let same = whole.iter().zip(plain.concat()).all(|(w, p)| (f64::from(*w) - factor * f64::from(p)).abs() < 1e-5);
    assert!(same, "the direction stays: {whole:?} {plain:?}");
    assert_eq!(moved(sgd(None).with_clip_norm(1e6)), plain);
    for norm in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = sgd(None).with_clip_norm(norm).try_init(&layer()).err().expect("refused").to_string();
        assert!(error.contains(&format!("not {norm}")), "{error}");
    }
}

/// ClipUp against its formula in f64, over weight and bias as one vector.
#[test]
fn clip_up_is_its_formula() {
    let mut model = layer();
    let (rate, momentum, max_speed) = (0.07, 0.9, 0.12);
    let mut optimizer =
        OptimizerConfig::from(ClipUpConfig::new().with_momentum(momentum).with_max_speed(max_speed)).init();
    let flat = |layer: &Linear| -> Vec<f64> {
        let bias = layer.bias.as_ref().expect("a bias").val().into_data();
        layer.weight.val().into_data().iter::<f64>().chain(bias.iter::<f64>()).collect()
    };
    let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let (mut expected, mut velocity) = (flat(&model), vec![0.0; 18]);
    let mut fastest = 0.0f64;
    for step in 0..6 {
        let scale = 10.0f32.powi(step - 3); // of no account
        let (of_weight, of_bias) = (tensor([5, 3], step as f32) * scale, tensor([3], 4.0) * scale);
        let gradient: Vec<f64> = of_weight.to_data().iter::<f64>().chain(of_bias.to_data().iter::<f64>()).collect();
        let mut gradients = GradientsParams::new();
        gradients.register(model.weight.id, of_weight);
        gradients.register(model.bias.as_ref().expect("a bias").id, of_bias);
        model = optimizer.step(rate, model, gradients);

        let norm = length(&gradient);
        velocity.iter_mut().zip(&gradient).for_each(|(v, g)| *v = momentum * *v + rate * g / norm);
        let speed = length(&velocity);
        fastest = fastest.max(speed);
        velocity.iter_mut().for_each(|v| *v *= (max_speed / speed).min(1.0));
        expected.iter_mut().zip(&velocity).for_each(|(x, v)| *x -= v);
        let found = flat(&model);
        let off = found.iter().zip(&expected).map(|(f, e)| (f - e).abs()).fold(0.0, f64::max);
        assert!(off < 1e-5, "step {step}: {off}");
    }
    assert!(fastest > max_speed, "canary: nothing was clipped");
    for refused in [
        ClipUpConfig::new().with_momentum(1.0),
        ClipUpConfig::new().with_momentum(-0.1),
        ClipUpConfig::new().with_max_speed(0.0),
        ClipUpConfig::new().with_max_speed(f64::NAN),
    ] {
        let error = config(&refused.clone().into(), 0.1).try_init(&layer()).err().expect("refused").to_string();
        assert!(error.contains(&format!("not {} and {}", refused.momentum, refused.max_speed)), "{error}");
    }
}

fn integer_layer() -> integer::Linear {
    let weight = Tensor::<2, Int>::from_data([[3i8, -4, 5, -6]; 16], (&Device::flex(), DType::I8));
    integer::Linear { weight: Param::initialized(ParamId::new(), weight) }
}

fn integer_optimizers() -> [OptimizerConfig; 2] {
    [IntegerAdamWConfig::new().with_weight_decay(0.01).into(), IntegerMuonConfig::new().with_weight_decay(0.01).into()]
}

fn integer_config(optimizer: &OptimizerConfig) -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(QEggrollConfig::new(), optimizer.clone())
        .with_population_size(32)
        .with_learning_rate(0.4)
}

fn train_integers(strategy: &mut EvolutionStrategy, mut model: integer::Linear, until: u64) -> (integer::Linear, f64) {
    let device = Device::flex();
    while strategy.generation() < until {
        let population = strategy.ask();
        let fitness = population.evaluate(|members| {
            let x = Tensor::<2, Int>::full([1, 16], 16, (&device, DType::I8));
            let logits = model.forward(members.repeat(x));
            log_likelihood(logits, Tensor::full([members.count()], 1, &device), members.count(), Rounding::Floor)
        });
        strategy.tell(&mut model, population, fitness).expect("a generation");
    }
    (model, strategy.report().expect("a report").fitness_mean)
}

/// The accumulators decide which weights move, one at a time; their state is part of a checkpoint.
#[test]
fn integers_train_and_resume() {
    for optimizer in integer_optimizers() {
        let start = integer_layer();
        let mut strategy = integer_config(&optimizer).init(&start);
        let (_, first) = train_integers(&mut strategy, start.clone(), 1);
        let (straight, last) = train_integers(&mut integer_config(&optimizer).init(&start), start.clone(), 60);
        assert!(last > first + 8.0, "{first} {last} sixteenths of a bit");

        let folder = tempfile::tempdir().expect("a folder");
        let checkpoints = Checkpoints::new(folder.path());
        let mut strategy = integer_config(&optimizer).init(&start);
        let (model, _) = train_integers(&mut strategy, start.clone(), 13);
        checkpoints.save(&strategy, &model).expect("saves");
        let (mut strategy, model) = checkpoints.load_latest(integer_layer()).expect("loads").expect("is there");
        let (resumed, _) = train_integers(&mut strategy, model.clone(), 60);
        assert_eq!(parameter_digest(&resumed), parameter_digest(&straight));
    }
}

/// Accumulators that are lost lead elsewhere: the same generation, with and without what those before have left.
#[test]
fn canary_accumulators_matter() {
    let [optimizer, _] = integer_optimizers();
    let start = integer_layer();
    let mut used = integer_config(&optimizer).init(&start);
    let (model, _) = train_integers(&mut used, start, 13);
    let mut fresh = integer_config(&optimizer).init(&model);
    while fresh.generation() < 13 {
        // Equal fitness moves nothing and leaves no trace.
        let population = fresh.ask();
        let mut same = model.clone();
        fresh.tell(&mut same, population, vec![0; 32].into()).expect("a generation");
        assert_eq!(parameter_digest(&same), parameter_digest(&model));
    }
    let next = |strategy: &mut EvolutionStrategy| parameter_digest(&train_integers(strategy, model.clone(), 20).0);
    assert_ne!(next(&mut used), next(&mut fresh));
}

#[test]
fn optimizers_of_integers_are_for_integers() {
    for optimizer in integer_optimizers() {
        let floats = EvolutionStrategyConfig::new(EggrollConfig::new(), optimizer);
        let error = floats.try_init(&layer()).err().expect("refused").to_string();
        assert!(error.contains("\"weight\" is a trained float parameter"), "{error}");
    }
}
