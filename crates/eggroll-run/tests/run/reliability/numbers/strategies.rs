//! Everything that a strategy's configuration holds, but for optimizers and schedules: one generation of each.

use super::walk::{Outcome, panic_text, walk};
use crate::reliability::support::*;
use burn::module::{Module, ModuleMapper, Param};
use burn::optim::{AdamConfig, SgdConfig};
use burn::tensor::Tensor;
use eggroll_core::*;
use eggroll_run::*;
use eggroll_train::*;
use std::panic::{self, AssertUnwindSafe};

/// More than a small model takes, less than a machine has.
const LIMIT: u64 = 64 << 20;

/// Tries a configuration for one generation of a model.
pub fn generation_of<T: Task>(mut config: EvolutionStrategyConfig) -> Outcome {
    config.memory_limit = Some(config.memory_limit.map_or(LIMIT, |limit| limit.min(LIMIT)));
    let mut model = T::start();
    let mut strategy = match config.try_init(&model) {
        Ok(strategy) => strategy,
        Err(error) => return Outcome::Refused(error.to_string()),
    };
    let population = strategy.ask();
    let moved = strategy.parameters().entries().iter().any(|entry| entry.role != Role::Frozen);
    let fitness = match panic::catch_unwind(AssertUnwindSafe(|| model.fitness(&population))) {
        Ok(fitness) => fitness,
        // Documented: an evaluation that does not fit into memory panics with what would.
        Err(panic) => match panic_text(&*panic) {
            text if text.contains("that may be used") => return Outcome::Refused(text),
            text => return Outcome::Panicked(text),
        },
    };
    let constant = fitness.values().windows(2).all(|pair| pair[0] == pair[1]);
    let before = parameter_digest(&model);
    match strategy.tell(&mut model, population, fitness) {
        Err(error) => Outcome::Refused(error.to_string()),
        Ok(report) => {
            let rate = report.learning_rate;
            let problem = match check_finite(&model) {
                Err(error) => Some(error.to_string()),
                Ok(()) if constant && moved => Some("members do not differ".to_owned()),
                Ok(()) => (moved && rate > 0.0 && parameter_digest(&model) == before && !is_integer(&config))
                    .then(|| "the model cannot move".to_owned()),
            };
            Outcome::Used(problem)
        }
    }
}

/// Whether votes move the model, of which a generation may have none that is above the threshold.
fn is_integer(config: &EvolutionStrategyConfig) -> bool {
    matches!(config.noiser, NoiserConfig::QEggroll(_))
}

