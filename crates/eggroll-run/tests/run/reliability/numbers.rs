//! Numbers of configurations are replaced by numbers that cannot be: each is refused by name or value, or harmless.

use crate::reliability::support::*;
use burn::lr_scheduler::LrSchedulerConfig;
use burn::lr_scheduler::step::StepLrSchedulerConfig;
use burn::module::{Module, ModuleMapper, Param};
use burn::optim::SgdConfig;
use burn::optim::momentum::MomentumConfig;
use burn::tensor::{Device, Tensor};
use eggroll_core::*;
use eggroll_nn::attention::MultiHeadAttentionConfig;
use eggroll_nn::{GruConfig, LinearConfig, integer};
use eggroll_run::*;
use eggroll_train::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

/// More than a small model takes, less than a machine has.
const LIMIT: u64 = 64 << 20;

/// What a configuration with another number led to.
enum NumberVerdict {
    /// An error or panic with this text, before anything was computed.
    Refused(String),
    /// Used: this is wrong with what came of it, if anything is.
    Used(Option<String>),
}

/// Replaces every number of `config`, one after the other, and tries what it makes: how many were tried, and what was wrong.
fn faults<C: Serialize + DeserializeOwned>(config: &C, attempt: impl Fn(C) -> NumberVerdict) -> (usize, Vec<String>) {
    let whole = serde_json::to_value(config).expect("a configuration is data");
    let mut leaves = Vec::new();
    numbers(&whole, String::new(), &mut leaves);
    let (mut tried, mut wrong) = (0, Vec::new());
    for place in leaves {
        let values = match whole.pointer(&place).expect("a place").is_f64() {
            true => vec![json!(1e300), json!(-1.0), json!(0.0), json!(1e-320)],
            false => vec![json!(u64::MAX), json!(0)],
        };
        for value in values {
            let mut changed = whole.clone();
            *changed.pointer_mut(&place).expect("a place") = value.clone();
            tried += 1;
            // Refused by the field's type, or as follows.
            let Ok(config) = serde_json::from_value::<C>(changed) else { continue };
            let problem = match panic::catch_unwind(AssertUnwindSafe(|| attempt(config))) {
                Err(panic) => Some(format!("panic: {}", panic_text(&*panic))),
                Ok(NumberVerdict::Refused(message)) if names(&message, &place, &value) => None,
                Ok(NumberVerdict::Refused(message)) => Some(format!("neither field nor value: {message}")),
                Ok(NumberVerdict::Used(problem)) => problem,
            };
            wrong.extend(problem.map(|problem| format!("{place} = {value}: {problem}")));
        }
    }
    (tried, wrong)
}

fn walk<C: Serialize + DeserializeOwned>(config: &C, attempt: impl Fn(C) -> NumberVerdict) {
    let (tried, wrong) = faults(config, attempt);
    assert!(tried > 0 && wrong.is_empty(), "{tried} tried in {}:\n{}", json!(config), wrong.join("\n"));
}

/// The places of all numbers of a value.
fn numbers(value: &Value, place: String, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(place),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| numbers(item, format!("{place}/{i}"), found))
        }
        Value::Object(fields) => fields.iter().for_each(|(name, item)| numbers(item, format!("{place}/{name}"), found)),
        _ => {}
    }
}

/// Whether a message has a name of the field, also in the words of a sentence, or the value.
fn names(message: &str, place: &str, value: &Value) -> bool {
    let plain = |text: &str| text.to_lowercase().replace('_', " ");
    let mut names = place.split('/').filter(|name| !name.is_empty() && name.parse::<usize>().is_err());
    let shown = if value.is_f64() { format!("{:?}", value.as_f64().expect("a float")) } else { value.to_string() };
    let not = format!("not {}", shown.trim_end_matches(".0"));
    names.any(|name| plain(message).contains(&plain(name))) || message.contains(&shown) || message.contains(&not)
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default()
}

