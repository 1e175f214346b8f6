//! One wide linear layer at the setting of the paper's speed figure: width 8192, bf16, a batch of 1024 rows, one for each
//! member. Prints the throughput of a population as a share of plain inference's, which is 100.
//!
//! Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652.

mod args;
mod timing;

use args::{Column, PaperSettingArgs};
use burn::tensor::{DType, Device, Distribution, Tensor};
use eggroll::core::ops::{self, DenseNoise, InputRows, LinearBias, LinearMembers, LowRankNoise, NoiseSource};
use eggroll::core::{NoiseKey, PairRange};
use eggroll_examples::device::{Opened, open};
use eggroll_examples::interrupt::{Signals, nothing, on_signals};
use eggroll_examples::{Ending, Failure, main_of, options};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use timing::{TimedTask, repeat};

/// Elements of the noise table in addition to one pair's noise. WebGPU guarantees buffers of 128 MiB, no larger ones.
const TABLE: usize = 1 << 24;
const SIGMA: f64 = 0.01;

#[cfg(not(feature = "gpu-pack"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub(crate) fn main() -> ExitCode {
    let (args, given) = options::parse::<PaperSettingArgs>();
    let signals = on_signals("this round", nothing);
    main_of(|| {
        args.refuse_unused(&given)?;
        run(&args, &signals)
    })
}

fn run(args: &PaperSettingArgs, signals: &Signals) -> Result<Ending, Failure> {
    args.validate()?;
    let opened = open(args.backend)?;
    opened.has(args.backend, args.dtype())?;
    let device = &opened.device;
    device.seed(0);
    let mut tasks = tasks(args, device);
    repeat(&mut tasks, args, device, signals)?;
    report(args, &opened, &tasks, signals.ending());
    Ok(signals.ending())
}

/// Plain inference, then every column that is asked for.
fn tasks(args: &PaperSettingArgs, device: &Device) -> Vec<TimedTask> {
    let layer = PaperLayer::new(args, device);
    let (x, weight) = (layer.x.clone(), layer.weight.clone());
    let mut tasks =
        vec![TimedTask::new("inference", [0, layer.forward_flop()], move |_| x.clone().matmul(weight.clone()))];
    tasks.extend(args.columns.iter().map(|column| layer.task(*column)));
    tasks
}

/// The layer, and a row for each member.
struct PaperLayer {
    /// `[members, width]`
    x: Tensor<2>,
    /// `[width, width]`
    weight: Tensor<2>,
    members: LinearMembers,
    rank: usize,
    dtype: DType,
}

impl PaperLayer {
    fn new(args: &PaperSettingArgs, device: &Device) -> Self {
        let (width, on) = (args.width, (device, args.dtype()));
        let weight = Tensor::<2>::random([width, width], Distribution::Uniform(-1.0, 1.0), on);
        let pairs = PairRange::new(0, (args.batch / 2) as u32);
        Self {
            x: Tensor::random([args.batch, width], Distribution::Uniform(-1.0, 1.0), on),
            weight: weight / (width as f64).sqrt(),
            members: LinearMembers { pairs, input: InputRows::PerMember },
            rank: args.rank,
            dtype: args.dtype(),
        }
    }

    fn width(&self) -> usize {
        self.weight.dims()[0]
    }

    /// Floating-point operations of plain inference.
    fn forward_flop(&self) -> usize {
        2 * self.x.dims()[0] * self.width() * self.width()
    }

    fn task(&self, column: Column) -> TimedTask {
        let device = self.x.device();
        let (key, pairs, elements) = (NoiseKey::new(0, 0, 0), self.members.pairs, 2 * self.width() * self.rank);
        let bytes = |elements: usize| elements * self.dtype.size();
        match column {
            Column::Fly => self.eggroll("fly", 0, NoiseSource::Drawn),
            Column::Cached => {
                let noise = ops::noise(key, pairs, elements, &device, self.dtype);
                let held = bytes(pairs.count as usize * elements);
                self.eggroll("cached", held, NoiseSource::Cached { noise, first_pair: 0 })
            }
            Column::Table => {
                let table = ops::noise(key, PairRange::new(0, 1), TABLE + elements, &device, self.dtype);
                self.eggroll("table", bytes(TABLE + elements), NoiseSource::Table(table.flatten(0, 1)))
            }
            Column::Estimate => {
                let (rank, shape, dtype) = (self.rank, self.weight.dims(), self.dtype);
                let on = (&device, DType::F32);
                let weights = Tensor::<1>::random([pairs.count as usize], Distribution::Uniform(-1.0, 1.0), on);
                let flop = 2 * pairs.count as usize * rank * shape[0] * shape[1];
                TimedTask::new("estimate", [0, flop], move |pass| {
                    let noise = LowRankNoise::new(NoiseKey::new(0, 0, pass), rank, SIGMA);
                    ops::low_rank_estimate(weights.clone(), noise, NoiseSource::Drawn, 0, shape, dtype)
                })
            }
            Column::OpenEs => {
                let (x, weight, members) = (self.x.clone(), self.weight.clone(), self.members);
                TimedTask::new("open_es", [0, self.forward_flop()], move |pass| {
                    let noise = DenseNoise::new(NoiseKey::new(0, 0, pass), SIGMA);
                    ops::dense_linear(x.clone(), weight.clone(), LinearBias::None, noise, NoiseSource::Drawn, members)
                })
            }
        }
    }

    /// The population's forward pass with noise from a source.
    fn eggroll(&self, name: &'static str, held: usize, source: NoiseSource) -> TimedTask {
        let (x, weight, rank, members) = (self.x.clone(), self.weight.clone(), self.rank, self.members);
        let fresh = matches!(source, NoiseSource::Drawn);
        TimedTask::new(name, [held, self.forward_flop()], move |pass| {
            // Noise that is drawn on the fly is new in every pass.
            let key = NoiseKey::new(0, 0, if fresh { pass } else { 0 });
            let noise = LowRankNoise::new(key, rank, SIGMA);
            ops::low_rank_linear(x.clone(), weight.clone(), LinearBias::None, noise, source.clone(), members)
        })
    }
}

fn report(args: &PaperSettingArgs, opened: &Opened, tasks: &[TimedTask], ending: Ending) {
    let inference = tasks[0].median_ms();
    println!("device: {}", opened.hardware);
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
        println!(
            "{:<10} {ms:>12.4} {quartiles:>25} {:>9.3} {share:>7.1} {:>14}",
            task.name,
            task.tera_flops(),
            task.held
        );
        result.insert(format!("{}_ms", task.name), json!(ms));
        result.insert(format!("{}_share", task.name), json!(share));
    }
    for (name, value) in [("width", args.width), ("batch", args.batch), ("rank", args.rank)] {
        result.insert(name.into(), json!(value));
    }
    result.insert("backend".into(), json!(args.backend.to_string()));
    result.insert("hardware".into(), json!(opened.hardware));
    result.insert("stopped".into(), json!(ending.is_stopped()));
    result.insert("dtype".into(), json!(args.type_name()));
    println!("RESULT {}", Value::Object(result));
}
