//! A long run that checks itself: `cargo run --release --example soak`.
//!
//! Two small networks train for 10,000 generations each, one of floats and one of integers. Memory must stay flat, and the replay log
//! must make the model of every checkpoint that is left, and the last one, again, bit for bit.

mod args;
mod memory;
mod task;

use args::SoakArgs;
use burn::tensor::Device;
use eggroll::run::{Checkpoints, ReplayLog, load, parameter_digest, replay};
use eggroll_examples::device::open;
use eggroll_examples::interrupt::{Signals, nothing, on_signals};
use eggroll_examples::{Ending, Failure, main_of, options};
use memory::Looks;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use task::{Floats, Integers, SoakTask};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let (args, _) = options::parse::<SoakArgs>();
    let signals = on_signals("this generation", nothing);
    main_of(|| run(&args, &signals))
}

fn run(args: &SoakArgs, signals: &Signals) -> Result<Ending, Failure> {
    args.validate()?;
    let device = open(args.backend)?.device;
    device.seed(args.seed);
    let temporary = tempfile::tempdir()?;
    let folder = args.out.as_deref().unwrap_or(temporary.path());
    let runs = [soak::<Floats>(args, folder, &device, signals)?, soak::<Integers>(args, folder, &device, signals)?];
    let ending = if runs.iter().all(|run| run.complete) { Ending::Finished } else { Ending::Stopped };
    let failures: Vec<String> = runs.iter().flat_map(|run| run.failures.clone()).collect();
    let result = json!({
        "generations": args.generations,
        "population": args.population,
        "backend": args.backend.to_string(),
        "passed": failures.is_empty() && !ending.is_stopped(),
        "stopped": ending.is_stopped(),
        "runs": runs.map(|run| run.report),
    });
    println!("RESULT {result}");
    if failures.is_empty() { Ok(ending) } else { Err(failures.join("; ").into()) }
}

/// The result of a run, and its failures.
struct Soaked {
    report: Value,
    failures: Vec<String>,
    /// Whether no signal came.
    complete: bool,
}

fn soak<T: SoakTask>(args: &SoakArgs, folder: &Path, device: &Device, signals: &Signals) -> Result<Soaked, Failure> {
    let (folder, start) = (folder.join(T::NAME), Instant::now());
    let first = T::new(device);
    let config = T::config().with_population_size(args.population).with_seed(args.seed);
    let (mut strategy, mut model) = (config.try_init(&first)?, first.clone());
    let (checkpoints, path) = (Checkpoints::new(folder.join("checkpoints")), folder.join("run.replay"));
    let mut log = ReplayLog::create(&path, &strategy, &model)?;
    let (mut looks, mut fitness_by_look) = (Looks::default(), Vec::new());
    while strategy.generation() < args.generations && !signals.came() {
        let population = strategy.ask();
        let fitness = model.fitness(&population, args, device);
        strategy.tell(&mut model, population, fitness.clone())?;
        log.append(&strategy, &fitness)?;
        let done = strategy.generation();
        if done.is_multiple_of(args.every) || done == args.generations {
            log.sync()?;
            checkpoints.save(&strategy, &model)?;
            looks.look();
            fitness_by_look.extend(strategy.report().map(|report| report.fitness_mean));
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let generations = strategy.generation();
    println!("{}: {generations} generations in {seconds:.1} s", T::NAME);

    let mut failures = differences(&checkpoints, &path, &first)?;
    let replay_equal = failures.is_empty();
    let complete = generations == args.generations;
    let halves = looks.halves();
    if complete
        && let Some([before, after]) = halves
        && after > before + (args.tolerance << 20)
    {
        failures.push(format!("{}: memory grew from {before} to {after} bytes", T::NAME));
    }
    let report = json!({
        "model": T::NAME,
        "seconds": seconds,
        "resident_bytes": halves,
        "replay_bytes": path.metadata()?.len(),
        "replay_equal": replay_equal,
        "fitness": [fitness_by_look.first(), fitness_by_look.last()],
        "parameter_digest": parameter_digest(&model),
    });
    Ok(Soaked { report, failures, complete })
}

/// Where the log's models differ from the models of the checkpoints that are left. The last checkpoint has the run's last model.
fn differences<T: SoakTask>(checkpoints: &Checkpoints, log: &Path, first: &T) -> Result<Vec<String>, Failure> {
    let mut differences = Vec::new();
    for path in checkpoints.list()? {
        let (strategy, saved) = load(&path, first.clone())?;
        let (_, replayed) = replay(log, first.clone(), Some(strategy.generation()))?;
        let [saved, replayed] = [&saved, &replayed].map(|model| parameter_digest(model));
        if saved != replayed {
            differences.push(format!("{}: the replay gives {replayed}, the checkpoint is {saved}", path.display()));
        }
    }
    Ok(differences)
}
