//! A run of the learner with Adam: settings, checkpoints, replay log.

use super::{copy, golden, refuses_a_changed_byte, write_if_asked};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::AdamConfig;
use burn::tensor::{Device, Tensor};
use eggroll::nn::{Mlp, MlpConfig};
use eggroll::prelude::*;
use eggroll::run::{Display, EsResult, ScalarMetric, Scalars, UserError, load, replay};
use eggroll::train::GenerationReport;
use std::fs;
use std::path::Path;

/// Digests of the models of generations 4 and 8. Their floats were computed with AVX-512; every instruction set reads the same.
const SAVED: [&str; 2] = [
    "c551c1fac7b8c9c92cd641c7d7f58919b29c56b6d2fb22df121418daa2fb8bd2",
    "16efb50da85189f3fa196cb966631726eb87c7ed2e3100386398e872119001ad",
];
/// Largest distance of a parameter from that of the run, where an instruction set or a processor rounds sums otherwise.
const TOLERANCE: f32 = 1e-5;

struct Sines {
    x: Tensor<2>,
    y: Tensor<2>,
}

impl EsTask<Mlp> for Sines {
    type Output = Scalars;

    fn evaluate(&mut self, model: &Mlp, population: &Population) -> Result<Fitness, UserError> {
        Ok(population.evaluate(|members| {
            -members.mean((model.forward(members.repeat(self.x.clone())) - members.repeat(self.y.clone())).square())
        }))
    }

    fn validate(&mut self, model: &Mlp, _report: &GenerationReport) -> Result<Vec<Scalars>, UserError> {
        let error = (model.forward(self.x.clone()) - self.y.clone()).square().mean();
        Ok(vec![Scalars::from([("Error", error.into_scalar())])])
    }
}

fn sines<const D: usize>(shape: [usize; D], phase: f32) -> Tensor<D> {
    let values: Vec<f32> = (0..shape.iter().product()).map(|i| (i as f32 * 1.3 + phase).sin()).collect();
    Tensor::<1>::from_floats(&values[..], &Device::flex()).reshape(shape)
}

fn first() -> Mlp {
    struct ByPlace(f32);

    impl ModuleMapper for ByPlace {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            self.0 += 1.0;
            param.map(|value| sines(value.dims(), self.0))
        }
    }
    MlpConfig::new(vec![3, 5, 1]).init(&Device::flex()).map(&mut ByPlace(0.0))
}

fn config() -> EsTrainingConfig {
    let strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
        .with_population_size(16)
        .with_learning_rate(0.05)
        .with_seed(7);
    EsTrainingConfig::new(strategy, 8).with_validate_every(4).with_checkpoint_every(4).with_replay_log(true)
}

fn run(folder: &Path) -> EsResult<Mlp> {
    let mut task = Sines { x: sines([6, 3], 0.0), y: sines([6, 1], 2.0) };
    let training = EsTraining::new(folder, config())
        .with_display(Display::Progress)
        .metric_valid(ScalarMetric::new("Error").lower_is_better());
    training.launch(first(), &mut task).expect("a run")
}

fn checkpoint(folder: &Path, generation: u64) -> std::path::PathBuf {
    folder.join(format!("checkpoints/generation-{generation:012}"))
}

/// All parameters, one after the other.
fn values(model: &Mlp) -> Vec<f32> {
    struct Values(Vec<f32>);

    impl ModuleVisitor for Values {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.extend(param.val().into_data().iter::<f32>());
        }
    }
    let mut values = Values(Vec::new());
    model.visit(&mut values);
    values.0
}

fn distance(a: &Mlp, b: &Mlp) -> f32 {
    values(a).iter().zip(values(b)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn written() {
    write_if_asked("float", |folder| {
        let run_folder = tempfile::tempdir().expect("a folder");
        run(run_folder.path());
        // What a run continues from. Its other files are for readers, and name this machine.
        for file in ["training.json", "log.jsonl", "run.replay"] {
            fs::copy(run_folder.path().join(file), folder.join(file)).expect("copies");
        }
        fs::create_dir(folder.join("checkpoints")).expect("a folder");
        for generation in [4, 8] {
            let target = checkpoint(folder, generation);
            fs::create_dir(&target).expect("a folder");
            super::copy_folder(&checkpoint(run_folder.path(), generation), &target);
        }
    });
}

#[test]
fn settings_are_read() {
    let read = EsTrainingConfig::of_run(golden("float")).expect("reads");
    assert_eq!(serde_json::to_value(&read).expect("JSON"), serde_json::to_value(config()).expect("JSON"));
    let other = config().with_validate_every(3);
    assert_ne!(serde_json::to_value(&read).expect("JSON"), serde_json::to_value(other).expect("JSON"), "canary");
}

#[test]
fn checkpoints_are_read() {
    for (generation, digest) in [4, 8].into_iter().zip(SAVED) {
        let (strategy, model) = load(&checkpoint(&golden("float"), generation), first()).expect("loads");
        assert_eq!((strategy.generation(), parameter_digest(&model).as_str()), (generation, digest));
    }
    let folder = copy("float");
    let latest = checkpoint(folder.path(), 8);
    for entry in fs::read_dir(&latest).expect("a checkpoint") {
        refuses_a_changed_byte(&entry.expect("an entry").path(), || {
            load(&latest, first()).err().map(|error| error.to_string())
        });
    }
}

/// From the fitness alone, and from the first checkpoint.
#[test]
fn the_run_is_made_again() {
    let folder = copy("float");
    let log = folder.path().join("run.replay");
    let (_, last) = load(&checkpoint(folder.path(), 8), first()).expect("loads");
    for until in [4, 8] {
        let (strategy, model) = replay(&log, first(), Some(until)).expect("replays");
        let (_, saved) = load(&checkpoint(folder.path(), until), first()).expect("loads");
        assert_eq!(strategy.generation(), until);
        assert!(distance(&model, &saved) < TOLERANCE, "generation {until}: {}", distance(&model, &saved));
        assert!(until == 8 || distance(&model, &last) > 100.0 * TOLERANCE, "canary");
    }
    refuses_a_changed_byte(&log, || replay(&log, first(), None).err().map(|error| error.to_string()));

    fs::remove_dir_all(checkpoint(folder.path(), 8)).expect("removes");
    let continued = run(folder.path());
    assert!(distance(&continued.model, &last) < TOLERANCE, "{}", distance(&continued.model, &last));
}
