//! Q-EGGROLL's language model: tokens per second (members · bytes) of whole generations, and of their parts.
//!
//! `cargo bench -p eggroll-benches --bench integer`; the cells are the issue's: width 128, 512 and 64.

use burn::tensor::{Device, Int, Tensor, TensorData};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use eggroll::core::QEggrollConfig;
use eggroll::core::ops::integer::{Rounding, log_likelihood};
use eggroll::nn::integer::{EggModel, EggModelConfig, EggState};
use eggroll::train::{EvolutionStrategyConfig, Fitness, MemberChunk, Population};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct IntegerWork {
    width: usize,
    layers: usize,
    steps: usize,
    population: usize,
    chunk: usize,
}

const CELLS: [IntegerWork; 3] = [
    IntegerWork { width: 128, layers: 2, steps: 128, population: 256, chunk: 32 },
    IntegerWork { width: 512, layers: 4, steps: 64, population: 32, chunk: 16 },
    IntegerWork { width: 64, layers: 2, steps: 32, population: 512, chunk: 64 },
];

/// `[population, steps]` bytes, the same for both members of a pair.
fn tokens(work: &IntegerWork, device: &Device) -> Tensor<2, Int> {
    let byte = |m: usize, t: usize| ((m / 2 * 7919 + t * 104_729) % 96 + 32) as i32;
    let bytes = (0..work.population).flat_map(|m| (0..work.steps).map(move |t| byte(m, t))).collect::<Vec<_>>();
    Tensor::from_data(TensorData::new(bytes, [work.population, work.steps]), device)
}

fn evaluate(
    population: &Population,
    model: &EggModel,
    tokens: &Tensor<2, Int>,
    state: EggState,
) -> (Fitness, EggState) {
    let [_, steps] = tokens.dims();
    population.evaluate_with_state(state, |members: &MemberChunk, state| {
        let (logits, state) = model.forward(members.rows(tokens.clone()), state);
        let rows = members.count() * steps;
        let [_, _, vocab] = logits.dims();
        let targets = members.rows(tokens.clone()).reshape([rows]);
        (log_likelihood(logits.reshape([rows, vocab]), targets, members.count(), Rounding::Floor), state)
    })
}

fn generations(c: &mut Criterion) {
    let device = Device::flex();
    let mut group = c.benchmark_group("integer");
    for work in &CELLS {
        let name = format!("width{}-layers{}-seq{}-N{}", work.width, work.layers, work.steps, work.population);
        let config = EggModelConfig::new().with_width(work.width).with_layers(work.layers);
        let mut model = config.init(&device);
        let tokens = tokens(work, &device);
        let strategy = EvolutionStrategyConfig::integer(QEggrollConfig::new())
            .with_population_size(work.population)
            .with_chunk_size(work.chunk)
            .try_init(&model);
        let mut strategy = strategy.expect("a valid configuration");
        let mut state = model.initial_state(work.population);
        group.throughput(Throughput::Elements((work.population * work.steps) as u64));
        group.bench_function(BenchmarkId::new("generation", &name), |b| {
            b.iter(|| {
                let population = strategy.ask();
                let (fitness, next) = evaluate(&population, &model, &tokens, state.clone());
                state = next;
                strategy.tell(&mut model, population, fitness).expect("a valid generation");
            });
        });
        let population = strategy.ask();
        group.bench_function(BenchmarkId::new("evaluate", &name), |b| {
            b.iter(|| evaluate(&population, &model, &tokens, state.clone()));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(std::time::Duration::from_millis(500));
    targets = generations
}
criterion_main!(benches);