fn attempt(config: EvolutionStrategyConfig) -> Outcome {
    match is_integer(&config) {
        true => generation_of::<Integers>(config),
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
fn noisers() {
    let mut names = Vec::new();
    for kind in [ParameterKind::Float, ParameterKind::Integer] {
        for noiser in crate::reliability::support::noisers(kind) {
            names.push(serde_json::to_value(&noiser).expect("writes")["name"].as_str().expect("a name").to_owned());
            walk(&format!("{noiser:?}"), &full(noiser), attempt);
        }
    }
    assert!(NoiserConfig::NAMES.iter().all(|name| names.iter().any(|walked| walked == name)), "all noisers: {names:?}");
}

#[test]
fn sigma_schedules() {
    let all = [
        SigmaSchedule::Constant(0.1),
        SigmaSchedule::Exponential { initial: 0.1, decay: 0.9, last: None },
        SigmaSchedule::Exponential { initial: 0.1, decay: 0.9, last: Some(0.01) },
        SigmaSchedule::Cosine { initial: 0.1, last: 0.01, generations: 10 },
    ];
    for sigma in all {
        // A schedule that is not here does not compile; one of the program has no numbers to walk.
        match &sigma {
            SigmaSchedule::Constant(_) | SigmaSchedule::Exponential { .. } | SigmaSchedule::Cosine { .. } => {}
            SigmaSchedule::Custom(_) => unreachable!("not among them"),
        }
        let config = full(EggrollConfig::new().into()).with_sigma(sigma.clone());
        for scale in [GradientScale::SqrtPopulation, GradientScale::ScoreFunction, GradientScale::InverseSigma] {
            walk(&format!("{sigma:?} {scale:?}"), &config.clone().with_gradient_scale(scale), attempt);
        }
    }
}

#[test]
fn shapings_sources_roles_episodes_and_norms() {
    let groups = || full(BaselineSubtractionConfig::new(6).into());
    let plain = || full(EggrollConfig::new().into());
    let all = [
        plain().with_shaping(FitnessShaping::Raw),
        plain().with_shaping(FitnessShaping::Standardized),
        plain().with_shaping(FitnessShaping::ZScore),
        plain().with_shaping(FitnessShaping::SampleZScore),
        plain().with_shaping(FitnessShaping::GroupZScore { size: 4 }),
        plain().with_shaping(FitnessShaping::GroupStandardized { size: 4 }),
        plain().with_shaping(FitnessShaping::CenteredRank),
        plain().with_shaping(FitnessShaping::Utilities),
        plain().with_shaping(FitnessShaping::TopPairs { pairs: 2 }),
        plain().with_shaping(FitnessShaping::PairSign),
        groups(),
        plain().with_noise_source(NoiseSourceConfig::Cached),
        plain().with_noise_source(NoiseSourceConfig::Table { len: 1 << 10 }),
        plain().with_roles([("*bias", Role::Dense), ("first*", Role::LowRank { rank: 2 }), ("*", Role::Sparse)]),
        plain().with_noise_reuse(2).with_unroll_horizon(4),
        plain().with_clip_norm(0.5),
        plain().with_noise_scale(NoiseScale::RelativeToSpread).with_anchor_decay(0.1),
        plain().with_scales([("*bias", 0.5), ("*", 2.0)]),
        EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
            .with_population_size(POPULATION)
            .with_input_projection(InputProjection::Shared),
    ];
    for config in all {
        walk(&format!("{config:?}"), &config, attempt);
    }
}

/// A schedule that decays to what f32 cannot hold ends with an error, not with generations in which nothing moves.
#[test]
fn a_sigma_that_decays_to_nothing_is_an_error() {
    let sigma = SigmaSchedule::Exponential { initial: 0.1, decay: 1e-9, last: None };
    let config = full(EggrollConfig::new().into()).with_sigma(sigma);
    let (mut model, digest) = (Net::start(), parameter_digest(&Net::start()));
    let mut strategy = config.init(&model);
    let error = loop {
        let population = strategy.ask();
        let fitness: Fitness = (0..POPULATION).map(|member| member as f32).collect::<Vec<_>>().into();
        if let Err(error) = strategy.tell(&mut model, population, fitness) {
            break error.to_string();
        }
        assert!(strategy.generation() < 10);
    };
    assert!(error.starts_with(&format!("sigma of generation {} is 1", strategy.generation())), "{error}");
    assert!(parameter_digest(&model) != digest && check_finite(&model).is_ok());
}

/// However a model came by them.
#[test]
fn models_with_parameters_that_are_no_numbers_are_refused() {
    let init = |value: f32, frozen: &[&str]| {
        let model = Net::start().map(&mut Spoil { value, left: 2 });
        let config = full(EggrollConfig::new().into()).with_frozen(frozen.iter().copied());
        config.try_init(&model).map(drop)
    };
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for frozen in [&[][..], &["first"]] {
            if value.is_infinite() && !frozen.is_empty() {
                init(value, frozen).expect("a mask");
                continue;
            }
            let found = init(value, frozen).expect_err("refused").to_string();
            let expected = "\"first.weight\" of shape [4, 6] has 2 values that are NaN or infinite";
            assert!(found.starts_with(expected), "{found}");
        }
    }
}

/// Makes the first values of the first parameter something else.
struct Spoil {
    value: f32,
    left: usize,
}

impl ModuleMapper for Spoil {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let count = std::mem::take(&mut self.left);
        if count == 0 {
            return param;
        }
        let value = self.value;
        param.map(|tensor| {
            let (shape, device) = (tensor.dims(), tensor.device());
            let mut values: Vec<f32> = tensor.into_data().try_to_vec().expect("f32");
            values[..count].fill(value);
            Tensor::<1>::from_floats(&values[..], &device).reshape(shape)
        })
    }
}
