//! f32 master weights of half-precision parameters: part of checkpoints, of replay and of what replicas begin with.

use crate::reliability::support::{Task, config as of, layer, sines, train};
use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::optim::AdamConfig;
use burn::tensor::{DType, Tensor};
use eggroll_core::EggrollConfig;
use eggroll_nn::Linear;
use eggroll_run::Error;
use eggroll_run::distribution::{Distribution, Threads, on_devices};
use eggroll_run::*;
use eggroll_train::*;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const GENERATIONS: u64 = 12;

#[derive(Module, Debug)]
struct Net {
    layer: Linear,
}

struct Cast(DType);

impl ModuleMapper for Cast {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|value| (value * 0.5 + 1.5).cast(self.0))
    }
}

impl Net {
    /// Of values between 1 and 2, where small steps vanish; always the same model.
    fn of(dtype: DType) -> Self {
        let Linear { weight, bias } = layer(4, 3);
        let weight = Param::initialized(ParamId::from(1), weight.val());
        let bias = bias.map(|bias| Param::initialized(ParamId::from(2), bias.val()));
        Self { layer: Linear { weight, bias } }.map(&mut Cast(dtype)).set_require_grad(true)
    }
}

impl Task for Net {
    fn start() -> Self {
        Self::of(DType::BF16)
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
fn digests(strategy: &EvolutionStrategy, model: &Net) -> (String, Option<String>) {
    (parameter_digest(model), strategy.master_digest())
}

fn uninterrupted(until: u64) -> (String, Option<String>) {
    let mut strategy = config().init(&Net::start());
    let model = train(&mut strategy, Net::start(), until, None);
    digests(&strategy, &model)
}

/// A folder with the checkpoint of generation `at`.
fn saved(config: &EvolutionStrategyConfig, at: u64, folder: &Path) -> Checkpoints {
    let mut strategy = config.init(&Net::start());
    let model = train(&mut strategy, Net::start(), at, None);
    let checkpoints = Checkpoints::new(folder);
    checkpoints.save(&strategy, &model).expect("saves");
    checkpoints
}

fn latest(checkpoints: &Checkpoints) -> PathBuf {
    checkpoints.list().expect("lists").pop().expect("one")
}

#[test]
fn checkpoints_continue_bit_for_bit() {
    for at in [0, 1, 7] {
        let folder = tempfile::tempdir().expect("a folder");
        let checkpoints = saved(&config(), at, folder.path());
        // What the model is loaded into may have another type.
        for into in [DType::BF16, DType::F32] {
            let (mut strategy, model) = load(&latest(&checkpoints), Net::of(into)).expect("loads");
            let mut forgetful = config().init(&model);
            let record = StrategyRecord { masters: forgetful.to_record().masters, ..strategy.to_record() };
            forgetful = forgetful.load_record(record);
            let forgotten = train(&mut forgetful, model.clone(), GENERATIONS, None);
            let model = train(&mut strategy, model, GENERATIONS, None);
            assert_eq!(digests(&strategy, &model), uninterrupted(GENERATIONS), "{at}");
            assert_eq!(digests(&forgetful, &forgotten) == digests(&strategy, &model), at == 0, "canary: {at}");
        }
    }
    let mut without = plain().init(&Net::start());
    let unmoved = train(&mut without, Net::start(), GENERATIONS, None);
    assert_ne!(parameter_digest(&unmoved), uninterrupted(GENERATIONS).0, "canary: of use");
}

#[test]
fn damaged_and_missing_masters_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoints = saved(&config(), 3, folder.path());
    let path = latest(&checkpoints).join("masters.bpk");
    let whole = fs::read(&path).expect("is there");
    let refused = || load(&latest(&checkpoints), Net::start()).map(drop).expect_err("refused");
    let mut damaged = whole.clone();
    damaged[whole.len() - 2] ^= 4;
    fs::write(&path, damaged).expect("writes");
    assert!(matches!(refused(), Error::Saved(SavedError::Checksum { path: named, .. }) if named == path));
    fs::remove_file(&path).expect("removes");
    let error = refused();
    assert!(matches!(error, Error::Io { .. }) && error.to_string().contains("masters.bpk"), "{error}");
    fs::write(&path, whole).expect("writes");
    load(&latest(&checkpoints), Net::start()).expect("canary: the whole one loads");
}

/// Neither does a run continue with masters that it did not have, nor without those that it had.
#[test]
fn runs_with_and_without_masters_do_not_mix() {
    for (saved_with, continued) in [(plain(), config()), (config(), plain())] {
        let folder = tempfile::tempdir().expect("a folder");
        let checkpoints = saved(&saved_with, 3, folder.path());
        let has = latest(&checkpoints).join("masters.bpk").exists();
        assert_eq!(has, saved_with.master_weights);
        let error = checkpoints.with_config(&continued).load_latest(Net::start()).map(drop).expect_err("refused");
        let text = error.to_string();
        assert!(matches!(error, Error::Run(RunError::OtherRun { .. })) && text.contains("master_weights"), "{text}");
    }
    // Without half precision there are none, and checkpoints load.
    let folder = tempfile::tempdir().expect("a folder");
    let model = Net::of(DType::F32);
    Checkpoints::new(folder.path()).save(&config().init(&model), &model).expect("saves");
    let path = latest(&Checkpoints::new(folder.path()));
    assert!(!path.join("masters.bpk").exists());
    load(&path, model).expect("loads");
}

/// Masters that are no numbers would be loaded from no checkpoint.
#[test]
fn masters_that_are_not_finite_are_not_saved() {
    struct Fill(f32);
    impl ModuleMapper for Fill {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|value| value.full_like(self.0))
        }
    }
    let mut model = Net::start();
    let mut strategy = config().init(&model);
    model = model.map(&mut Fill(f32::NAN));
    let population = strategy.ask();
    let scores: Vec<f32> = (0..strategy.config().population_size).map(|member| member as f32).collect();
    strategy.tell(&mut model, population, scores.into()).expect("a generation");
    // The program has mended its model, and not told a generation yet.
    let folder = tempfile::tempdir().expect("a folder");
    let error = Checkpoints::new(folder.path()).save(&strategy, &Net::start()).expect_err("refused").to_string();
    assert!(error.contains("\"layer.weight (f32 master)\""), "{error}");
    train(&mut strategy, Net::start(), 2, None);
    Checkpoints::new(folder.path()).save(&strategy, &Net::start()).expect("saves");
}

