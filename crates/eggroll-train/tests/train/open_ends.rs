//! Rules, schedules and optimizers of the program, and settings that change while a strategy runs.

use burn::lr_scheduler::LrSchedulerConfig;
use burn::module::{Module, ModuleMapper, Param};
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::{Device, Tensor};
use eggroll_core::{EggrollConfig, QEggrollConfig};
use eggroll_nn::{Linear, LinearConfig, integer};
use eggroll_train::{
    ConfigError, CustomShaping, CustomSigma, Error, EvolutionStrategy, EvolutionStrategyConfig, Fitness,
    FitnessShaping, SigmaSchedule, TellError,
};

fn layer() -> Linear {
    let weight = Tensor::<2>::from_floats([[0.1, 0.4], [-0.3, 0.2]], &Device::flex());
    Linear { weight: Param::from_tensor(weight), bias: None }
}

fn config() -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(8).with_learning_rate(0.1)
}

fn fitness(members: usize) -> Fitness {
    (0..members).map(|member| (member as f32 * 1.7).sin()).collect::<Vec<_>>().into()
}

fn start(config: &EvolutionStrategyConfig) -> (Linear, EvolutionStrategy) {
    let model = layer();
    let strategy = config.init(&model);
    (model, strategy)
}

fn generation(strategy: &mut EvolutionStrategy, model: &mut Linear) {
    let population = strategy.ask();
    strategy.tell(model, population, fitness(8)).expect("a generation");
}

fn values(model: &Linear) -> Vec<f32> {
    model.weight.val().into_data().try_to_vec().expect("f32")
}

fn ranks() -> CustomShaping {
    CustomShaping::new("ranks", |scores| FitnessShaping::CenteredRank.shape(scores))
}

fn halving() -> CustomSigma {
    CustomSigma::new("halving", |generation| 0.5f64.powi(generation as i32))
}

/// A rule of the program makes the same bits as the built-in one that it calls.
#[test]
fn custom_functions_are_used() {
    let run = |config: EvolutionStrategyConfig| {
        let (mut model, mut strategy) = start(&config);
        (0..3).for_each(|_| generation(&mut strategy, &mut model));
        values(&model)
    };
    let built_in = config().with_shaping(FitnessShaping::CenteredRank);
    assert_eq!(run(config().with_shaping(ranks())), run(built_in.clone()));
    assert_ne!(run(config()), run(built_in), "canary");
    let exponential = config().with_sigma(SigmaSchedule::Exponential { initial: 1.0, decay: 0.5, last: None });
    assert_eq!(run(config().with_sigma(halving())), run(exponential.clone()));
    assert_ne!(run(config()), run(exponential), "canary");
}

/// Files hold their names: who reads one gives the functions again.
#[test]
fn custom_functions_are_named_in_files() {
    let given = config().with_shaping(ranks()).with_sigma(halving());
    let json = serde_json::to_string(&given).expect("writes");
    assert!(
        json.contains(r#""sigma":{"custom":"halving"}"#) && json.contains(r#""shaping":{"custom":"ranks"}"#),
        "{json}"
    );
    let read: EvolutionStrategyConfig = serde_json::from_str(&json).expect("reads");
    let error = read.try_init(&layer()).err().expect("refused").to_string();
    assert_eq!(
        error,
        "the sigma schedule \"halving\" is a function of the program that saved this: give the configuration that has it"
    );
    assert!(read.with_functions_of(&given).try_init(&layer()).is_ok());
    let other = config().with_shaping(CustomShaping::new("other", <[f64]>::to_vec)).with_sigma(halving());
    let error = read.with_functions_of(&other).try_init(&layer()).err().expect("refused").to_string();
    assert!(error.starts_with("the fitness shaping \"ranks\""), "{error}");
}

#[test]
#[should_panic(expected = "the fitness shaping \"short\" returned 3 weights for 8 scores")]
fn a_custom_rule_of_the_wrong_length_panics() {
    let (mut model, mut strategy) = start(&config().with_shaping(CustomShaping::new("short", |_| vec![0.0; 3])));
    generation(&mut strategy, &mut model);
}

/// `θ ← θ − η·G`, as SGD.
struct Descent {
    gradients: GradientsParams,
    rate: f64,
}

impl ModuleMapper for Descent {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        match self.gradients.remove::<D>(param.id) {
            Some(gradient) => param.map(|value| value - gradient * self.rate),
            None => param,
        }
    }
}

