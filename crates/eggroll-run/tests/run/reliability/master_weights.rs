//! f32 master weights of half-precision parameters: part of checkpoints, of replay and of what replicas begin with.

use crate::reliability::support::{LearningModel, config as of, layer, sines, train};
use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::optim::AdamConfig;
use burn::tensor::{DType, Tensor};
use eggroll_core::EggrollConfig;
use eggroll_nn::Linear;
use eggroll_run::Error;
use eggroll_run::distribution::{Distribution, Ranks, Threads, on_devices};
use eggroll_run::*;
use eggroll_train::*;
use std::ops::ControlFlow;

const GENERATIONS: u64 = 12;

#[derive(Module, Debug)]
pub struct Half {
    layer: Linear,
}

struct CastFloats(DType);

impl ModuleMapper for CastFloats {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|value| (value * 0.5 + 1.5).cast(self.0))
    }
}

impl LearningModel for Half {
    /// Of values between 1 and 2, where small steps vanish.
    fn start() -> Self {
        let Linear { weight, bias } = layer(4, 3);
        let weight = Param::initialized(ParamId::from(1), weight.val());
        let bias = bias.map(|bias| Param::initialized(ParamId::from(2), bias.val()));
        Self { layer: Linear { weight, bias } }.map(&mut CastFloats(DType::BF16)).set_require_grad(true)
    }

    fn fitness(&self, population: &Population) -> Fitness {
        let x = sines(20, 0.1 + population.generation() as f32).reshape([5, 4]);
        let x = x.cast(self.layer.weight.val().dtype());
        population.evaluate(|members| -members.mean((self.layer.forward_shared(x.clone()) - 0.5).square()))
    }
}

fn plain() -> EvolutionStrategyConfig {
    of(EggrollConfig::new(), AdamConfig::new()).with_learning_rate(1.5e-3)
}

fn config() -> EvolutionStrategyConfig {
    plain().with_master_weights(true)
}

/// Digests of the model and of its master weights.
fn digests(strategy: &EvolutionStrategy, model: &Half) -> (String, Option<String>) {
    (parameter_digest(model), strategy.master_digest())
}

fn uninterrupted(until: u64) -> (String, Option<String>) {
    let mut strategy = config().init(&Half::start());
    let model = train(&mut strategy, Half::start(), until, None);
    digests(&strategy, &model)
}

/// Neither does a run continue with masters that it did not have, nor without those that it had.
#[test]
fn runs_with_and_without_masters_do_not_mix() {
    for (saved_with, continued) in [(plain(), config()), (config(), plain())] {
        let folder = tempfile::tempdir().expect("a folder");
        let checkpoints = Checkpoints::new(folder.path());
        let saved = checkpoints.save(&saved_with.init(&Half::start()), &Half::start()).expect("saves");
        assert_eq!(saved.join("masters.bpk").exists(), saved_with.master_weights);
        let error = checkpoints.with_config(&continued).load_latest(Half::start()).map(drop).expect_err("refused");
        let text = error.to_string();
        assert!(matches!(error, Error::Run(RunError::OtherRun { .. })) && text.contains("master_weights"), "{text}");
    }
}

/// Masters that are no numbers would be loaded from no checkpoint.
#[test]
fn masters_that_are_not_finite_are_not_saved() {
    struct FillFloats(f32);
    impl ModuleMapper for FillFloats {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|value| value.full_like(self.0))
        }
    }
    let mut model = Half::start();
    let mut strategy = config().init(&model);
    model = model.map(&mut FillFloats(f32::NAN));
    let population = strategy.ask();
    let scores: Vec<f32> = (0..strategy.config().population_size).map(|member| member as f32).collect();
    strategy.tell(&mut model, population, scores.into()).expect("a generation");
    // The program has mended its model, and not told a generation yet.
    let folder = tempfile::tempdir().expect("a folder");
    let error = Checkpoints::new(folder.path()).save(&strategy, &Half::start()).expect_err("refused").to_string();
    assert!(error.contains("\"layer.weight (f32 master)\""), "{error}");
    train(&mut strategy, Half::start(), 2, None);
    Checkpoints::new(folder.path()).save(&strategy, &Half::start()).expect("saves");
}

/// A log that begins in the middle, where the model is not all that there is.
#[test]
fn replay_needs_the_masters() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.replay");
    let mut at = config().init(&Half::start());
    let model = train(&mut at, Half::start(), 5, None);
    let mut log = ReplayLog::create(&path, &at, &model).expect("a log");
    train(&mut at.clone(), model.clone(), GENERATIONS, Some(&mut log));
    drop(log);
    let (strategy, made) = replay_from(&path, at.clone(), model.clone(), None).expect("replays");
    assert_eq!(digests(&strategy, &made), uninterrupted(GENERATIONS));
    let masters = config().init(&model).to_record().masters;
    let other = at.clone().load_record(StrategyRecord { masters, ..at.to_record() });
    let error = replay_from(&path, other, model, None).map(drop).expect_err("refused");
    assert!(matches!(&error, Error::Saved(SavedError::Start { .. })), "{error}");
    assert!(error.to_string().contains("the f32 master weights have the digest "), "{error}");
}

fn distributed(threads: Threads, mut strategy: EvolutionStrategy, model: Half) -> Result<String, Error> {
    let mut distribution = Distribution::of(Ranks::new(threads).with_digest_every(2));
    let evaluate = |model: &Half, population: &Population| Ok(model.fitness(population));
    let go_on = |_: &Half, _: &GenerationReport| Ok(ControlFlow::Continue(()));
    let training = TrainingLoop::new(GENERATIONS);
    let model = training.run_distributed(&mut distribution, &mut strategy, model, evaluate, go_on)?;
    assert_eq!(strategy.master_digest(), uninterrupted(GENERATIONS).1);
    Ok(parameter_digest(&model))
}

#[test]
fn replicas_make_the_same_models() {
    let devices = vec![burn::tensor::Device::flex(); 3];
    let found = on_devices(&devices, |threads, _| distributed(threads, config().init(&Half::start()), Half::start()));
    assert!(found.into_iter().all(|digest| digest.expect("a run") == uninterrupted(GENERATIONS).0));
    // One of them with other masters of the same model.
    let mut at = config().init(&Half::start());
    let model = train(&mut at, Half::start(), 5, None);
    let outcomes = on_devices(&devices, |threads, _| {
        let masters = config().init(&model).to_record().masters;
        let other = at.clone().load_record(StrategyRecord { masters, ..at.to_record() });
        let strategy = if threads.rank() == 1 { other } else { at.clone() };
        distributed(threads, strategy, model.clone())
    });
    for outcome in outcomes {
        let error = outcome.expect_err("refused").to_string();
        assert!(error.contains("f32 master weights"), "{error}");
    }
}
