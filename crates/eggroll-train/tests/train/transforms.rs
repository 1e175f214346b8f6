//! The program's links between estimate and optimizer.

use crate::support::{Cast, Net, bytes, input};
use burn::module::Module;
use burn::optim::SgdConfig;
use burn::optim::momentum::MomentumConfig;
use burn::tensor::{DType, Device, Tensor};
use eggroll_core::{EggrollConfig, QEggrollConfig};
use eggroll_nn::integer;
use eggroll_train::*;
use std::sync::Mutex;

/// The velocity of Burn's SGD.
struct Momentum(f64);

impl GradientTransform for Momentum {
    fn init(&self, values: &[Tensor<1>]) -> Vec<Tensor<1>> {
        values.iter().map(Tensor::zeros_like).collect()
    }

    fn update(&self, velocities: &mut [Tensor<1>], parameters: &mut [ParameterGradient]) {
        for (velocity, parameter) in velocities.iter_mut().zip(parameters) {
            *velocity = velocity.clone() * self.0 + parameter.gradient.clone();
            parameter.gradient = velocity.clone();
        }
    }
}

fn config() -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(8).with_sigma(0.1)
}

fn with_momentum() -> EvolutionStrategyConfig {
    config().with_transform("momentum", Momentum(0.9))
}

fn with_burns_momentum() -> EvolutionStrategyConfig {
    let burn = MomentumConfig::new().with_momentum(0.9).with_dampening(0.0);
    EvolutionStrategyConfig { optimizer: SgdConfig::new().with_momentum(Some(burn)).into(), ..config() }
}

fn start(config: &EvolutionStrategyConfig) -> (Net, EvolutionStrategy) {
    let model = Net::new();
    let strategy = config.init(&model);
    (model, strategy)
}

fn generations(strategy: &mut EvolutionStrategy, model: &mut Net, count: usize) {
    for _ in 0..count {
        let population = strategy.ask();
        let fitness = population.evaluate(|members| -members.mean((model.forward(input()) - 0.3).square()));
        strategy.tell(model, population, fitness).expect("a generation");
    }
}

fn trained(config: &EvolutionStrategyConfig, count: usize) -> Vec<u8> {
    let (mut model, mut strategy) = start(config);
    generations(&mut strategy, &mut model, count);
    bytes(&model)
}

/// With what it remembers it is Burn's, bit for bit.
#[test]
fn momentum_is_that_of_burn() {
    assert_eq!(trained(&with_momentum(), 6), trained(&with_burns_momentum(), 6));
    assert_ne!(trained(&config(), 6), trained(&with_burns_momentum(), 6), "canary");
}

/// Behind the clip, in the order that they were given, with what a step changes, in the order of the model.
#[test]
fn transforms_take_what_the_one_before_gave() {
    static SEEN: Mutex<Vec<(String, Vec<usize>)>> = Mutex::new(Vec::new());
    let note = |parameters: &mut [ParameterGradient]| {
        let all = parameters.iter().map(|parameter| (parameter.path().to_owned(), parameter.shape().to_vec()));
        *SEEN.lock().expect("not poisoned") = all.collect();
        assert!(parameters.iter().all(|parameter| parameter.value().dims() == parameter.gradient.dims()));
    };
    let scale = |factor: f64| {
        move |parameters: &mut [ParameterGradient]| {
            parameters.iter_mut().for_each(|parameter| parameter.gradient = parameter.gradient.clone() * factor);
        }
    };
    let norm = |parameters: &mut [ParameterGradient]| {
        let squares = parameters.iter().map(|parameter| parameter.gradient.clone().square().sum().into_scalar::<f32>());
        let norm = squares.sum::<f32>().sqrt();
        assert!((norm - 2e-3).abs() < 1e-6, "{norm}");
    };
    let both = config().with_frozen(["first.bias"]).with_clip_norm(1e-3);
    let both = both.with_transform("twice", scale(2.0)).with_transform("norm", norm).with_transform("note", note);
    trained(&both, 2);
    let expected = [("first.weight", vec![4, 6]), ("second.weight", vec![6, 2]), ("second.bias", vec![2])];
    assert_eq!(*SEEN.lock().expect("not poisoned"), expected.map(|(path, shape)| (path.to_owned(), shape)));
    // A gradient of nothing moves nothing, and asking for it changes nothing that is remembered.
    let still = config().with_transform("none", scale(0.0));
    assert_eq!(trained(&still, 2), bytes(&Net::new()));
    let (mut model, mut strategy) = start(&with_momentum());
    generations(&mut strategy, &mut model, 2);
    let population = strategy.ask();
    let fitness = population.evaluate(|members| members.mean(model.forward(input())));
    let gradient = || {
        let gradient = strategy.gradient(&model, &population, &fitness).expect("belongs together").expect("differ");
        gradient.get::<2>(model.first.weight.id).expect("trained").into_data()
    };
    assert_eq!(gradient(), gradient());
}

#[test]
fn records_hold_what_is_remembered() {
    let config = with_momentum();
    let (mut model, mut strategy) = start(&config);
    generations(&mut strategy, &mut model, 3);
    let mut resumed = config.init(&model).try_load_record(strategy.to_record()).expect("its own");
    let forgotten = StrategyRecord { transforms: config.init(&model).to_record().transforms, ..strategy.to_record() };
    let mut forgetful = config.init(&model).try_load_record(forgotten).expect("of the same lengths");
    let on = |strategy: &mut EvolutionStrategy| {
        let mut model = model.clone();
        generations(strategy, &mut model, 3);
        bytes(&model)
    };
    let expected = on(&mut strategy.clone());
    assert_eq!(on(&mut resumed), expected);
    assert_ne!(on(&mut forgetful), expected, "canary");

    let refused = |config: &EvolutionStrategyConfig, transforms: Option<KeptTensors>| {
        let record = StrategyRecord { transforms, ..config.init(&model).to_record() };
        config.init(&model).try_load_record(record).err().expect("refused").to_string()
    };
    let kinds = "[24 F32, 6 F32, 12 F32, 2 F32]";
    assert_eq!(
        refused(&config, None),
        format!(
            "the state of the transforms cannot be loaded: the record has [], and the transforms of this strategy have {kinds}"
        )
    );
    let error = refused(&self::config(), strategy.to_record().transforms);
    assert!(error.contains(&format!("the record has {kinds}, and the transforms of this strategy have []")), "{error}");
}