#[test]
fn an_optimizer_of_the_program() {
    let schedule =
        || -> LrSchedulerConfig { burn::lr_scheduler::exponential::ExponentialLrSchedulerConfig::new(0.1, 0.9).into() };
    let scheduled = config().with_learning_rate(schedule());
    let ((mut model, mut strategy), (mut own, mut advanced)) = (start(&scheduled), start(&scheduled));
    for step in 0..3 {
        let population = strategy.ask();
        let report = strategy.tell(&mut model, population, fitness(8)).expect("a generation");
        let population = advanced.ask();
        let gradients = advanced.gradient(&own, &population, &fitness(8)).expect("belongs together").expect("differs");
        own = own.map(&mut Descent { gradients, rate: report.learning_rate });
        assert_eq!(advanced.advance(population, &fitness(8)).expect("a generation"), report, "{step}");
    }
    assert_eq!(values(&own), values(&model));
    let (stale, population) = (advanced.ask(), advanced.ask());
    advanced.advance(population, &fitness(8)).expect("a generation");
    assert!(matches!(advanced.advance(stale, &fitness(8)), Err(Error::Tell(TellError::Generation { .. }))));

    let integers = integer::LinearConfig::new(2, 2).init(&Device::flex());
    let mut strategy = EvolutionStrategyConfig::integer(QEggrollConfig::new()).with_population_size(8).init(&integers);
    let population = strategy.ask();
    let error = strategy.advance(population, &fitness(8)).expect_err("refused").to_string();
    assert!(error.starts_with("\"weight\" is a trained integer parameter"), "{error}");
}

#[test]
fn sigma_and_rate_while_running() {
    let run = |set: bool| {
        let config = if set { config() } else { config().with_sigma(0.7).with_learning_rate(0.3) };
        let (mut model, mut strategy) = start(&config);
        if set {
            strategy.set_sigma(0.7).expect("a sigma");
            strategy.set_learning_rate(0.3).expect("a rate");
        }
        assert_eq!(strategy.sigma(), 0.7);
        generation(&mut strategy, &mut model);
        let report = *strategy.report().expect("a report");
        assert_eq!((report.sigma, report.learning_rate), (0.7, 0.3));
        values(&model)
    };
    assert_eq!(run(true), run(false));

    // It is in the record, and gone without one.
    let mut strategy = config().init(&layer());
    strategy.set_sigma(0.7).expect("a sigma");
    let restored = config().init(&layer()).load_record(strategy.to_record());
    assert_eq!((restored.sigma(), config().init(&layer()).sigma()), (0.7, 0.02));
    strategy.set_sigma(None).expect("the schedule's");
    assert_eq!(strategy.sigma(), 0.02);

    for sigma in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-60] {
        assert!(matches!(strategy.set_sigma(sigma), Err(Error::Config(ConfigError::Sigma(_)))), "{sigma}");
    }
    for rate in [-1.0, f64::NAN, 1e39] {
        assert!(matches!(strategy.set_learning_rate(rate), Err(Error::Config(ConfigError::LearningRate(_)))), "{rate}");
    }
    let (mut model, mut unrolled) = start(&config().with_unroll_horizon(2));
    unrolled.set_sigma(0.5).expect("at its beginning");
    generation(&mut unrolled, &mut model);
    let error = unrolled.set_sigma(0.6).expect_err("refused").to_string();
    assert!(error.starts_with("sigma cannot be set in generation 1"), "{error}");
}

/// An error leaves the model where it is.
#[test]
fn tell_loses_no_model() {
    let (mut model, mut strategy) = start(&config());
    let population = strategy.ask();
    let error = strategy.tell(&mut model, population, fitness(7)).expect_err("refused");
    assert!(matches!(error, Error::Tell(TellError::FitnessLength { found: 7, tasks: 1, population: 8 })));
    assert_eq!((values(&model), strategy.generation()), (values(&layer()), 0));
}

