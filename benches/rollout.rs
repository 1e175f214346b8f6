//! Training on CartPole-v1: environment steps per second, where the time goes, how it grows with the population.
//!
//! `cargo bench -p eggroll-benches --bench rollout`; with `-- --jax --python target/peers-venv/bin/python` also the same loop in JAX
//! (`benches/peers`). A run is a new network trained for some generations; networks take turns, and medians of their runs are
//! printed. Only steps of episodes that had not ended count.

use burn::optim::SgdConfig;
use clap::Parser;
use eggroll::nn::MlpConfig;
use eggroll::prelude::*;
use eggroll::rl::{CartPole, EpisodeKey, RolloutConfig, TensorEnvironment};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// As in the examples: the system's allocator would take a part of small generations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is trained: as in the peer script.
const SIGMA: f64 = 0.3;
const LEARNING_RATE: f64 = 0.3;
/// Steps of the environment that are timed by themselves.
const ALONE: u32 = 1_000_000;

/// Times rollouts of populations.
#[derive(Parser)]
struct RolloutArgs {
    /// Training runs of each network and population.
    #[arg(long, default_value_t = 5)]
    runs: u64,
    /// Generations of a training run.
    #[arg(long, default_value_t = 20)]
    generations: u64,
    /// Run the JAX peer script too: see benches/peers/README.md.
    #[arg(long)]
    jax: bool,
    /// Python with the packages of benches/peers/requirements.txt.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Given by cargo for a bench; without it this is a test, which runs everything once.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A network and a population.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Cell {
    hidden: Vec<usize>,
    population: usize,
    rank: usize,
}

/// A training run.
#[derive(Default)]
struct TimedRun {
    env_steps: u64,
    episodes: u64,
    evaluate: f64,
    update: f64,
}

impl TimedRun {
    fn seconds(&self) -> f64 {
        self.evaluate + self.update
    }
}

/// The results of the runs of a cell.
#[derive(Serialize)]
struct Figures {
    #[serde(flatten)]
    cell: Cell,
    fused: bool,
    env_steps_per_second: f64,
    q1: f64,
    q3: f64,
    mean_episode_length: f64,
    environment_share: f64,
    forward_share: f64,
    update_share: f64,
}

/// A line of the peer.
#[derive(Serialize, Deserialize)]
struct PeerFigures {
    #[serde(flatten)]
    cell: Cell,
    noise: String,
    env_steps_per_second: f64,
    mean_episode_length: f64,
}

fn cells(test: bool) -> Vec<(Cell, bool)> {
    let cell = |hidden: &[usize], population, rank| Cell { hidden: hidden.to_vec(), population, rank };
    if test {
        return vec![(cell(&[8], 8, 2), true), (cell(&[8], 8, 2), false)];
    }
    let small = [128, 512, 2048].map(|population| cell(&[32, 32], population, 1));
    let wide = [128, 512, 2048].map(|population| cell(&[256], population, 4));
    let tensors = [cell(&[32, 32], 128, 1), cell(&[256], 2048, 4)];
    let fused = small.into_iter().chain(wide).map(|cell| (cell, true));
    fused.chain(tensors.map(|cell| (cell, false))).collect()
}

fn train(cell: &Cell, fused: bool, generations: u64, seed: u64, device: &Device) -> Result<TimedRun, Box<dyn Error>> {
    device.seed(seed);
    let sizes = [&[4][..], &cell.hidden, &[2]].concat();
    let mut policy = MlpConfig::new(sizes).init(device);
    let config = EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(cell.rank), SgdConfig::new())
        .with_population_size(cell.population)
        .with_sigma(SIGMA)
        .with_learning_rate(LEARNING_RATE)
        .with_seed(seed);
    let mut strategy = config.try_init(&policy)?;
    let rollouts = RolloutConfig::new().with_fused(fused).with_seed(seed).init(CartPole::new())?;
    let mut run = TimedRun::default();
    for _ in 0..generations {
        let begin = Instant::now();
        let population = strategy.ask();
        let asked = Instant::now();
        let outcome = rollouts.evaluate(&population, &policy);
        let evaluated = Instant::now();
        strategy.tell(&mut policy, population, outcome.fitness)?;
        run.update += (asked - begin).as_secs_f64() + evaluated.elapsed().as_secs_f64();
        run.evaluate += (evaluated - asked).as_secs_f64();
        run.env_steps += outcome.episodes.env_steps();
        run.episodes += outcome.episodes.returns().len() as u64;
    }
    Ok(run)
}

/// Seconds that one core takes for a step of the environment alone, with its observation, its actions and its resets.
fn environment_seconds() -> f64 {
    let environment = CartPole::new();
    let (mut state, mut seen) = (vec![0.0; environment.state_size()], vec![0.0; environment.observation_size()]);
    environment.reset_host(EpisodeKey::new(0, 0, 0), &mut state);
    let start = Instant::now();
    for step in 0..ALONE {
        environment.observe_host(&state, &mut seen);
        // Pushing against the pole's fall makes episodes of some dozens of steps.
        let action = if seen[2] > 0.0 { 1.0 } else { 0.0 };
        if environment.step_host(black_box(&mut state), &[action]).terminated {
            environment.reset_host(EpisodeKey::new(0, 0, step), &mut state);
        }
    }
    start.elapsed().as_secs_f64() / f64::from(ALONE)
}

fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * q).round() as usize]
}

/// Of time in rollouts, what is not the environment is the forward, with the drawing of its noise.
fn figures(cell: Cell, fused: bool, runs: &[TimedRun], environment: f64) -> Figures {
    let mut rates: Vec<f64> = runs.iter().map(|run| run.env_steps as f64 / run.seconds()).collect();
    let sum = |value: fn(&TimedRun) -> f64| runs.iter().map(value).sum::<f64>();
    let (steps, seconds) = (sum(|run| run.env_steps as f64), sum(TimedRun::seconds));
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let (environment, update) = (steps * environment / cores / seconds, sum(|run| run.update) / seconds);
    Figures {
        cell,
        fused,
        env_steps_per_second: quantile(&mut rates, 0.5),
        q1: quantile(&mut rates, 0.25),
        q3: quantile(&mut rates, 0.75),
        mean_episode_length: steps / sum(|run| run.episodes as f64),
        environment_share: environment,
        forward_share: 1.0 - environment - update,
        update_share: update,
    }
}

/// The peer's figures of the fused cells.
fn jax(args: &RolloutArgs, cells: &[Cell]) -> Result<Vec<PeerFigures>, Box<dyn Error>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/jax_rollout.py");
    let name = |cell: &Cell| {
        let widths: Vec<String> = cell.hidden.iter().map(ToString::to_string).collect();
        format!("{}:{}:{}", widths.join("x"), cell.population, cell.rank)
    };
    let mut command = Command::new(&args.python);
    command.arg(&script).args(["--generations", &args.generations.to_string(), "--runs", &args.runs.to_string()]);
    command.args(["--sigma", &SIGMA.to_string(), "--rate", &LEARNING_RATE.to_string(), "--cells"]);
    let output = command.args(cells.iter().map(name)).output();
    let output = output.map_err(|error| format!("{}: {error}", args.python.display()))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", script.display(), words.trim()).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let mut lines = text.lines();
    println!("peer: {}", lines.next().unwrap_or_default());
    let figures = |line: &str| -> Result<PeerFigures, Box<dyn Error>> {
        Ok(serde_json::from_str(line).map_err(|error| format!("the peer's line {line:?}: {error}"))?)
    };
    lines.map(figures).collect()
}

fn print(figures: &Figures) {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    println!(
        "{:<12} {:>7} {:>5}  {:<8} {:>10.0} ({:.0} to {:.0}) {:>8.1} {:>8} {:>8} {:>8}",
        format!("{:?}", figures.cell.hidden),
        figures.cell.population,
        figures.cell.rank,
        if figures.fused { "fused" } else { "tensors" },
        figures.env_steps_per_second,
        figures.q1,
        figures.q3,
        figures.mean_episode_length,
        percent(figures.environment_share),
        percent(figures.forward_share),
        percent(figures.update_share)
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = RolloutArgs::parse();
    if !args.bench {
        (args.runs, args.generations) = (1, 2);
    }
    let cells = cells(!args.bench);
    let device = Device::flex();
    let mut runs: Vec<Vec<TimedRun>> = cells.iter().map(|_| Vec::new()).collect();
    let mut environment = Vec::new();
    train(&cells[0].0, true, args.generations, 0, &device)?; // threads are made
    for seed in 0..args.runs {
        environment.push(environment_seconds());
        for ((cell, fused), runs) in cells.iter().zip(&mut runs) {
            runs.push(train(cell, *fused, args.generations, seed, &device)?);
        }
    }
    let environment = quantile(&mut environment, 0.5);
    println!("the environment alone: {:.1} ns a step on one core", 1e9 * environment);
    println!("hidden       members  rank  how      env steps/s (quartiles)   episode  environment  forward  update");
    let all: Vec<Figures> =
        cells.into_iter().zip(&runs).map(|((cell, fused), runs)| figures(cell, fused, runs, environment)).collect();
    all.iter().for_each(print);
    let fused: Vec<Cell> = all.iter().filter(|figures| figures.fused).map(|figures| figures.cell.clone()).collect();
    let peers = if args.jax { jax(&args, &fused)? } else { Vec::new() };
    for peer in &peers {
        let ours = all.iter().find(|figures| figures.fused && figures.cell == peer.cell);
        let ours = ours.map_or(f64::NAN, |figures| figures.env_steps_per_second);
        println!(
            "jax, {:?}, {} members, rank {}, noise {}: {:.0} env steps/s, episodes of {:.1}; ours is {:.1} times as fast",
            peer.cell.hidden,
            peer.cell.population,
            peer.cell.rank,
            peer.noise,
            peer.env_steps_per_second,
            peer.mean_episode_length,
            ours / peer.env_steps_per_second
        );
    }
    println!("RESULT {}", json!({ "environment_ns": 1e9 * environment, "cells": all, "peer": peers }));
    Ok(())
}
