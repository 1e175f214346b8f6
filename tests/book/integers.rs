//! Training in integers only.

use eggroll::nn::integer::{Linear, LinearConfig};
use eggroll::nn::integer::{integer_type, log_likelihood};
use eggroll::prelude::*;

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
            log_likelihood(logits, target, members.count()) // [members]
        });
        strategy.tell(&mut model, population, fitness)?; // every weight moves by −1, 0 or +1
    }
    Ok(model)
}
// ANCHOR_END: train

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
