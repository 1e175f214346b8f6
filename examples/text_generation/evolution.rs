//! Burn's text-generation example on Shakespeare, learned by evolution strategies (`cargo run --release --example text_generation`) and by
//! backpropagation (`cargo run --release --example text_generation_backpropagation`): two files that differ in five lines. An argument is
//! a number of batches.

mod data;
mod model;

use data::{STEPS, Shakespeare, TextBatch};
use eggroll::prelude::*;
use model::TextGenerationModelConfig;

fn main() -> Result<(), eggroll_examples::Failure> {
    let batches: usize = std::env::args().nth(1).map_or(Ok(1201), |count| count.parse())?;
    let device = Device::flex();
    let text = Shakespeare::load(&device)?;
    let mut model = TextGenerationModelConfig::new(text.vocab_size, STEPS).init(&device);
    let mut strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).try_init(&model)?;
    for (step, batch) in text.train.iter().take(batches).enumerate() {
        let TextBatch { inputs: x, targets: y } = batch?;
        if step % 200 == 0 {
            println!("{step} batches: {:.3} bits a character", text.bits(&model));
        }
        let population = strategy.ask();
        let scores = population.evaluate(|m| -m.token_cross_entropy(model.forward(m.repeat(x.clone())), y.clone()));
        strategy.tell(&mut model, population, scores)?;
    }
    Ok(())
}