/// Named in files, and given again.
#[test]
fn files_hold_the_names() {
    let given = with_momentum().with_transform("nothing", |_: &mut [ParameterGradient]| {});
    let json = serde_json::to_string(&given).expect("writes");
    assert!(json.contains(r#""transforms":["momentum","nothing"]"#), "{json}");
    let read: EvolutionStrategyConfig = serde_json::from_str(&json).expect("reads");
    let error = read.try_init(&Net::new()).err().expect("refused").to_string();
    assert!(error.starts_with("the transform \"momentum\" is a function of the program"), "{error}");
    assert!(read.with_functions_of(&given).try_init(&Net::new()).is_ok());
    let error = read.with_functions_of(&with_momentum()).try_init(&Net::new()).err().expect("refused").to_string();
    assert!(error.starts_with("the transform \"nothing\""), "{error}");
}

/// What else they change is an error before anything is stepped.
#[test]
fn only_values_may_change() {
    struct Grows;
    impl GradientTransform for Grows {
        fn init(&self, values: &[Tensor<1>]) -> Vec<Tensor<1>> {
            values[..1].to_vec()
        }

        fn update(&self, state: &mut [Tensor<1>], _: &mut [ParameterGradient]) {
            state[0] = Tensor::cat(vec![state[0].clone(); 2], 0);
        }
    }
    let short = |parameters: &mut [ParameterGradient]| {
        parameters[1].gradient = parameters[1].gradient.clone().narrow(0, 0, 1);
    };
    let half = |parameters: &mut [ParameterGradient]| {
        parameters[1].gradient = parameters[1].gradient.clone().cast(DType::F16);
    };
    let refused = |config: EvolutionStrategyConfig| {
        let (mut model, mut strategy) = start(&config);
        let population = strategy.ask();
        let fitness = population.evaluate(|members| members.mean(model.forward(input())));
        let error = strategy.tell(&mut model, population, fitness).expect_err("refused");
        assert_eq!((bytes(&model), strategy.generation()), (bytes(&Net::new()), 0));
        error.to_string()
    };
    let error = refused(config().with_transform("short", short));
    assert_eq!(
        error,
        "transform \"short\" gave \"first.bias\" a gradient of 1 F32 values in place of 6 F32: only values may change"
    );
    let error = refused(config().with_transform("half", half));
    assert!(error.contains("\"first.bias\" a gradient of 6 F16 values in place of 6 F32"), "{error}");
    let error = refused(config().with_transform("back", |parameters: &mut [ParameterGradient]| parameters.reverse()));
    assert!(error.starts_with("transform \"back\" put \"second.bias\" in the place of \"first.weight\""), "{error}");
    let error = refused(config().with_transform("grows", Grows));
    assert!(error.contains("made what it remembers, tensor 0, one of 48 F32 values in place of 24 F32"), "{error}");
}

/// Where nothing could be transformed, or remembered.
#[test]
fn integers_and_steps_of_the_program_refuse_them() {
    let integers = integer::LinearConfig::new(4, 2).init(&Device::flex());
    let voting = EvolutionStrategyConfig::integer(QEggrollConfig::new()).with_transform("momentum", Momentum(0.9));
    let error = voting.try_init(&integers).err().expect("refused").to_string();
    assert!(error.contains("transforms") && error.contains("\"weight\""), "{error}");

    let advanced = |config: EvolutionStrategyConfig| {
        let (model, mut strategy) = start(&config);
        let population = strategy.ask();
        let fitness = population.evaluate(|members| members.mean(model.forward(input())));
        strategy.advance(population, &fitness).map(drop)
    };
    let error = advanced(with_momentum()).expect_err("refused").to_string();
    assert!(error.starts_with("transform \"momentum\" has state"), "{error}");
    assert!(advanced(config().with_transform("nothing", |_: &mut [ParameterGradient]| {})).is_ok());
}

/// With f32 master weights all is in f32, and momentum is Burn's there too.
#[test]
fn half_precision_is_moved_in_f32() {
    let wide = |parameters: &mut [ParameterGradient]| {
        let f32s =
            |parameter: &ParameterGradient| [parameter.gradient.dtype(), parameter.value().dtype()] == [DType::F32; 2];
        assert!(parameters.iter().all(f32s));
    };
    let trained = |config: EvolutionStrategyConfig| {
        let mut model = Net::new().map(&mut Cast(DType::BF16));
        let mut strategy = config.with_master_weights(true).with_transform("wide", wide).init(&model);
        for _ in 0..4 {
            let population = strategy.ask();
            let x = input().cast(DType::BF16);
            let fitness = population.evaluate(|members| -members.mean((model.forward(x.clone()) - 0.3).square()));
            strategy.tell(&mut model, population, fitness).expect("a generation");
        }
        strategy.master_digest().expect("masters")
    };
    assert_eq!(trained(with_momentum()), trained(with_burns_momentum()));
    assert_ne!(trained(config()), trained(with_burns_momentum()), "canary");
}
