//! Timing: the columns of one size and population in turn, round after round, so that all see the same machine.

use crate::args::Args;
use crate::network::{Network, Population, Size};
use burn::tensor::{Device, Distribution, Tensor};
use eggroll::core::{NoiserError, profile};
use eggroll::prelude::*;
use eggroll::train::profile::section;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Elements of the noise table: 64 MiB.
const TABLE: usize = 1 << 24;
/// Rounds at least, after one that warms up.
const MIN_ROUNDS: usize = 5;

/// What a cell times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    Inference,
    Fly,
    Cached,
    Table,
    Estimate,
    OpenEsFly,
}

/// One measurement, ours or a peer's.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    pub peer: bool,
    pub size: Size,
    pub population: usize,
    pub rank: Option<usize>,
    pub column: Column,
    pub median_ms: f64,
    pub q1_ms: f64,
    pub q3_ms: f64,
    /// Times the inference of the same library, size and population.
    pub ratio: Option<f64>,
    /// Bytes of noise kept between passes.
    pub held_bytes: Option<usize>,
}

impl Cell {
    pub fn samples_per_second(&self) -> f64 {
        1000.0 * self.population as f64 / self.median_ms
    }
}

/// A column that is timed.
struct Task {
    column: Column,
    rank: Option<usize>,
    held_bytes: usize,
    pass: Box<dyn FnMut()>,
    times: Vec<f64>,
}

/// Times everything that is asked for.
pub fn measure(args: &Args) -> Result<Vec<Cell>, Box<dyn std::error::Error>> {
    let device = args.backend.device()?;
    device.seed(0);
    let mut cells = Vec::new();
    for &size in &args.sizes {
        let network = Network::new(size, &device);
        for &population in &args.populations {
            let mut tasks = tasks(args, &network, population, &device)?;
            section(&format!("{size:?}, {population} members").to_lowercase());
            repeat(&mut tasks, Duration::from_secs_f64(args.seconds));
            cells.extend(summary(size, population, tasks));
        }
    }
    Ok(cells)
}

fn tasks(args: &Args, network: &Network, members: usize, device: &Device) -> Result<Vec<Task>, NoiserError> {
    let mut tasks = Vec::new();
    let mut add = |column, rank, held_bytes, mut pass: Box<dyn FnMut()>| {
        let device = device.clone();
        let pass = Box::new(move || {
            pass();
            device.sync().expect("the device finishes its work");
        });
        tasks.push(Task { column, rank, held_bytes, pass, times: Vec::new() });
    };
    let plain = Population::new(network, members, &EggrollConfig::new().into(), NoiseSourceConfig::OnTheFly, device)?;
    add(Column::Inference, None, 0, Box::new(move || drop(black_box(plain.inference()))));
    let sources = [
        (Column::Fly, NoiseSourceConfig::OnTheFly),
        (Column::Cached, NoiseSourceConfig::Cached),
        (Column::Table, NoiseSourceConfig::Table { len: TABLE }),
    ];
    for &rank in &args.ranks {
        let noiser = EggrollConfig::new().with_rank(rank).into();
        for (column, source) in sources {
            let mut population = Population::new(network, members, &noiser, source, device)?;
            let held = population.held_bytes();
            add(column, Some(rank), held, Box::new(move || drop(black_box(population.forward()))));
        }
        let mut population = Population::new(network, members, &noiser, NoiseSourceConfig::OnTheFly, device)?;
        let weights = Tensor::<1>::random([members / 2], Distribution::Default, device);
        add(Column::Estimate, Some(rank), 0, Box::new(move || drop(black_box(population.estimate(&weights)))));
    }
    if !args.no_open_es {
        let noiser = OpenEsConfig::new().into();
        let mut population = Population::new(network, members, &noiser, NoiseSourceConfig::OnTheFly, device)?;
        add(Column::OpenEsFly, None, 0, Box::new(move || drop(black_box(population.forward()))));
    }
    Ok(tasks)
}

/// Runs all tasks in turn until the time is over.
fn repeat(tasks: &mut [Task], limit: Duration) {
    for task in tasks.iter_mut() {
        (task.pass)();
    }
    let start = Instant::now();
    while tasks[0].times.len() < MIN_ROUNDS || start.elapsed() < limit {
        profile::generation(tasks[0].times.len() as u64);
        for task in tasks.iter_mut() {
            let start = Instant::now();
            (task.pass)();
            task.times.push(start.elapsed().as_secs_f64() * 1000.0);
        }
    }
}

fn summary(size: Size, population: usize, tasks: Vec<Task>) -> Vec<Cell> {
    let mut inference = None;
    let cell = |mut task: Task| {
        task.times.sort_by(f64::total_cmp);
        let quantile = |q: f64| task.times[((task.times.len() - 1) as f64 * q).round() as usize];
        let median = quantile(0.5);
        let base = *inference.get_or_insert(median);
        Cell {
            peer: false,
            size,
            population,
            rank: task.rank,
            column: task.column,
            median_ms: median,
            q1_ms: quantile(0.25),
            q3_ms: quantile(0.75),
            ratio: (task.column != Column::Inference).then_some(median / base),
            held_bytes: Some(task.held_bytes),
        }
    };
    tasks.into_iter().map(cell).collect()
}
