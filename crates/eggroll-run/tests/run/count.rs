//! Counting: `tokens[i] = i mod 16`, learned to the last token by integer-only evolution.

use burn::tensor::Device;
use eggroll_core::QEggrollConfig;
use eggroll_core::ops::integer::log_likelihood;
use eggroll_nn::integer::{EggModel, EggModelConfig, EggState};
use eggroll_run::text::{ByteStreams, Text};
use eggroll_train::{EvolutionStrategyConfig, MemberChunk};
use std::path::Path;

const MODULUS: u8 = 16;
const POPULATION: usize = 256;
const STEPS: usize = 32;
/// Six times what the slowest of 24 seeds took.
const LIMIT: u64 = 300;

/// Streams over many rounds of a sequence of 16 tokens.
fn streams(folder: &Path, name: &str, token: impl Fn(u8) -> u8) -> ByteStreams {
    let path = folder.join(name);
    let tokens: Vec<u8> = (0..63 * u32::from(MODULUS)).map(|i| token((i % u32::from(MODULUS)) as u8)).collect();
    std::fs::write(&path, tokens).expect("writes");
    ByteStreams::new(Text::read(&path).expect("opens"), POPULATION / 2, STEPS).expect("streams")
}

/// Share of next tokens for which the plain model has the largest logit.
fn accuracy(model: &EggModel, streams: &ByteStreams) -> f64 {
    let batch = streams.batch(0, 1, &model.head.weight.device());
    let (logits, _) = model.forward(batch.inputs, model.initial_state(streams.streams()));
    let (guesses, targets) = (logits.argmax(2).into_data(), batch.targets.into_data());
    let right = guesses.iter::<i64>().zip(targets.iter::<i64>()).filter(|(guess, target)| guess == target);
    right.count() as f64 / (streams.streams() * STEPS) as f64
}

/// Trains until all next tokens are right or the limit is reached.
fn learn(seed: u64, streams: &ByteStreams) -> EggModel {
    let device = Device::flex();
    device.seed(seed);
    let config = EggModelConfig::new().with_vocab(usize::from(MODULUS)).with_layers(1).with_width(32);
    let mut model = config.init(&device);
    let noiser = QEggrollConfig::new().with_threshold(4.0, 100);
    let config =
        EvolutionStrategyConfig::integer(noiser).with_population_size(POPULATION).with_chunk_size(32).with_seed(seed);
    let mut strategy = config.try_init(&model).expect("a strategy");
    let mut state = model.initial_state(POPULATION);
    while strategy.generation() < LIMIT && accuracy(&model, streams) < 1.0 {
        let population = strategy.ask();
        let batch = streams.batch(population.generation(), 2, &device);
        let score = |members: &MemberChunk, state: EggState| {
            let (logits, state) = model.forward(members.rows(batch.inputs.clone()), state);
            let targets = members.rows(batch.targets.clone()).flatten::<1>(0, 1);
            (log_likelihood(logits.flatten::<2>(0, 1), targets, members.count()), state)
        };
        let (fitness, next) = population.evaluate_with_state(state, score);
        state = next;
        strategy.tell(&mut model, population, fitness).expect("a generation");
    }
    model
}

#[test]
fn counts_without_a_mistake() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = streams(folder.path(), "up", |i| i);
    let down = streams(folder.path(), "down", |i| MODULUS - 1 - i);
    for seed in 0..3 {
        let model = learn(seed, &up);
        assert_eq!(accuracy(&model, &up), 1.0, "seed {seed}");
        // What it has learned is this sequence: the same measure fails on another.
        assert!(accuracy(&model, &down) < 0.2, "seed {seed}: {}", accuracy(&model, &down));
    }
}
