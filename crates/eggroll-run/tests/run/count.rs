//! Counting, learned by integers alone: `tokens[i] = i mod 16` to the last token, and the digits of numbers.

use burn::tensor::Device;
use eggroll_core::QEggrollConfig;
use eggroll_core::integer::VoteLevels;
use eggroll_core::ops::integer::{Rounding, log_likelihood};
use eggroll_nn::integer::{EggModel, EggModelConfig, EggState};
use eggroll_run::text::{Alphabet, ByteStatistics, ByteStreams, Text, bits_per_byte};
use eggroll_train::{EvolutionStrategy, EvolutionStrategyConfig, IntegerAdamWConfig, MemberChunk};
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

/// One generation, a stream for each pair; returns the states of the members.
fn step(strategy: &mut EvolutionStrategy, model: &mut EggModel, streams: &ByteStreams, state: EggState) -> EggState {
    let population = strategy.ask();
    let batch = streams.batch(population.generation(), 2, &model.head.weight.device());
    let score = |members: &MemberChunk, state: EggState| {
        let (logits, state) = model.forward(members.rows(batch.inputs.clone()), state);
        let targets = members.rows(batch.targets.clone()).flatten::<1>(0, 1);
        (log_likelihood(logits.flatten::<2>(0, 1), targets, members.count(), Rounding::Floor), state)
    };
    let (fitness, state) = population.evaluate_with_state(state, score);
    strategy.tell(model, population, fitness).expect("a generation");
    state
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
        state = step(&mut strategy, &mut model, streams, state);
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

/// "0 1 2 … 99 0 1 …": what comes after a digit depends on the digits before it.
#[test]
fn counts_numbers_beyond_bigrams() {
    const MEMBERS: usize = 512;
    const GENERATIONS: u64 = 400;
    let device = Device::flex();
    let round: String = (0..100).map(|number| format!("{number} ")).collect();
    let alphabet = Alphabet::of(round.as_bytes());
    let text = Text::from_bytes(alphabet.encode(round.repeat(30).as_bytes())).expect("a text");
    let (bigrams, backwards) = (ByteStatistics::new(&text).bigram_entropy(), text.iter().rev().copied());
    let backwards: Vec<u8> = backwards.take(5000).collect();
    let streams = ByteStreams::new(text.clone(), MEMBERS / 2, 16).expect("streams");
    for seed in 0..3 {
        device.seed(seed);
        let config = EggModelConfig::new().with_vocab(alphabet.tokens()).with_layers(1).with_width(32);
        let mut model = config.init(&device);
        let noiser = QEggrollConfig::new().with_levels(VoteLevels::Five).with_sigma_shift(3);
        let config = EvolutionStrategyConfig::new(noiser, IntegerAdamWConfig::new())
            .with_population_size(MEMBERS)
            .with_chunk_size(32)
            .with_seed(seed);
        let mut strategy = config.try_init(&model).expect("a strategy");
        let mut state = model.initial_state(MEMBERS);
        while strategy.generation() < GENERATIONS {
            strategy.set_learning_rate(1.0 - strategy.generation() as f64 / GENERATIONS as f64).expect("a rate");
            state = step(&mut strategy, &mut model, &streams, state);
        }
        let bits = bits_per_byte(&model, &text[..5000], 8).exact;
        assert!(bits <= 0.5 * bigrams, "seed {seed}: {bits} bits, bigrams {bigrams}");
        // The same measure fails on numbers that are read from right to left.
        let bits = bits_per_byte(&model, &backwards, 8).exact;
        assert!(bits > bigrams, "seed {seed}, backwards: {bits} bits");
    }
}
