//! One wide linear layer at the setting of the paper's speed figure: width 8192, bf16, a batch of 1024 rows, one for each
//! member. Prints the throughput of a population as a share of plain inference's, which is 100.
//!
//! Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652.

mod args;
mod timing;

use args::Args;
use burn::tensor::{Device, Distribution, Tensor};
use clap::Parser;
use eggroll::core::ops::{self, InputRows, LinearBias, LinearMembers, LowRankNoise, NoiseSource};
use eggroll::core::{NoiseKey, PairRange};
use eggroll_examples::interrupt::{Signals, nothing, on_signals};
use eggroll_examples::{Ending, Failure, main_of};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use timing::{Task, repeat};

/// Elements of the noise table in addition to those of one pair's noise. WebGPU guarantees buffers of 128 MiB, no larger ones.
const TABLE: usize = 1 << 24;
const SIGMA: f64 = 0.01;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    let signals = on_signals("this round", nothing);
    main_of(|| run(&args, &signals))
}

fn run(args: &Args, signals: &Signals) -> Result<Ending, Failure> {
    args.validate()?;
    let device = args.backend.device()?;
    if !device.supports_dtype(args.dtype()) {
        return Err(format!("{} has no {} here: --dtype takes another type", args.backend, args.type_name()).into());
    }
    device.seed(0);
    let mut tasks = tasks(args, &device);
    repeat(&mut tasks, args, &device, signals)?;
    report(args, &tasks, signals.ending());
    Ok(signals.ending())
}

/// Plain inference, then EGGROLL with each source of noise.
fn tasks(args: &Args, device: &Device) -> Vec<Task> {
    let (width, pairs) = (args.width, PairRange::new(0, (args.batch / 2) as u32));
    let on = (device, args.dtype());
    let x = Tensor::<2>::random([args.batch, width], Distribution::Uniform(-1.0, 1.0), on);
    let weight = Tensor::<2>::random([width, width], Distribution::Uniform(-1.0, 1.0), on) / (width as f64).sqrt();
    let elements = 2 * width * args.rank;
    let (inputs, weights) = (x.clone(), weight.clone());
    let mut tasks = vec![Task::new("inference", 0, move |_| inputs.clone().matmul(weights.clone()))];

    let key = NoiseKey::new(0, 0, 0);
    let cached = ops::noise(key, pairs, elements, device, args.dtype());
    let table = ops::noise(key, PairRange::new(0, 1), TABLE + elements, device, args.dtype());
    let bytes = |elements: usize| elements * args.dtype().size();
    let sources = [
        ("fly", 0, NoiseSource::Drawn),
        ("cached", bytes(args.batch / 2 * elements), NoiseSource::Cached { noise: cached, first_pair: 0 }),
        ("table", bytes(TABLE + elements), NoiseSource::Table(table.flatten(0, 1))),
    ];
    let (rank, members) = (args.rank, LinearMembers { pairs, input: InputRows::PerMember });
    for (name, held, source) in sources {
        let (x, weight) = (x.clone(), weight.clone());
        let fresh = matches!(source, NoiseSource::Drawn);
        tasks.push(Task::new(name, held, move |pass| {
            // Noise that is drawn on the fly is new in every pass.
            let key = NoiseKey::new(0, 0, if fresh { pass } else { 0 });
            let noise = LowRankNoise::new(key, rank, SIGMA);
            ops::low_rank_linear(x.clone(), weight.clone(), LinearBias::None, noise, source.clone(), members)
        }));
    }
    tasks
}

fn report(args: &Args, tasks: &[Task], ending: Ending) {
    let (width, inference) = (args.width as f64, tasks[0].median_ms());
    let tera = |ms: f64| 2.0 * args.batch as f64 * width * width / ms / 1e9;
    println!(
        "{} {}, width {}, batch {}, rank {}: {} rounds of {} passes in turn; median (quartiles) of one pass",
        args.backend,
        args.type_name(),
        args.width,
        args.batch,
        args.rank,
        tasks[0].rounds(),
        args.passes
    );
    println!("{:<10} {:>12} {:>25} {:>9} {:>7} {:>14}", "", "ms", "quartiles", "TFLOP/s", "share", "bytes held");
    let mut result = Map::new();
    for task in tasks {
        let ([q1, q3], ms) = (task.quartiles_ms(), task.median_ms());
        let share = 100.0 * inference / ms;
        let quartiles = format!("{q1:.4}–{q3:.4}");
        println!("{:<10} {ms:>12.4} {quartiles:>25} {:>9.3} {share:>7.1} {:>14}", task.name, tera(ms), task.held);
        result.insert(format!("{}_ms", task.name), json!(ms));
        result.insert(format!("{}_share", task.name), json!(share));
    }
    for (name, value) in [("width", args.width), ("batch", args.batch), ("rank", args.rank)] {
        result.insert(name.into(), json!(value));
    }
    result.insert("backend".into(), json!(args.backend.to_string()));
    result.insert("stopped".into(), json!(ending.is_stopped()));
    result.insert("dtype".into(), json!(args.type_name()));
    println!("RESULT {}", Value::Object(result));
}
