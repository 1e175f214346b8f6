//! Recovers a damaged network by evolution strategies: `cargo run --release --example finetune`.
//!
//! A network that was trained by backpropagation, here or elsewhere (`--weights`), loses most of its weights or most of their bits.
//! EGGROLL brings its accuracy back with the damage in force: every member is the damaged network, and its fitness is the accuracy
//! itself. Neither has a gradient. `--help` lists the settings.

mod args;
mod damage;
mod pretrained;
mod recover;

use args::FinetuneArgs;
use damage::Damage;
use eggroll::prelude::*;
use eggroll_examples::device::open;
use eggroll_examples::digits::{Dataset, Images};
use eggroll_examples::interrupt::{Signals, nothing, on_signals};
use eggroll_examples::{Ending, Failure, main_of, options};
use pretrained::Pretrained;
use recover::Recovery;
use serde_json::json;
use std::process::ExitCode;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let (args, _) = options::parse::<FinetuneArgs>();
    let signals = on_signals("this generation", nothing);
    main_of(|| run(&args, &signals))
}

fn run(args: &FinetuneArgs, signals: &Signals) -> Result<Ending, Failure> {
    let device = open(args.backend)?.device;
    let damage = args.damage()?;
    let train = Images::read(&args.data, "train")?;
    args.validate(train.len())?;
    let scale = train.scale();
    let test = Dataset::new(&train.read_next(&args.data, "t10k")?, scale, &device);
    device.seed(args.seed);

    let pretrained = Pretrained { args, train: &train, scale, device: &device, signals };
    let model = pretrained.model()?;
    let before = model.accuracy(&test);
    println!("test accuracy {:.2} % before", 100.0 * before);

    let damage = Damage::new(damage, &model);
    let damaged = damage.apply(model.clone()).accuracy(&test);
    println!("test accuracy {:.2} % after damage: {damage}", 100.0 * damaged);

    let start = Instant::now();
    let recovery = Recovery { args, train: &train, test: &test, scale, damage: &damage, device: &device, signals };
    let (model, generations) = recovery.run(model)?;
    let model = damage.apply(model);
    let (seconds, recovered) = (start.elapsed().as_secs_f64(), model.accuracy(&test));
    println!("test accuracy {:.2} % after recovery in {seconds:.1} s, {damage}", 100.0 * recovered);

    let ending = if generations < args.generations { Ending::Stopped } else { Ending::Finished };
    let evaluations = generations * args.population as u64;
    let result = json!({
        "accuracy_before": before,
        "accuracy_damaged": damaged,
        "accuracy_recovered": recovered,
        "damage": damage.to_string(),
        "member_evaluations": evaluations,
        "evaluations_per_second": evaluations as f64 / seconds,
        "recovery_seconds": seconds,
        "seed": args.seed,
        "stopped": ending.is_stopped(),
        "parameter_digest": parameter_digest(&model),
    });
    println!("RESULT {result}");
    Ok(ending)
}
