//! Models, runs and damage for the tests next to this file.

use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::module::{Module, Param, ParamId};
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdamWConfig, SgdConfig};
use burn::tensor::activation::tanh;
use burn::tensor::{Device, Int, Tensor, TensorData};
use eggroll_core::ops::integer::{Rounding, integer_type, log_likelihood};
use eggroll_core::{
    BaselineSubtractionConfig, EggrollConfig, NoiseDistribution, NoiserConfig, ParameterKind, QEggrollConfig,
};
use eggroll_nn::{Linear, integer};
use eggroll_run::*;
use eggroll_train::*;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, FailurePersistence, FileFailurePersistence, TestRunner};
use std::env;
use std::fmt::Debug;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

pub const POPULATION: usize = 12;

/// A model with something to learn in every generation.
pub trait LearningModel: Module {
    /// Always the same model.
    fn start() -> Self;
    fn fitness(&self, population: &Population) -> Fitness;
}

#[derive(Module, Debug)]
pub struct Net {
    first: Linear,
    second: Linear,
}

pub fn sines(count: usize, step: f32) -> Tensor<1> {
    let values: Vec<f32> = (0..count).map(|i| (i as f32 * step + step).sin()).collect();
    Tensor::from_floats(&values[..], &Device::flex())
}

pub fn layer(d_input: usize, d_output: usize) -> Linear {
    let weight = sines(d_input * d_output, 0.7).reshape([d_input, d_output]) * 0.4;
    Linear { weight: Param::from_tensor(weight), bias: Some(Param::from_tensor(sines(d_output, 0.3))) }
}

impl LearningModel for Net {
    fn start() -> Self {
        Self { first: layer(4, 6), second: layer(6, 2) }
    }

    fn fitness(&self, population: &Population) -> Fitness {
        let x = sines(20, 0.1 + population.generation() as f32).reshape([5, 4]);
        population.evaluate(|members| {
            let y = self.second.forward(tanh(self.first.forward_shared(x.clone())));
            -members.mean((y - 0.5).square())
        })
    }
}

#[derive(Module, Debug)]
pub struct IntegerNet {
    first: integer::Linear,
    second: integer::Linear,
}

fn ramp<const D: usize>(shape: [usize; D], step: usize, device: &Device) -> Tensor<D, Int> {
    let values: Vec<i8> = (0..shape.iter().product::<usize>()).map(|i| (i * step % 61) as i8 - 30).collect();
    Tensor::from_data(TensorData::new(values, shape), (device, integer_type(device)))
}

impl LearningModel for IntegerNet {
    fn start() -> Self {
        let layer =
            |shape| integer::Linear { weight: Param::initialized(ParamId::new(), ramp(shape, 17, &Device::flex())) };
        Self { first: layer([8, 6]), second: layer([6, 4]) }
    }

    fn fitness(&self, population: &Population) -> Fitness {
        self.fitness_on(population, &Device::flex())
    }
}

impl IntegerNet {
    /// The fitness on the device of the model.
    pub fn fitness_on(&self, population: &Population, device: &Device) -> Fitness {
        let x = ramp([3, 8], 7 + population.generation() as usize, device);
        population.evaluate(|members| {
            let logits = self.second.forward(self.first.forward(members.repeat(x.clone())));
            let targets = Tensor::<1, Int>::from_ints([0, 3, 1], device);
            log_likelihood(logits, members.repeat(targets), members.count(), Rounding::Floor)
        })
    }
}

/// Every registered noiser of that kind of parameters, and some with other settings.
pub fn noisers(kind: ParameterKind) -> Vec<NoiserConfig> {
    let registered = NoiserConfig::NAMES.map(|name| match name.parse().expect("a registered noiser") {
        // Groups that divide the population.
        NoiserConfig::BaselineSubtraction(config) => {
            BaselineSubtractionConfig { group: POPULATION / 2, ..config }.into()
        }
        noiser => noiser,
    });
    let others = [
        EggrollConfig::new().with_rank(2).with_distribution(NoiseDistribution::Rademacher).into(),
        QEggrollConfig::new().with_rank(2).with_threshold(0.5, 10).into(),
    ];
    let fits = |noiser: &NoiserConfig| matches!(noiser, NoiserConfig::QEggroll(_)) == (kind == ParameterKind::Integer);
    registered.into_iter().chain(others).filter(fits).collect()
}

/// Every registered optimizer of that kind of parameters, and some with other settings. Gradient descent has no part in the votes of
/// integers.
pub fn optimizers(kind: ParameterKind) -> Vec<OptimizerConfig> {
    let registered = OptimizerConfig::NAMES.iter().map(|name| name.parse().expect("a registered optimizer"));
    let others = [
        SgdConfig::new().with_momentum(Some(MomentumConfig::new())).into(),
        AdamWConfig::new().with_weight_decay(0.1).into(),
    ];
    let fits = |optimizer: &OptimizerConfig| match kind {
        ParameterKind::Integer => optimizer.moves_integers() || matches!(optimizer, OptimizerConfig::Sgd(_)),
        ParameterKind::Float => !optimizer.moves_integers(),
    };
    registered.chain(others).filter(fits).collect()
}

/// A strategy with schedules, whose states are saved too.
pub fn config(noiser: impl Into<NoiserConfig>, optimizer: impl Into<OptimizerConfig>) -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(noiser, optimizer)
        .with_population_size(POPULATION)
        .with_sigma(SigmaSchedule::Exponential { initial: 0.1, decay: 0.99, last: None })
        .with_learning_rate(CosineAnnealingLrSchedulerConfig::new(0.05, 40))
        .with_noise_reuse(2)
}

