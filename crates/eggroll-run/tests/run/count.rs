//! Integers learn a text that has a rule.

use burn::tensor::Device;
use eggroll_core::QEggrollConfig;
use eggroll_core::integer::VoteLevels;
use eggroll_core::ops::integer::log_likelihood;
use eggroll_nn::integer::{EggModelConfig, EggState};
use eggroll_run::text::{Alphabet, ByteStatistics, ByteStreams, Text, bits_per_byte};
use eggroll_train::{EvolutionStrategyConfig, IntegerAdamWConfig, MemberChunk};

/// "0 1 2 … 99 0 1 …": what comes after a digit depends on the digits before it.
#[test]
fn counted_numbers_beyond_bigrams() {
    const MEMBERS: usize = 512;
    const GENERATIONS: u64 = 400;
    let device = Device::flex();
    let round: String = (0..100).map(|number| format!("{number} ")).collect();
    let alphabet = Alphabet::of(round.as_bytes());
    let text = Text::from_bytes(alphabet.encode(round.repeat(30).as_bytes())).expect("a text");
    let bigrams = ByteStatistics::new(&text).bigram_entropy();
    for seed in 0..3 {
        device.seed(seed);
        let vocab = alphabet.tokens();
        let mut model = EggModelConfig::new().with_vocab(vocab).with_layers(1).with_width(32).init(&device);
        let noiser = QEggrollConfig::new().with_levels(VoteLevels::Five).with_sigma_shift(3);
        let mut strategy = EvolutionStrategyConfig::new(noiser, IntegerAdamWConfig::new())
            .with_population_size(MEMBERS)
            .with_chunk_size(32)
            .with_seed(seed)
            .try_init(&model)
            .expect("a strategy");
        let streams = ByteStreams::new(text.clone(), MEMBERS / 2, 16).expect("streams");
        let mut state = model.initial_state(MEMBERS);
        while strategy.generation() < GENERATIONS {
            strategy.set_learning_rate(1.0 - strategy.generation() as f64 / GENERATIONS as f64).expect("a rate");
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
        let bits = bits_per_byte(&model, &text[..5000], 8).exact;
        println!("seed {seed}: {bits:.3} bits, bigrams {bigrams:.3}");
        assert!(bits <= 0.5 * bigrams, "seed {seed}: {bits} bits, bigrams {bigrams}");
    }
}
