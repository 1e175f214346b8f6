//! What a long recurrence costs: a GRU of 128 over 128 steps, for all members of a population, against Burn's plain GRU on as
//! many sequences. Noise is drawn anew at every step, or held (`cached`).
//!
//! `cargo bench -p eggroll-benches --bench recurrence`; the ratio to `plain` of the same run is what counts.

use burn::tensor::Distribution;
use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use eggroll::core::scope::Perturbation;
use eggroll::core::{MaterializedNoise, PairRange, ParameterTable};
use eggroll::nn::GruConfig;
use eggroll::prelude::*;
use std::sync::Arc;
use std::time::Duration;

const WIDTH: usize = 128;
const STEPS: usize = 128;

/// As in the examples: the system's allocator would dominate plain inference.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn recurrence(c: &mut Criterion) {
    let device = Device::flex();
    let gru = GruConfig::new(WIDTH, WIDTH, true).init(&device);
    for pairs in [16, 128] {
        let x = Tensor::<3>::random([2 * pairs as usize, STEPS, WIDTH], Distribution::Default, &device);
        let mut group = c.benchmark_group(format!("gru/N{}", 2 * pairs));
        group.sampling_mode(SamplingMode::Flat).sample_size(10);
        group.measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
        group.bench_function("plain", |b| b.iter(|| gru.forward(x.clone(), None)));
        for rank in [1, 4] {
            let noiser = NoiserConfig::from(EggrollConfig::new().with_rank(rank)).init().expect("a rank of at least 1");
            let table = Arc::new(ParameterTable::new(&gru, noiser.as_ref(), &[]).expect("parameters to train"));
            let sources = [("drawn", NoiseSourceConfig::OnTheFly), ("cached", NoiseSourceConfig::Cached)];
            for (name, source) in sources {
                let held: MaterializedNoise = source.hold(&table, 0, 0, PairRange::new(0, pairs), None);
                let perturbation = Perturbation {
                    noiser: noiser.clone(),
                    table: table.clone(),
                    seed: 0,
                    generation: 0,
                    sigma: 0.02,
                    held: Arc::new(held),
                };
                group.bench_function(format!("{name}/r{rank}"), |b| {
                    b.iter(|| perturbation.run(PairRange::new(0, pairs), || gru.forward(x.clone(), None)).0)
                });
            }
        }
        group.finish();
    }
}

criterion_group!(benches, recurrence);
criterion_main!(benches);