/// Of a quadratic any sigma shows the gradient; a score of two values shows nothing where the noise is small.
#[test]
fn probes_find_the_sigma_that_shows_something() {
    let model = LinearConfig::new(4, 2).init(&Device::flex());
    let x = Tensor::<2>::ones([1, 4], &Device::flex());
    let strategy = config().with_population_size(256).init(&model);
    let probe = strategy
        .probe_sigma(&model, [3.0, 0.001, 0.1], |population| {
            population.evaluate(|members| {
                let y = model.forward_shared(x.clone()).slice_dim(1, 0..1);
                members.mean(y.greater_elem(1.5).float())
            })
        })
        .expect("a probe");
    let [small, middle, large] = &probe.sigmas[..] else { panic!("{probe}") };
    assert_eq!((small.sigma, middle.sigma, large.sigma), (0.001, 0.1, 3.0));
    assert_eq!((small.differing_pairs, small.signal_to_noise), (0.0, 0.0));
    assert!(large.differing_pairs > 0.2 && large.signal_to_noise > 0.1, "{probe}");
    assert_eq!(probe.recommended(), Some(3.0), "{probe}");
    assert!(probe.to_string().contains("<- recommended"), "{probe}");
    assert_eq!(strategy.generation(), 0);

    let none = strategy.probe_sigma(&model, [], |_| fitness(256)).expect_err("refused").to_string();
    assert!(none.contains("no sigma was given"), "{none}");
    assert!(strategy.probe_sigma(&model, [0.1, -0.1], |_| fitness(256)).is_err());
    let constant =
        strategy.probe_sigma(&model, [0.1], |population| vec![1.0f32; population.count()].into()).expect("a probe");
    assert_eq!(constant.recommended(), None);
    assert!(constant.to_string().contains("no pair differs"), "{constant}");

    // Of a quadratic, odd parts grow with sigma, even parts with its square.
    let quadratic = |sigmas: Vec<f64>| {
        let score =
            |members: &eggroll_train::MemberChunk| -members.mean((model.forward_shared(x.clone()) - 5.0).square());
        strategy.probe_sigma(&model, sigmas, |population| population.evaluate(score)).expect("a probe")
    };
    let probe = quadratic(vec![0.01, 0.1, 10.0]);
    let ratio = probe.sigmas[0].signal_to_noise / probe.sigmas[1].signal_to_noise;
    assert!((50.0..200.0).contains(&ratio) && probe.recommended() == Some(0.1), "{ratio} {probe}");
    assert!(probe.sigmas[2].signal_to_noise < 1.0, "canary: {probe}");
    let short = strategy.probe_sigma(&model, [0.1], |_| fitness(7)).expect_err("refused").to_string();
    assert!(short.contains("found 7 values"), "{short}");
}

/// A probe says what it saw: scores that are no numbers have no part in it, and a larger sigma does not help.
#[test]
fn probes_say_what_is_not_finite() {
    let model = LinearConfig::new(4, 2).init(&Device::flex());
    let x = Tensor::<2>::ones([1, 4], &Device::flex());
    let strategy = config().with_population_size(16).init(&model);
    let overflows =
        |members: &eggroll_train::MemberChunk| -members.mean((model.forward_shared(x.clone()) - 5.0).square());
    let probe = |sigmas: Vec<f64>| {
        strategy.probe_sigma(&model, sigmas, |population| population.evaluate(overflows)).expect("a probe")
    };
    let huge = probe(vec![1e30]);
    assert_eq!((huge.sigmas[0].non_finite, huge.recommended()), (16, None));
    assert!(huge.to_string().contains("some scores are NaN or infinite: use smaller sigmas"), "{huge}");
    assert_eq!(probe(vec![0.01, 1e30]).recommended(), Some(0.01));

    let of = |own: f32, others: &[f32]| {
        let score = |population: &eggroll_train::Population| match population.count() {
            2 => vec![own; 2].into(),
            _ => others.to_vec().into(),
        };
        strategy.probe_sigma(&model, [0.1], score).expect("a probe")
    };
    let mut scores = [1.0, 3.0].repeat(8);
    let all = of(2.0, &scores).sigmas[0];
    scores[4] = f32::NAN;
    scores[7] = f32::NEG_INFINITY;
    let some = of(2.0, &scores).sigmas[0];
    assert_eq!((some.non_finite, some.differing_pairs, some.signal_to_noise), (2, 0.75, all.signal_to_noise));
    let broken = of(f32::NAN, &[1.0, 3.0].repeat(8));
    assert_eq!(broken.recommended(), None);
    assert!(broken.to_string().contains("the score of the model without noise is NaN"), "{broken}");
    let json = serde_json::to_string(&broken).expect("writes");
    assert!(serde_json::from_str::<eggroll_train::SigmaProbe>(&json).expect("reads").recommended().is_none());
}
