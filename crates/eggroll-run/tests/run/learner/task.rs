//! The task of the tests: a layer towards a target, and validations by a script.

use burn::module::Param;
use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use eggroll_core::EggrollConfig;
use eggroll_nn::Linear;
use eggroll_run::*;
use eggroll_train::*;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Generations between two validations.
pub const EVERY: u64 = 10;

pub fn layer() -> Linear {
    let values: Vec<f32> = (0..6).map(|i| (i as f32 * 0.7).sin()).collect();
    let weight = Tensor::<1>::from_floats(&values[..], &Device::flex()).reshape([3, 2]);
    Linear { weight: Param::from_tensor(weight), bias: None }
}

pub fn config(generations: u64) -> EsTrainingConfig {
    let strategy = EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(2), SgdConfig::new())
        .with_population_size(16)
        .with_learning_rate(0.5)
        .with_seed(3);
    EsTrainingConfig::new(strategy, generations).with_validate_every(EVERY)
}

/// What the hooks have seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    Begin(u64),
    Before(u64),
    After(u64),
    Validate(u64),
}

/// Scores layers; validation `i` returns `script[i − 1]`.
#[derive(Default)]
pub struct Scripted {
    pub script: Vec<f64>,
    pub seen: Vec<Seen>,
    /// Interrupts after this generation.
    pub interrupt: Option<(u64, Interrupter)>,
    /// Fails in this generation.
    pub fail: Option<u64>,
    /// Name of its number, if it is not `Twice`.
    pub number: Option<&'static str>,
}

impl Scripted {
    pub fn new(script: impl Into<Vec<f64>>) -> Self {
        Self { script: script.into(), ..Self::default() }
    }
}

impl EsTask<Linear> for Scripted {
    type Output = Scalars;

    fn evaluate(&mut self, model: &Linear, population: &Population) -> Result<Fitness, UserError> {
        if self.fail == Some(population.generation()) {
            return Err("the simulator is gone".into());
        }
        let x = Tensor::<2>::eye(3, &Device::flex());
        Ok(population.evaluate(|members| -members.mean((model.forward_shared(x.clone()) - 1.0).square())))
    }

    fn validate(&mut self, _model: &Linear, report: &GenerationReport) -> Result<Vec<Scalars>, UserError> {
        self.seen.push(Seen::Validate(report.generation));
        let number = self.script.get((report.generation / EVERY) as usize);
        Ok(number.map(|number| Scalars::from([("Score", *number)])).into_iter().collect())
    }

    fn begin(&mut self, strategy: &EvolutionStrategy, _model: &Linear) -> Result<(), UserError> {
        self.seen.push(Seen::Begin(strategy.generation()));
        Ok(())
    }

    fn before_generation(&mut self, strategy: &mut EvolutionStrategy, _model: &Linear) -> Result<(), UserError> {
        self.seen.push(Seen::Before(strategy.generation()));
        Ok(())
    }

    fn after_generation(&mut self, generation: &Generation<'_, Linear>) -> Result<Scalars, UserError> {
        let number = generation.report.generation;
        self.seen.push(Seen::After(number));
        if let Some((at, interrupter)) = &self.interrupt
            && *at == number
        {
            interrupter.stop(Some("enough"));
        }
        Ok(Scalars::from([(self.number.unwrap_or("Twice"), 2.0 * number as f64)]))
    }
}

/// The run of the tests: its task's numbers are registered.
pub fn training(folder: &Path, config: EsTrainingConfig) -> EsTraining {
    EsTraining::new(folder, config)
        .with_display(Display::Progress)
        .metric_train(ScalarMetric::new("Twice"))
        .metric_valid(ScalarMetric::new("Score"))
}

/// The lines of a run's log, without how fast it was.
pub fn log(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("log.jsonl")).expect("a log");
    let line = |line: &str| {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        line.as_object_mut().expect("an object").remove("evaluations_per_second");
        line
    };
    text.lines().map(line).collect()
}

/// Generations of the checkpoints in a folder of the run.
pub fn saved(folder: &Path, name: &str) -> Vec<u64> {
    let found = Checkpoints::new(folder.join(name)).list().expect("lists");
    let number = |path: &Path| path.to_str()?.rsplit('-').next()?.parse().ok();
    found.iter().map(|path| number(path).expect("a generation")).collect()
}
