//! Forward and estimate of a population against plain inference, in turn, so that all see the same machine.

use super::args::ComparisonArgs;
use super::rows::OperationTimes;
use burn::tensor::{Device, Distribution, Tensor};
use eggroll::core::{EggrollConfig, NoiseSourceConfig, profile};
use eggroll_examples::Failure;
use eggroll_examples::throughput::{Network, Population};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Rounds that are not counted: kernels are compiled and tuned in them.
const WARM_UP: usize = 2;
/// Rounds that are counted, at least.
const MIN_ROUNDS: usize = 5;

/// Medians of the three passes, and the bytes of noise that the population keeps between them.
pub fn measure(args: &ComparisonArgs, device: &Device) -> Result<(OperationTimes, u64), Failure> {
    device.seed(0);
    let network = Network::new(args.size, device);
    let noiser = EggrollConfig::new().with_rank(args.rank).into();
    let population = || Population::new(&network, args.population, &noiser, NoiseSourceConfig::OnTheFly, device);
    let (plain, mut forward, mut estimate) = (population()?, population()?, population()?);
    let weights = Tensor::<1>::random([args.population / 2], Distribution::Default, device);
    let mut round = || -> Result<[f64; 3], Failure> {
        Ok([
            clock(device, || plain.inference())?,
            clock(device, || forward.forward())?,
            clock(device, || estimate.estimate(&weights))?,
        ])
    };
    for _ in 0..WARM_UP {
        round()?;
    }
    let (limit, start) = (Duration::from_secs_f64(args.seconds), Instant::now());
    let mut rounds = Vec::new();
    while rounds.len() < MIN_ROUNDS || start.elapsed() < limit {
        profile::generation(rounds.len() as u64);
        rounds.push(round()?);
    }
    let [inference_ms, forward_ms, estimate_ms] = [0, 1, 2].map(|pass| median(&rounds, pass));
    let times = OperationTimes {
        inference_ms,
        forward_ms,
        estimate_ms,
        forward_ratio: forward_ms / inference_ms,
        estimate_ratio: estimate_ms / inference_ms,
        rounds: rounds.len(),
    };
    Ok((times, forward.materialized_bytes()))
}

/// Milliseconds of a pass, from an idle device to an idle device.
fn clock<T>(device: &Device, pass: impl FnOnce() -> T) -> Result<f64, Failure> {
    let start = Instant::now();
    let result = black_box(pass());
    sync(device)?;
    let elapsed = start.elapsed().as_secs_f64() * 1000.0;
    drop(result);
    Ok(elapsed)
}

/// Waits for the device.
pub fn sync(device: &Device) -> Result<(), Failure> {
    Ok(device.sync().map_err(|error| format!("the device did not finish its work: {error:?}"))?)
}

fn median(rounds: &[[f64; 3]], pass: usize) -> f64 {
    let mut times: Vec<f64> = rounds.iter().map(|round| round[pass]).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
