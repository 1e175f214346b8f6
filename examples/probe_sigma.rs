//! Which sigma? `cargo run --release --example probe_sigma` probes a network on MNIST, before and after some training, with the likelihood
//! and with the accuracy as score, and draws `probe_sigma.svg`. Arguments are generations of training and the file to draw.

use eggroll::prelude::*;
use eggroll_examples::chart::{Picture, grid, sigma_probe};
use eggroll_examples::digits::{Batches, Dataset, DigitsMlp, Images};

const SIGMAS: [f64; 9] = [1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0];

fn likelihood(population: &Population, model: &DigitsMlp, batch: &Dataset) -> Fitness {
    population.evaluate(|members| -members.cross_entropy(model.forward(batch.images.clone()), batch.labels.clone()))
}

fn accuracy(population: &Population, model: &DigitsMlp, batch: &Dataset) -> Fitness {
    population.evaluate(|members| members.accuracy(model.forward(batch.images.clone()), batch.labels.clone()))
}

fn main() -> Result<(), eggroll_examples::Failure> {
    let mut arguments = std::env::args().skip(1);
    let generations: u64 = arguments.next().map_or(Ok(300), |count| count.parse())?;
    let file = arguments.next().unwrap_or_else(|| "probe_sigma.svg".to_owned());

    let device = Device::flex();
    device.seed(0);
    let images = Images::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/mnist").as_ref(), "train")?;
    let mut batches = Batches::new(0, images.len(), 128, 0);
    let mut batch = |generation| Dataset::new(&images.select(&batches.samples(generation)), images.scale(), &device);
    let mut model = DigitsMlp::new(784, &[64], &device);
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new());
    let mut strategy = config.with_population_size(512).with_learning_rate(0.01).try_init(&model)?;

    let mut pictures = Vec::new();
    for end in [0, generations] {
        while strategy.generation() < end {
            let (population, batch) = (strategy.ask(), batch(strategy.generation()));
            let fitness = likelihood(&population, &model, &batch);
            strategy.tell(&mut model, population, fitness)?;
        }
        let batch = batch(end);
        for (score, evaluate) in [("likelihood", likelihood as fn(&_, &_, &_) -> _), ("accuracy", accuracy)] {
            let probe = strategy.probe_sigma(&model, SIGMAS, |population| evaluate(population, &model, &batch))?;
            println!("after {end} generations, score: {score}\n{probe}");
            pictures.push(sigma_probe(&format!("{score}, {end}"), &probe));
        }
    }
    grid(pictures, 1).write(&file)?;
    println!("drawn: {file}");
    Ok(())
}
