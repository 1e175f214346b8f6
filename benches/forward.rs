//! Perturbed forward of one layer against plain inference of the same layer, in one run.

use burn::tensor::{Device, Distribution, Tensor};
use criterion::{Criterion, criterion_group, criterion_main};
use eggroll::core::NoiseKey;
use eggroll::core::ops::*;
use std::hint::black_box;
use std::time::Duration;

const SIZES: [(usize, usize, usize); 3] = [(256, 256, 2048), (64, 512, 2048), (4, 256, 8192)];

fn forward(c: &mut Criterion) {
    let device = Device::flex();
    for (d_input, d_output, members) in SIZES {
        let mut group = c.benchmark_group(format!("forward/{d_input}x{d_output}/N{members}"));
        group.sample_size(60).measurement_time(Duration::from_secs(3)).warm_up_time(Duration::from_secs(1));
        let x = Tensor::<2>::random([members, d_input], Distribution::Default, &device);
        let weight = Tensor::<2>::random([d_input, d_output], Distribution::Default, &device);
        group.bench_function("inference", |b| {
            b.iter(|| black_box(burn::tensor::module::linear(x.clone(), weight.clone(), None)))
        });
        let scope = LinearMembers { pairs: PairRange::new(0, members as u32 / 2), input: InputRows::PerMember };
        let mut generation = 0;
        for rank in [1, 2, 4, 8, 16] {
            group.bench_function(format!("eggroll/r{rank}"), |b| {
                b.iter(|| {
                    generation += 1;
                    let noise = LowRankNoise::new(NoiseKey::new(1, 0, generation), rank, 0.1);
                    black_box(low_rank_linear(
                        x.clone(),
                        weight.clone(),
                        LinearBias::None,
                        noise,
                        NoiseSource::Drawn,
                        scope,
                    ))
                })
            });
        }
        group.finish();
    }
}

criterion_group!(benches, forward);
criterion_main!(benches);
