//! A run by the learner: validation, custom metrics, early stopping, and its model made again from the fitness.

use burn::optim::AdamConfig;
use eggroll::nn::{Linear, LinearConfig};
use eggroll::prelude::*;
use eggroll::run::diagnostics::gradient_cosine;
use eggroll::run::{
    Display, EarlyStoppingConfig, EsResult, Generation, MetricTarget, ScalarMetric, Scalars, UserError, load, replay,
};
use eggroll::train::GenerationReport;
use std::path::Path;

/// Three numbers to one, and other examples for validation.
struct Regression {
    x: Tensor<2>,
    y: Tensor<2>,
    held_out: (Tensor<2>, Tensor<2>),
}

impl EsTask<Linear> for Regression {
    type Output = Scalars;

    fn evaluate(&mut self, model: &Linear, population: &Population) -> Result<Fitness, UserError> {
        Ok(population.evaluate(|members| {
            let error = model.forward_shared(self.x.clone()) - members.repeat(self.y.clone());
            -members.mean(error.square())
        }))
    }

    fn validate(&mut self, model: &Linear, _report: &GenerationReport) -> Result<Vec<Scalars>, UserError> {
        let (x, y) = self.held_out.clone();
        let error = (model.forward(x) - y).square().mean();
        Ok(vec![Scalars::from([("Error", error.into_scalar())])])
    }

    fn after_generation(&mut self, generation: &Generation<'_, Linear>) -> Result<Scalars, UserError> {
        let largest = generation.model.weight.val().abs().max();
        Ok(Scalars::from([("Largest weight", largest.into_scalar())]))
    }
}

// ANCHOR: run
fn config() -> EsTrainingConfig {
    let strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
        .with_population_size(64)
        .with_learning_rate(0.05)
        .with_seed(7);
    let error = MetricTarget::lowest("Error");
    EsTrainingConfig::new(strategy, 400)
        .with_validate_every(20)
        .with_checkpoint_every(30)
        .with_keep_best(Some(error.clone()))
        .with_early_stopping(Some(EarlyStoppingConfig::new(error, 5)))
        .with_diagnostics(true)
        .with_replay_log(true)
}

fn train(folder: &Path, model: Linear, task: &mut Regression) -> Result<EsResult<Linear>, eggroll::Error> {
    let training = EsTraining::new(folder, config())
        .with_display(Display::Progress) // or Burn's dashboard, the default on a terminal
        .metric_train(ScalarMetric::new("Largest weight"))
        .metric_valid(ScalarMetric::new("Error").lower_is_better());
    Ok(training.launch(model, task)?)
}
// ANCHOR_END: run

fn sines<const D: usize>(shape: [usize; D], phase: f32) -> Tensor<D> {
    let values: Vec<f32> = (0..shape.iter().product()).map(|i| (i as f32 * 1.3 + phase).sin()).collect();
    Tensor::<1>::from_floats(&values[..], &Device::flex()).reshape(shape)
}

impl Regression {
    fn new() -> Self {
        let [(x, y), held_out] = [0.0, 1.0].map(|phase| {
            let x = sines([12, 3], phase);
            (x.clone(), x.matmul(sines([3, 1], 2.0)))
        });
        Self { x, y, held_out }
    }

    fn loss(&self, model: &Linear) -> f32 {
        (model.forward(self.x.clone()) - self.y.clone()).square().mean().into_scalar()
    }
}

fn first() -> Linear {
    let layer = LinearConfig::new(3, 1).with_bias(false).init(&Device::flex());
    Linear { weight: layer.weight.map(|_| sines([3, 1], 0.5)), ..layer }
}

#[test]
fn a_run_and_its_log() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let (folder, first, mut task) = (temporary.path(), first(), Regression::new());
    let outcome = train(folder, first.clone(), &mut task)?;
    assert!(task.loss(&outcome.model) < 0.1 * task.loss(&first));
    let lines = std::fs::read_to_string(folder.join("log.jsonl"))?;
    assert!(["largest_weight", "error", "signal_to_noise"].iter().all(|name| lines.contains(name)), "{lines}");
    assert_eq!(Checkpoints::new(folder.join("kept")).list()?.len(), 1);
    for saved in Checkpoints::new(folder.join("checkpoints")).list()? {
        let (strategy, model) = load(&saved, first.clone())?;
        let until = Some(strategy.generation());
        let (_strategy, again) = replay(&folder.join("run.replay"), first.clone(), until)?;
        assert_eq!(parameter_digest(&again), parameter_digest(&model));
    }
    Ok(())
}

#[test]
fn an_estimate_beside_the_gradient() -> Result<(), eggroll::Error> {
    let (model, mut task) = (first(), Regression::new());
    let strategy = config().strategy.with_population_size(512).try_init(&model)?;
    let population = strategy.ask();
    let fitness = task.evaluate(&model, &population).expect("fitness");
    // By hand: the gradient of the mean of (x·w − y)² is 2·xᵀ·(x·w − y)/rows.
    let error = model.forward(task.x.clone()) - task.y.clone();
    let mut gradients = burn::optim::GradientsParams::new();
    gradients.register(model.weight.id, task.x.clone().transpose().matmul(error));
    println!("{}", eggroll::diagnose(&model)); // statistics and warnings of every parameter
    let estimate = strategy.gradient(&model, &population, &fitness)?.expect("fitness differs");
    let cosine = gradient_cosine(&model, &estimate, &gradients).expect("neither is 0");
    assert!(cosine > 0.9, "{cosine}");
    Ok(())
}
