//! The grid of `examples/throughput`, cell by cell: populations of three networks against plain inference.
//!
//! A cell is named `size/N/column/rank`, and criterion's filter picks some: `cargo bench -p eggroll-benches --bench forward -- medium/N2048` runs
//! the columns of one size and population. The whole grid takes half an hour; `examples/throughput` runs the columns in turn,
//! so that ratios do not depend on the machine's mood, and is what records are made with.

use burn::tensor::Device;
use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use eggroll_examples::throughput::{Network, Size, columns};
use std::time::Duration;

const RANKS: [usize; 5] = [1, 2, 4, 8, 16];
const POPULATIONS: [usize; 9] = [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192];

/// As in the example: the system's allocator would dominate plain inference.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn forward(c: &mut Criterion) {
    let device = Device::flex();
    for (name, size) in Size::NAMED {
        let network = Network::new(size, &device);
        for members in POPULATIONS {
            let mut group = c.benchmark_group(format!("{name}/N{members}"));
            group.sampling_mode(SamplingMode::Flat).sample_size(10);
            group.measurement_time(Duration::from_secs(1)).warm_up_time(Duration::from_millis(300));
            for (column, rank) in columns(&RANKS, true) {
                let cell = rank.map_or(column.name().into(), |rank| format!("{}/r{rank}", column.name()));
                if let Some(reason) = column.refusal(size, members, rank) {
                    eprintln!("left out: {name}/N{members}/{cell}: {reason}");
                    continue;
                }
                // Made when the filter lets the cell through.
                let mut made = None;
                group.bench_function(cell, |b| {
                    let (pass, _) = made.get_or_insert_with(|| {
                        column.pass(&network, members, rank, &device).expect("a rank of at least 1")
                    });
                    b.iter(pass);
                });
            }
            group.finish();
        }
    }
}

criterion_group!(benches, forward);
criterion_main!(benches);
