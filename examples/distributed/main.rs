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

use args::{DistributedArgs, Role};
use burn::optim::AdamConfig;
use burn::tensor::Device;
use clap::Parser;
use eggroll::prelude::*;
use eggroll::run::Checkpoints;
use eggroll::run::distribution::nats::{Coordinator, Counts, Worker, make_keys, remove_run};
use eggroll_examples::interrupt::{Signals, nothing, on_signals};
use eggroll_examples::{Ending, Failure, main_of};
use serde_json::json;
use spirals::{Classifier, Spirals};
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
        Role::Alone | Role::Keys | Role::Remove => on_signals("this generation", nothing),
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
    // All nodes make the same first model and the same data.
    let device = Device::flex();
    device.seed(args.seed);
    let model = Classifier::new(args.width, &device);
    let strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
        .with_population_size(args.population)
        .with_sigma(0.05)
        .with_learning_rate(0.02)
        .with_seed(args.seed)
        .with_shaping(if args.shapes_by_rank() { FitnessShaping::CenteredRank } else { FitnessShaping::default() })
        .try_init(&model)?;
    let data = Spirals::new(args.points, &device);
    let score = |model: &Classifier, members: &Population| Ok(model.fitness(members, &data));
    let start = Instant::now();
    let (strategy, model, counts) = match args.role {
        Role::Alone => alone(args, strategy, model, score, signals)?,
        Role::Coordinator => coordinate(args, strategy, model, score, signals)?,
        Role::Worker => work(args, strategy, model, score, signals)?,
        Role::Keys => {
            let config = args.config()?;
            println!("key {} in {}", make_keys(&config)?.fingerprint(), config.keys.display());
            return Ok(Ending::Finished);
        }
        Role::Remove => {
            remove_run(&args.config()?)?;
            return Ok(Ending::Finished);
        }
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
        let rejected: u64 = counts.rejected.values().sum();
        result["slices_by_node"] = json!(counts.by_node);
        result["rejected"] = json!(rejected);
        result["recovered_generations"] = json!(counts.recovered);
    }
    println!("RESULT {result}");
    Ok(ending)
}

/// What a role has when it ends: the coordinator's counts, too.
type RoleResult = (EvolutionStrategy, Classifier, Option<Counts>);

/// The run in one process.
fn alone(
    args: &DistributedArgs,
    mut strategy: EvolutionStrategy,
    mut model: Classifier,
    score: impl Fn(&Classifier, &Population) -> Result<Fitness, Failure>,
    signals: &Signals,
) -> Result<RoleResult, Failure> {
    while strategy.generation() < args.generations && !signals.came() {
        let population = strategy.ask();
        let fitness = score(&model, &population)?;
        strategy.tell(&mut model, population, fitness)?;
        report(args, &strategy);
    }
    Ok((strategy, model, None))
}

/// The run with workers: begun, or continued from the checkpoint in the folder and what the server has.
fn coordinate(
    args: &DistributedArgs,
    strategy: EvolutionStrategy,
    model: Classifier,
    score: impl Fn(&Classifier, &Population) -> Result<Fitness, Failure>,
    signals: &Signals,
) -> Result<RoleResult, Failure> {
    let checkpoints = Checkpoints::new(args.folder()).with_config(strategy.config()).locked()?;
    let (mut strategy, mut model) = checkpoints.load_latest(model.clone())?.unwrap_or((strategy, model));
    let mut coordinator = Coordinator::connect(args.config()?, &strategy)?;
    if let Some(later) = coordinator.load_checkpoint(&strategy, &model)? {
        (strategy, model) = later;
    }
    while strategy.generation() < args.generations && !signals.came() {
        let population = strategy.ask();
        let fitness = coordinator.evaluate(&model, &population, &score)?;
        strategy.tell(&mut model, population, fitness)?;
        if strategy.generation().is_multiple_of(args.checkpoint_every) || signals.came() {
            coordinator.offer_checkpoint(&checkpoints.save(&strategy, &model)?)?;
        }
        report(args, &strategy);
    }
    // Workers stay for a run that is to be continued.
    let counts =
        if strategy.generation() < args.generations { coordinator.counts().clone() } else { coordinator.finish()? };
    Ok((strategy, model, Some(counts)))
}

/// Evaluates slices until the run is over, or a signal comes.
fn work(
    args: &DistributedArgs,
    strategy: EvolutionStrategy,
    model: Classifier,
    score: impl Fn(&Classifier, &Population) -> Result<Fitness, Failure>,
    signals: &Signals,
) -> Result<RoleResult, Failure> {
    let mut worker = Worker::connect(args.config()?)?.with_interrupter(signals.interrupter());
    let (strategy, model) = worker.run(strategy, model, score)?;
    println!("{:?}", worker.report());
    Ok((strategy, model, None))
}

fn report(args: &DistributedArgs, strategy: &EvolutionStrategy) {
    let every = (args.generations / 10).max(1);
    if let Some(report) = strategy.report().filter(|_| strategy.generation().is_multiple_of(every)) {
        println!("{:>6} {:>9.4}", strategy.generation(), report.fitness_mean);
    }
}