/// Tries a configuration for one generation of a model.
fn generation_of<T: LearningModel>(mut config: EvolutionStrategyConfig) -> NumberVerdict {
    config.memory_limit = Some(config.memory_limit.map_or(LIMIT, |limit| limit.min(LIMIT)));
    let mut model = T::start();
    let mut strategy = match config.try_init(&model) {
        Ok(strategy) => strategy,
        Err(error) => return NumberVerdict::Refused(error.to_string()),
    };
    let population = strategy.ask();
    let moved = strategy.parameters().entries().iter().any(|entry| entry.role != Role::Frozen) && !is_integer(&config);
    let fitness = match panic::catch_unwind(AssertUnwindSafe(|| model.fitness(&population))) {
        Ok(fitness) => fitness,
        // Documented: an evaluation that does not fit into memory panics with what would.
        Err(panic) if panic_text(&*panic).contains("that may be used") => {
            return NumberVerdict::Refused(panic_text(&*panic));
        }
        Err(panic) => panic::resume_unwind(panic),
    };
    let before = parameter_digest(&model);
    match strategy.tell(&mut model, population, fitness) {
        Err(error) => NumberVerdict::Refused(error.to_string()),
        Ok(report) => NumberVerdict::Used(match check_finite(&model) {
            Err(error) => Some(error.to_string()),
            Ok(()) => (moved && report.learning_rate > 0.0 && parameter_digest(&model) == before)
                .then(|| "the model cannot move".to_owned()),
        }),
    }
}

/// Votes move the model then, of which a generation may have none above the threshold.
fn is_integer(config: &EvolutionStrategyConfig) -> bool {
    matches!(config.noiser, NoiserConfig::QEggroll(_))
}

fn attempt(config: EvolutionStrategyConfig) -> NumberVerdict {
    match is_integer(&config) {
        true => generation_of::<IntegerNet>(config),
        false => generation_of::<Net>(config),
    }
}

/// With a number in every place that may have one.
fn full(noiser: NoiserConfig) -> EvolutionStrategyConfig {
    let config = match noiser {
        NoiserConfig::QEggroll(config) => EvolutionStrategyConfig::integer(config),
        noiser => EvolutionStrategyConfig::new(noiser, SgdConfig::new()),
    };
    EvolutionStrategyConfig { chunk_size: Some(4), memory_limit: Some(LIMIT), population_size: POPULATION, ..config }
}

#[test]
fn strategies() {
    for noiser in [noisers(ParameterKind::Float), noisers(ParameterKind::Integer)].concat() {
        walk(&full(noiser), attempt);
    }
    let plain = || full(EggrollConfig::new().into());
    for config in [
        plain().with_sigma(SigmaSchedule::Exponential { initial: 0.1, decay: 0.9, last: Some(0.01) }),
        plain().with_shaping(FitnessShaping::GroupStandardized { size: 4 }),
        plain().with_shaping(FitnessShaping::TopPairs { pairs: 2 }),
        plain().with_noise_source(NoiseSourceConfig::Table { len: 1 << 10 }),
        plain().with_noise_reuse(2).with_unroll_horizon(4).with_clip_norm(0.5),
        plain().with_noise_scale(NoiseScale::RelativeToSpread).with_anchor_decay(0.1).with_scales([("*", 2.0)]),
        plain().with_learning_rate(LrSchedulerConfig::from(StepLrSchedulerConfig::new(0.1, 10))),
    ] {
        walk(&config, attempt);
    }
}

/// Burn's too, of which some panic by themselves.
#[test]
fn optimizers_of_the_registry() {
    for name in OptimizerConfig::NAMES {
        let optimizer = match name.parse().expect("registered") {
            // Without momentum it has no numbers.
            OptimizerConfig::Sgd(_) => SgdConfig::new().with_momentum(Some(MomentumConfig::new())).into(),
            optimizer => optimizer,
        };
        let noiser: NoiserConfig = match optimizer.moves_integers() {
            true => QEggrollConfig::new().into(),
            false => EggrollConfig::new().into(),
        };
        walk(&optimizer, |optimizer| attempt(EvolutionStrategyConfig { optimizer, ..full(noiser.clone()) }));
    }
}

