//! Training in integers only.

use eggroll::core::integer::VoteLevels;
use eggroll::nn::integer::transformer::{Transformer, TransformerConfig, TransformerState};
use eggroll::nn::integer::{Linear, LinearConfig};
use eggroll::nn::integer::{Rounding, integer_type, log_likelihood};
use eggroll::prelude::*;
use eggroll::run::text::{ByteStreams, Text, bits_per_byte};

// ANCHOR: train
fn train(mut model: Linear, device: &Device) -> Result<Linear, eggroll::train::Error> {
    let noiser = QEggrollConfig::new().with_sigma_shift(3);
    let mut strategy = EvolutionStrategyConfig::integer(noiser).with_population_size(64).try_init(&model)?;
    let x = Tensor::<2, Int>::full([1, 16], 16, (device, integer_type(device))); // 16 is 1.0
    for _ in 0..10 {
        let population = strategy.ask();
        let fitness = population.evaluate(|members| {
            let logits = model.forward(members.repeat(x.clone())); // [members, 4], sixteenths of a bit
            let target = Tensor::<1, Int>::full([members.count()], 2, device);
            log_likelihood(logits, target, members.count(), Rounding::Floor) // [members]
        });
        strategy.tell(&mut model, population, fitness)?; // every weight moves by −1, 0 or +1
    }
    Ok(model)
}
// ANCHOR_END: train

// ANCHOR: transformer
fn learn(mut model: Transformer, text: Text, device: &Device) -> Result<Transformer, eggroll::Error> {
    let noiser = QEggrollConfig::new().with_levels(VoteLevels::Five);
    let mut strategy = EvolutionStrategyConfig::integer(noiser).with_population_size(64).try_init(&model)?;
    let streams = ByteStreams::new(text, 32, 16)?; // a stream for each pair, 16 bytes in a generation
    for _ in 0..20 {
        let population = strategy.ask();
        let batch = streams.batch(population.generation(), 2, device);
        let fitness = population.evaluate(|members| {
            let (logits, _) = model.forward(members.rows(batch.inputs.clone()), TransformerState::default());
            let targets = members.rows(batch.targets.clone()).flatten::<1>(0, 1);
            log_likelihood(logits.flatten::<2>(0, 1), targets, members.count(), Rounding::Nearest) // [members], 1/256 bit
        });
        strategy.tell(&mut model, population, fitness)?;
    }
    Ok(model)
}
// ANCHOR_END: transformer

#[test]
fn a_transformer_learns_bytes() {
    let device = Device::flex();
    let text = || Text::from_bytes(b"to be or not to be ".repeat(50)).expect("a text");
    let mut gains: Vec<f64> = (0..3)
        .map(|seed| {
            device.seed(seed);
            let model = TransformerConfig::new().with_layers(1).with_width(16).with_heads(2).init(&device);
            let before = bits_per_byte(&model, &text(), 8).exact;
            let model = learn(model, text(), &device).expect("learns");
            before - bits_per_byte(&model, &text(), 8).exact
        })
        .collect();
    gains.sort_by(f64::total_cmp);
    assert!(gains[1] > 0.5, "the median of three seeds: {gains:?} bits");
}

#[test]
fn adam_adds_votes_up() {
    let model = LinearConfig::new(16, 4).init(&Device::flex());
    // ANCHOR: adam
    let config = EvolutionStrategyConfig::new(QEggrollConfig::new(), IntegerAdamWConfig::new()).with_learning_rate(0.1);
    // ANCHOR_END: adam
    assert!(config.try_init(&model).is_ok());
}

#[test]
fn votes_raise_the_targets_logit() {
    let device = Device::flex();
    let model = LinearConfig::new(16, 4).init(&device);
    let sum = |model: &Linear| -> i64 {
        model.weight.val().slice_dim(1, 2..3).cast(burn::tensor::DType::I32).sum().into_scalar()
    };
    let before = sum(&model);
    let model = train(model, &device).expect("trains");
    assert!(sum(&model) > before, "{before} {}", sum(&model));
}