pub fn integer_config() -> EvolutionStrategyConfig {
    EvolutionStrategyConfig { population_size: POPULATION, ..EvolutionStrategyConfig::integer(QEggrollConfig::new()) }
}

/// One generation, logged if there is a log.
pub fn generation<'a, T: LearningModel>(
    strategy: &mut EvolutionStrategy,
    mut model: T,
    log: impl Into<Option<&'a mut ReplayLog>>,
) -> T {
    let population = strategy.ask();
    let fitness = model.fitness(&population);
    strategy.tell(&mut model, population, fitness.clone()).expect("a generation");
    if let Some(log) = log.into() {
        log.append(strategy, &fitness).expect("appends");
    }
    model
}

/// Trains up to a generation; logs if there is a log.
pub fn train<T: LearningModel>(
    strategy: &mut EvolutionStrategy,
    mut model: T,
    until: u64,
    mut log: Option<&mut ReplayLog>,
) -> T {
    while strategy.generation() < until {
        model = generation(strategy, model, log.as_deref_mut());
    }
    model
}

/// Digests of a run's models, from before the first generation on.
pub fn digests<T: LearningModel>(config: &EvolutionStrategyConfig, generations: usize, log: &Path) -> Vec<String> {
    let mut model = T::start();
    let mut strategy = config.init(&model);
    let mut log = ReplayLog::create(log, &strategy, &model).expect("a log");
    let mut digests = vec![parameter_digest(&model)];
    for _ in 0..generations {
        model = generation(&mut strategy, model, &mut log);
        digests.push(parameter_digest(&model));
    }
    digests
}

/// Runs a property; a failure prints the smallest input and leaves no file.
pub fn check<S: Strategy>(cases: u32, inputs: &S, property: impl Fn(S::Value) -> Result<(), TestCaseError>)
where
    S::Value: Debug,
{
    check_with(None, cases, inputs, property);
}

/// Runs a property of a loader: the inputs in `corpus` come first, and failures are added to it.
pub fn check_loader<S: Strategy>(
    corpus: &'static str,
    cases: u32,
    inputs: &S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) where
    S::Value: Debug,
{
    assert!(Path::new(corpus).is_file(), "{corpus} is kept in the repository");
    check_with(Some(Box::new(FileFailurePersistence::Direct(corpus))), cases, inputs, property);
}

fn check_with<S: Strategy>(
    failure_persistence: Option<Box<dyn FailurePersistence>>,
    cases: u32,
    inputs: &S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) where
    S::Value: Debug,
{
    let config = Config { cases, failure_persistence, ..Config::default() };
    if let Err(error) = TestRunner::new(config).run(inputs, property) {
        panic!("{error}");
    }
}

/// Damage to a file.
#[derive(Clone, Debug)]
pub enum Damage {
    Flip(Index, u8),
    Truncate(Index),
    Remove(Index, Index),
    Insert(Index, Vec<u8>),
    /// A number that could be taken for a length.
    Length(Index, u64),
}

pub fn damage() -> impl Strategy<Value = Damage> {
    let lengths = prop_oneof![Just(u64::MAX), Just(u64::MAX / 4), Just(u64::from(u32::MAX)), Just(1 << 40), Just(0)];
    prop_oneof![
        4 => (any::<Index>(), 0..8u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        1 => any::<Index>().prop_map(Damage::Truncate),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Remove(from, to)),
        1 => (any::<Index>(), proptest::collection::vec(any::<u8>(), 1..40)).prop_map(|(at, new)| Damage::Insert(at, new)),
        2 => (any::<Index>(), lengths).prop_map(|(at, length)| Damage::Length(at, length)),
    ]
}

impl Damage {
    pub fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let at = |index: &Index| index.index(bytes.len());
        match self {
            Self::Flip(place, bit) => {
                let place = at(place);
                bytes[place] ^= 1 << bit;
            }
            Self::Truncate(len) => bytes.truncate(len.index(bytes.len())),
            Self::Remove(from, to) => {
                let (from, to) = (at(from), at(to));
                bytes.drain(from.min(to)..from.max(to));
            }
            Self::Insert(place, new) => {
                let place = at(place);
                bytes.splice(place..place, new.iter().copied());
            }
            Self::Length(place, length) => {
                let place = at(place);
                bytes.iter_mut().skip(place).zip(length.to_le_bytes()).for_each(|(byte, new)| *byte = new);
            }
        }
    }
}

/// This test program again, for the test `name` alone, behind the words of another program, if there are any.
pub fn child(before: &[&str], name: &str) -> Command {
    let program = env::current_exe().expect("this program");
    let mut command = match before {
        [] => Command::new(program),
        [first, words @ ..] => {
            let mut command = Command::new(first);
            command.args(words).arg(program);
            command
        }
    };
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).stdin(Stdio::null());
    command
}

/// Starts a child, and reads its output until `parse` finds something in a line.
pub fn start_until<T>(command: &mut Command, parse: impl Fn(&str) -> Option<T>) -> (Child, BufReader<ChildStdout>, T) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("starts");
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    match output.by_ref().lines().find_map(|line| parse(&line.expect("reads"))) {
        Some(found) => (child, output, found),
        None => panic!("the child ended by itself: {:?}", child.wait()),
    }
}

/// Copies the files of a folder.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("a file").path();
        fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copies");
    }
}
