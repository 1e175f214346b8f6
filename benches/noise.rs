//! Standard normals per nanosecond and thread, for every instruction set of this processor.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use eggroll::core::rng::normal::fill_normals_on;
use eggroll::core::{InstructionSet, NoiseKey};
use std::hint::black_box;

fn normals(c: &mut Criterion) {
    let mut group = c.benchmark_group("normals");
    let mut out = vec![0.0f32; 4096];
    group.throughput(Throughput::Elements(out.len() as u64));
    for set in InstructionSet::available() {
        let mut pair = 0;
        group.bench_function(format!("{set:?}"), |b| {
            b.iter(|| {
                pair += 1;
                fill_normals_on(set, NoiseKey::new(0, 0, 0), pair, 0, &mut out);
                black_box(&mut out);
            })
        });
    }
    group.finish();
}

criterion_group!(benches, normals);
criterion_main!(benches);