#[test]
fn replay_logs_make_the_same_models() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.replay");
    let mut strategy = config().init(&Net::start());
    let mut log = ReplayLog::create(&path, &strategy, &Net::start()).expect("a log");
    let model = train(&mut strategy, Net::start(), 5, Some(&mut log));
    let (record, at) = (strategy.to_record(), strategy.clone());
    train(&mut strategy, model.clone(), GENERATIONS, Some(&mut log));
    drop(log);
    for until in [0, 5, GENERATIONS] {
        let (strategy, made) = replay(&path, Net::start(), Some(until)).expect("replays");
        assert_eq!(digests(&strategy, &made), uninterrupted(until), "{until}");
    }
    let resumed = config().init(&model).try_load_record(record).expect("loads");
    let (strategy, made) = replay_from(&path, resumed, model.clone(), None).expect("replays");
    assert_eq!(digests(&strategy, &made), uninterrupted(GENERATIONS));

    // A log that begins in the middle, where the model is not all that there is.
    let path = folder.path().join("later.replay");
    let mut log = ReplayLog::create(&path, &at, &model).expect("a log");
    train(&mut at.clone(), model.clone(), GENERATIONS, Some(&mut log));
    drop(log);
    let (strategy, made) = replay_from(&path, at.clone(), model.clone(), None).expect("replays");
    assert_eq!(digests(&strategy, &made), uninterrupted(GENERATIONS));
    let masters = config().init(&model).to_record().masters;
    let other = at.clone().load_record(StrategyRecord { masters, ..at.to_record() });
    let error = replay_from(&path, other, model, None).map(drop).expect_err("refused");
    assert!(matches!(&error, Error::Saved(SavedError::Start { .. })), "{error}");
    assert!(error.to_string().contains("the digest of the f32 master weights was "), "{error}");
}

fn distributed(threads: Threads, mut strategy: EvolutionStrategy, model: Net) -> Result<String, Error> {
    let mut distribution = Distribution::new(threads).with_digest_every(2);
    let evaluate = |model: &Net, population: &Population| Ok(model.fitness(population));
    let go_on = |_: &Net, _: &GenerationReport| Ok(ControlFlow::Continue(()));
    let training = TrainingLoop::new(GENERATIONS);
    let model = training.run_distributed(&mut distribution, &mut strategy, model, evaluate, go_on)?;
    assert_eq!(strategy.master_digest(), uninterrupted(GENERATIONS).1);
    Ok(parameter_digest(&model))
}

#[test]
fn replicas_make_the_same_models() {
    let devices = vec![burn::tensor::Device::flex(); 3];
    let found = on_devices(&devices, |threads, _| distributed(threads, config().init(&Net::start()), Net::start()));
    assert!(found.into_iter().all(|digest| digest.expect("a run") == uninterrupted(GENERATIONS).0));
    // One of them with other masters of the same model.
    let mut at = config().init(&Net::start());
    let model = train(&mut at, Net::start(), 5, None);
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