/// By Burn's convention `init` panics, with field and value, before anything is allocated.
#[test]
fn modules() {
    fn built<M: Module>(init: impl FnOnce(&Device) -> M) -> NumberVerdict {
        match panic::catch_unwind(AssertUnwindSafe(|| init(&Device::flex()))) {
            Ok(model) => NumberVerdict::Used(check_finite(&model).err().map(|error| error.to_string())),
            Err(panic) => match panic_text(&*panic) {
                text if text.contains("overflow") || text.contains("capacity") => panic::resume_unwind(panic),
                text => NumberVerdict::Refused(text),
            },
        }
    }
    walk(&LinearConfig::new(3, 2), |config: LinearConfig| built(|device| config.init(device)));
    let gru = GruConfig { clip: Some(1.0), ..GruConfig::new(3, 2, true) };
    walk(&gru, |config: GruConfig| built(|device| config.init(device)));
    let attention = MultiHeadAttentionConfig::new(4, 2);
    walk(&attention, |config: MultiHeadAttentionConfig| built(|device| config.init(device)));
    let transformer = integer::transformer::TransformerConfig::new().with_layers(1).with_width(4).with_heads(2);
    walk(&transformer, |config: integer::transformer::TransformerConfig| built(|device| config.init(device)));
}

/// A schedule that decays to what f32 cannot hold ends with an error, not with generations in which nothing moves.
#[test]
fn a_sigma_that_decays_to_nothing_is_an_error() {
    let sigma = SigmaSchedule::Exponential { initial: 0.1, decay: 1e-9, last: None };
    ends(full(EggrollConfig::new().into()).with_sigma(sigma), "sigma of generation 5 is 1");
}

/// Each number fits, and the rate that the schedule makes of them does not: nothing is updated by it.
#[test]
fn a_schedule_that_leaves_f32_is_an_error() {
    let schedule = LrSchedulerConfig::from(StepLrSchedulerConfig::new(1.0, 1).with_gamma(1e30));
    ends(full(EggrollConfig::new().into()).with_learning_rate(schedule), "the learning rate of generation 2 is 1");
}

fn ends(config: EvolutionStrategyConfig, expected: &str) {
    let mut model = Net::start();
    let mut strategy = config.init(&model);
    let error = loop {
        let (population, before) = (strategy.ask(), parameter_digest(&model));
        let fitness: Fitness = (0..POPULATION).map(|member| member as f32).collect::<Vec<_>>().into();
        if let Err(error) = strategy.tell(&mut model, population, fitness) {
            assert_eq!(parameter_digest(&model), before);
            break error.to_string();
        }
        assert!(strategy.generation() < 10);
    };
    assert!(error.starts_with(expected), "{error}");
    assert!(parameter_digest(&model) != parameter_digest(&Net::start()) && check_finite(&model).is_ok());
}

/// However a model came by them. Infinite values that are frozen are a mask.
#[test]
fn models_with_parameters_that_are_no_numbers_are_refused() {
    struct Spoil(f32);

    impl ModuleMapper for Spoil {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|tensor| tensor.full_like(self.0))
        }
    }
    let init = |value: f32, frozen: &[&str]| {
        let model = Net::start().map(&mut Spoil(value));
        full(EggrollConfig::new().into()).with_frozen(frozen.iter().copied()).try_init(&model).map(drop)
    };
    init(f32::INFINITY, &["first"]).expect_err("the second layer is trained");
    for (value, frozen) in [(f32::NAN, &[][..]), (f32::INFINITY, &[]), (f32::NAN, &["first"])] {
        let found = init(value, frozen).expect_err("refused").to_string();
        assert!(
            found.starts_with("\"first.weight\" of shape [4, 6] has 24 values that are NaN or infinite"),
            "{found}"
        );
    }
}

/// Canary: a configuration that nobody checks makes the walk fail, and one that is checked does not.
#[test]
fn an_unchecked_configuration_is_found() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Dummy {
        scale: f64,
        count: usize,
    }
    let dummy = Dummy { scale: 1.0, count: 2 };
    let unchecked = |dummy: Dummy| NumberVerdict::Used((dummy.scale as f32 == 0.0).then(|| "does not move".to_owned()));
    let (tried, wrong) = faults(&dummy, unchecked);
    assert_eq!((tried, wrong.len()), (4 + 2, 2), "{wrong:?}");
    let refused = |text: &'static str| faults(&dummy, move |_| NumberVerdict::Refused(text.to_owned())).1.len();
    assert_eq!((refused("no"), refused("scale and count")), (6, 0));
    assert!(
        !faults(&dummy, |dummy| NumberVerdict::Used((dummy.count * 2 == 1).then(String::new))).1.is_empty(),
        "overflow"
    );
}
