//! One run on any number of machines, over a NATS server with JetStream:
//!
//! ```text
//! nats-server -js &
//! cargo run --release --features nats --example distributed -- worker &
//! cargo run --release --features nats --example distributed -- worker &
//! cargo run --release --features nats --example distributed -- coordinator
//! ```
//!
//! Workers may come, die and return while it runs, the coordinator too: the digest of the parameters in the last line is that of
//! `-- alone`. The task is a classification of points by which of three spirals they lie on.

mod args;
mod spirals;

use args::DistributedArgs;
use burn::optim::AdamConfig;
use burn::tensor::Device;
use clap::Parser;
use eggroll::core::messages::shown;
use eggroll::core::sync::locked;
use eggroll::nats::{Coordinator, NatsConfig, Worker, remove_run};
use eggroll::prelude::*;
use eggroll::run::distribution::Distribution;
use eggroll_examples::interrupt::{Signals, nothing, on_signals};
use eggroll_examples::nats::{Role, was_stopped};
use eggroll_examples::{Ending, Failure, main_of};
use serde_json::json;
use spirals::{Classifier, Spirals};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = DistributedArgs::parse();
    let signals = match args.role {
        Role::Coordinator => on_signals("this generation", checkpoints_in(&args.folder())),
        Role::Worker => on_signals("this slice", || "another worker gets its slice".to_owned()),
        Role::Alone | Role::Remove => on_signals("this generation", nothing),
    };
    main_of(|| run(&args, &signals))
}

/// What is kept of a coordinator's run.
fn checkpoints_in(folder: &Path) -> impl Fn() -> String + Send + Sync + 'static {
    let checkpoints = Checkpoints::new(folder);
    move || match checkpoints.list().ok().and_then(|mut paths| paths.pop()) {
        Some(latest) => {
            format!("kept: {} and the fitness on the server. Continue with the same command", latest.display())
        }
        None => "kept: the fitness on the server. Continue with the same command".to_owned(),
    }
}

fn run(args: &DistributedArgs, signals: &Signals) -> Result<Ending, Failure> {
    let config = NatsConfig { stop: signals.flag().clone(), ..args.config()? };
    let (mut counts, mut report) = (None, None);
    let mut distribution = match args.role {
        Role::Alone => Distribution::default(),
        Role::Coordinator => {
            let coordinator = Coordinator::connect(&config)?;
            counts = Some(coordinator.counts());
            Distribution::of(coordinator)
        }
        Role::Worker => {
            let worker = Worker::connect(&config)?;
            report = Some(worker.report());
            Distribution::of(worker)
        }
        Role::Remove => {
            remove_run(&config)?;
            return Ok(Ending::Finished);
        }
    };
    // All nodes make the same first model and the same data.
    let device = Device::flex();
    device.seed(args.seed);
    let model = Classifier::new(args.width, &device);
    let data = Spirals::new(args.points, &device);
    let strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
        .with_population_size(args.population)
        .with_sigma(0.05)
        .with_learning_rate(0.02)
        .with_seed(args.seed)
        .try_init(&model)?;
    let mut training = TrainingLoop::new(args.generations);
    let (mut strategy, mut model) = (strategy, model);
    if let Role::Coordinator = args.role {
        let checkpoints = Checkpoints::new(args.folder()).with_config(strategy.config()).locked()?;
        if let Some(latest) = checkpoints.load_latest(model.clone())? {
            (strategy, model) = latest;
        }
        training = training.with_checkpoints(checkpoints, args.checkpoint_every);
    }
    let start = Instant::now();
    let every = (args.generations / 10).max(1);
    let trained = training.run_distributed(
        &mut distribution,
        &mut strategy,
        model,
        |model, members| Ok(model.fitness(members, &data)),
        |_model, report| {
            if (report.generation + 1).is_multiple_of(every) {
                println!("{:>6} {:>9.4}", report.generation + 1, shown(report.fitness_mean, 4));
            }
            Ok(if signals.came() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        },
    );
    if let Some(report) = report {
        println!("{:?}", locked(&report));
    }
    let model = match trained {
        Err(error) if was_stopped(&error) => return Ok(Ending::Stopped),
        trained => trained?,
    };
    let generation = strategy.generation();
    let ending = if generation < args.generations { signals.ending() } else { Ending::Finished };
    let mut result = json!({
        "generations": generation,
        "stopped": ending.is_stopped(),
        "accuracy": model.accuracy(&data),
        "seconds": start.elapsed().as_secs_f64(),
        "parameter_digest": parameter_digest(&model),
    });
    if let Some(counts) = counts {
        let counts = locked(&counts);
        result["slices_by_node"] = json!(counts.by_node);
        result["audited"] = json!(counts.audited);
        result["recovered_generations"] = json!(counts.recovered);
    }
    println!("RESULT {result}");
    Ok(ending)
}
