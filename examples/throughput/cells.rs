//! Timing: the columns of one size and population in turn, round after round, so that all see the same machine.

use super::args::ThroughputArgs;
use burn::tensor::Device;
use eggroll::core::{NoiserError, profile};
use eggroll_examples::Failure;
use eggroll_examples::interrupt::Signals;
use eggroll_examples::throughput::{Cell, Column, GridPlace, Network, Pass, Rates, Size, Work, columns};
use eggroll_examples::trace::section;
use std::time::{Duration, Instant};

/// Rounds at least, after one that warms up.
const MIN_ROUNDS: usize = 5;
/// Rounds that a slow column takes part in.
const SLOW_ROUNDS: usize = 3;
/// Share of the time of a size and population above which one pass is slow.
const SLOW: f64 = 0.1;

/// A column that is timed.
struct TimedColumn {
    column: Column,
    rank: Option<usize>,
    materialized_bytes: u64,
    pass: Pass,
    slow: bool,
    times: Vec<f64>,
}

impl TimedColumn {
    /// Runs one pass.
    fn seconds(&mut self) -> f64 {
        let start = Instant::now();
        (self.pass)();
        start.elapsed().as_secs_f64()
    }
}

/// Times everything that is asked for, until a signal comes.
pub fn measure(args: &ThroughputArgs, device: &Device, rates: &Rates, signals: &Signals) -> Result<Vec<Cell>, Failure> {
    device.seed(0);
    let mut cells = Vec::new();
    let groups = args.sizes.len() * args.populations.len();
    eprintln!("{groups} sizes and populations, {} s each or more", args.seconds);
    for &size in &args.sizes {
        let network = Network::new(size, device);
        for &population in &args.populations {
            if signals.came() {
                return Ok(cells);
            }
            let mut tasks = tasks(args, &network, (size, population), device)?;
            let seconds = warm_up(&mut tasks, args.seconds);
            eprintln!("{size}, {population} members: {} columns, about {seconds:.0} s", tasks.len());
            section(&format!("{size}, {population} members"));
            repeat(&mut tasks, Duration::from_secs_f64(args.seconds), signals);
            cells.extend(summary(size, population, tasks, rates));
        }
    }
    Ok(cells)
}

fn tasks(
    args: &ThroughputArgs,
    network: &Network,
    (size, members): (Size, usize),
    device: &Device,
) -> Result<Vec<TimedColumn>, NoiserError> {
    let mut tasks = Vec::new();
    for (column, rank) in columns(&args.ranks, !args.no_open_es) {
        if let Some(reason) = column.refusal(size, members, rank) {
            let rank = rank.map_or(String::new(), |rank| format!(", rank {rank}"));
            println!("left out: {size}, {members} members, {}{rank}: {reason}", column.name());
            continue;
        }
        let (pass, materialized_bytes) = column.pass(network, members, rank, device)?;
        tasks.push(TimedColumn { column, rank, materialized_bytes, pass, slow: false, times: Vec::new() });
    }
    Ok(tasks)
}

/// A pass or two of every task, which show the slow ones; an estimate of the seconds that [`repeat`] will take.
fn warm_up(tasks: &mut [TimedColumn], limit: f64) -> f64 {
    let (mut slow, mut round) = (0.0, 0.0);
    for task in tasks.iter_mut() {
        let mut seconds = task.seconds();
        // The first pass may be the one that memory is fetched in.
        if seconds > SLOW * limit {
            seconds = task.seconds();
        }
        task.slow = seconds > SLOW * limit && task.column != Column::Inference;
        *(if task.slow { &mut slow } else { &mut round }) += seconds;
    }
    limit.max(SLOW_ROUNDS as f64 * slow + MIN_ROUNDS as f64 * round)
}

/// Runs all tasks in turn until the time is over; slow ones in the first rounds only.
fn repeat(tasks: &mut [TimedColumn], limit: Duration, signals: &Signals) {
    let start = Instant::now();
    let mut round = 0;
    while round < MIN_ROUNDS || start.elapsed() < limit {
        // One round is enough for a figure.
        if round > 0 && signals.came() {
            break;
        }
        profile::generation(round as u64);
        for task in tasks.iter_mut().filter(|task| round < SLOW_ROUNDS || !task.slow) {
            let seconds = task.seconds();
            task.times.push(1000.0 * seconds);
        }
        round += 1;
    }
}

fn summary(size: Size, population: usize, tasks: Vec<TimedColumn>, rates: &Rates) -> Vec<Cell> {
    let mut inference = None;
    let cell = |mut task: TimedColumn| {
        task.times.sort_by(f64::total_cmp);
        let quantile = |q: f64| task.times[((task.times.len() - 1) as f64 * q).round() as usize];
        let median = quantile(0.5);
        let base = *inference.get_or_insert(median);
        Cell {
            peer: false,
            place: GridPlace { size, population, rank: task.rank, column: task.column },
            median_ms: median,
            q1_ms: quantile(0.25),
            q3_ms: quantile(0.75),
            modelled_ms: Some(rates.milliseconds(Work::new(task.column, size, population, task.rank))),
            ratio: (task.column != Column::Inference).then_some(median / base),
            materialized_bytes: Some(task.materialized_bytes),
            passes: Some(task.times.len()),
        }
    };
    tasks.into_iter().map(cell).collect()
}
