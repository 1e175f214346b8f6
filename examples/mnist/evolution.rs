//! The evolution strategy of this example: its configuration and its score. All else is data, networks, and the command line.
//!
//! `train.rs` gives both to `EsTraining`, whose loop is, in short:
//!
//! ```text
//! let mut strategy = settings.strategy().try_init(&model)?;
//! for batch in batches {
//!     let population = strategy.ask();
//!     let fitness = likelihood(&population, &batch, |images| model.forward(images));
//!     strategy.tell(&mut model, population, fitness)?;
//! }
//! ```

use crate::settings::MnistSettings;
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use eggroll::prelude::*;
use eggroll_examples::digits::Dataset;

/// Members in a chunk of q-eggroll on one core: their images fit its cache.
const INTEGER_CHUNK: usize = 32;

/// Log-likelihood of every image's label in nats, for every member: weights learn from each image's own score.
pub fn likelihood(population: &Population, batch: &Dataset, logits: impl Fn(Tensor<2>) -> Tensor<2> + Sync) -> Fitness {
    population.evaluate(|members| {
        let logits = logits(batch.images.clone()); // [members · batch, 10]
        -members.row_cross_entropy(logits, batch.labels.clone()) // [members, batch]
    })
}

impl MnistSettings {
    /// The strategy's configuration.
    pub fn strategy(&self) -> EvolutionStrategyConfig {
        let (noiser, generations) = (self.noiser(), self.generations);
        let integers = matches!(noiser, NoiserConfig::QEggroll(_));
        let strategy = EvolutionStrategyConfig::new(noiser, self.optimizer());
        let strategy = if self.relative { strategy.in_relative_units() } else { strategy };
        let strategy = strategy
            .with_population_size(self.population)
            .with_learning_rate(CosineAnnealingLrSchedulerConfig::new(self.lr, generations as usize))
            .with_seed(self.seed)
            .with_credit(self.credit);
        if integers {
            return strategy.with_chunk_size(INTEGER_CHUNK);
        }
        let sigma = SigmaSchedule::Cosine { initial: self.sigma, last: self.sigma_end, generations };
        let strategy = strategy.with_sigma(sigma);
        match self.shaping.clone() {
            Some(shaping) => strategy.with_shaping(shaping),
            None => strategy,
        }
    }
}
