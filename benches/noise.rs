//! Elements of noise per nanosecond and thread, for every distribution and every instruction set of this processor.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use eggroll::core::rng::normal::fill_normals_on;
use eggroll::core::rng::rademacher::fill_signs_on;
use eggroll::core::{InstructionSet, NoiseDistribution, NoiseKey};
use std::hint::black_box;

type NoiseFill = fn(InstructionSet, NoiseKey, u32, usize, &mut [f32]);

fn noise(c: &mut Criterion) {
    let key = NoiseKey::new(0, 0, 0);
    let signs = key.with_distribution(NoiseDistribution::Rademacher);
    for (name, key, fill) in [("normals", key, fill_normals_on as NoiseFill), ("signs", signs, fill_signs_on)] {
        let mut group = c.benchmark_group(name);
        // A run of the noise of one pair, as kernels draw it: signs waste most of a group when few are needed.
        for len in [256, 4096] {
            let mut out = vec![0.0f32; len];
            group.throughput(Throughput::Elements(len as u64));
            for set in InstructionSet::available().into_iter().filter(|set| set.of_floats() == *set) {
                let mut pair = 0;
                group.bench_function(format!("{set:?}/{len}"), |b| {
                    b.iter(|| {
                        pair += 1;
                        fill(set, key, pair, 0, &mut out);
                        black_box(&mut out);
                    })
                });
            }
        }
        group.finish();
    }
}

criterion_group!(benches, noise);
criterion_main!(benches);
