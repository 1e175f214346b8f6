//! A network that PyTorch trained on 6,000 digits learns further from its accuracy, a score without gradient. burn-onnx makes Burn
//! code of its ONNX file at build time; nothing of that code changes. `cargo run --release --manifest-path examples/onnx/Cargo.toml`.

use eggroll::prelude::*;
use eggroll_onnx::{Digits, perceptron::Model};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex();
    let train = Digits::read("train", 6_000..60_000, &device)?; // PyTorch has seen the images before
    let test = Digits::read("t10k", 0..10_000, &device)?;
    for seed in 0..3 {
        device.seed(seed);
        let mut model = Model::from_embedded(&device);
        let before = test.accuracy(model.forward(test.images.clone()));
        let graph = PopulationGraph::trace(&model, train.sample(2).images, Model::forward)?;
        let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_seed(seed);
        let mut strategy =
            config.with_population_size(256).with_sigma(0.02).with_learning_rate(0.005).try_init(&model)?;
        for _ in 0..200 {
            let batch = train.sample(512);
            let population = strategy.ask();
            let fitness = population.evaluate(|members| {
                let logits = graph.forward_shared(&model, batch.images.clone()); // [members · 512, 10]
                members.accuracy(logits, batch.labels.clone())
            });
            strategy.tell(&mut model, population, fitness)?;
        }
        let after = test.accuracy(model.forward(test.images.clone()));
        println!("seed {seed}: test accuracy {before:.2} % before, {after:.2} % after");
    }
    Ok(())
}
