//! What replicas cost: seconds of a generation that they share, and of one exchange of fitness.
//!
//! Alone: `cargo bench -p eggroll-benches --bench distribution --features eggroll/mpi`. As replicas: the same binary under `mpirun`, one rank on each core:
//! `RAYON_NUM_THREADS=1 mpirun -n 2 --bind-to core target/release/deps/distribution-…`. The efficiency is the evaluation's seconds of one
//! rank, bound to a core, over those of `n` ranks times `n`.

use eggroll::nn::{Mlp, MlpConfig};
use eggroll::prelude::*;
use eggroll::run::distribution::{Communicator, detect, evaluate_sharded};
use serde_json::json;
use std::error::Error;
use std::time::Instant;

/// As in the examples: the system's allocator would dominate plain inference.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Two, so that the fixed cost of an update can be told from the cost of its pairs.
const POPULATIONS: [usize; 2] = [64, 4096];
const BATCH: usize = 32;
/// Generations that are measured, after as many that are not.
const GENERATIONS: usize = 15;
/// Members of the exchange that is measured alone.
const EXCHANGED: usize = 65_536;
const EXCHANGES: usize = 500;

type Measurement = Result<serde_json::Value, Box<dyn Error + Send + Sync>>;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut communicator = detect()?;
    let generations = POPULATIONS.map(|population| generations(population, communicator.as_mut()));
    let generations = generations.into_iter().collect::<Result<Vec<_>, _>>()?;
    let exchange = exchange(communicator.as_mut())?;
    if communicator.rank() == 0 {
        let (ranks, exchanged) = (communicator.size(), EXCHANGED);
        println!(
            "RESULT {}",
            json!({ "ranks": ranks, "exchanged": exchanged, "exchange": exchange, "generations": generations })
        );
    }
    Ok(())
}

/// Median seconds of the parts of a generation: a network and a batch as in the example mnist.
fn generations(population: usize, communicator: &mut dyn Communicator) -> Measurement {
    let device = Device::flex();
    device.seed(0);
    let mut model: Mlp = MlpConfig::new(vec![784, 128, 10]).init(&device);
    let x = Tensor::<2>::random([BATCH, 784], burn::tensor::Distribution::Default, &device);
    let labels = Tensor::<1, Int>::arange(0..BATCH as i64, &device).remainder_scalar(10);
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new());
    let mut strategy = config.with_population_size(population).try_init(&model)?;
    let [mut own, mut sharded, mut told] = [(); 3].map(|()| Vec::new());
    for _ in 0..2 * GENERATIONS {
        let members = strategy.ask();
        communicator.barrier()?;
        let start = Instant::now();
        let fitness = evaluate_sharded(&members, communicator, |slice| {
            let start = Instant::now();
            let fitness = slice.evaluate(|members| {
                let logits = model.forward(members.repeat(x.clone()));
                -members.cross_entropy(logits, labels.clone())
            });
            own.push(start.elapsed().as_secs_f64());
            fitness
        })?;
        sharded.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        strategy.tell(&mut model, members, fitness)?;
        told.push(start.elapsed().as_secs_f64());
    }
    let [own, sharded, told] = [own, sharded, told].map(|seconds| median(&seconds[GENERATIONS..]));
    // The length, generation, kind and tasks stand in front of the scores.
    let sent = 4 * (4 + population / communicator.size());
    Ok(json!({
        "population": population,
        "batch": BATCH,
        "evaluate_own_seconds": own,
        "evaluate_sharded_seconds": sharded,
        "tell_seconds": told,
        "bytes_sent": sent,
        "bytes_received": sent * communicator.size(),
    }))
}

/// Seconds of an exchange of fitness, of which each rank has its share.
fn exchange(communicator: &mut dyn Communicator) -> Measurement {
    let own = vec![1; EXCHANGED / communicator.size()];
    let mut seconds = Vec::new();
    for _ in 0..EXCHANGES {
        communicator.barrier()?;
        let start = Instant::now();
        communicator.all_gather(&own)?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(json!({ "median_seconds": median(&seconds), "p90_seconds": seconds[EXCHANGES * 9 / 10] }))
}

fn median(seconds: &[f64]) -> f64 {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
