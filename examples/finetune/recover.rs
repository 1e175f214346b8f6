//! The recovery: accuracy on mini-batches as fitness, the damage applied to every member.

use crate::args::FinetuneArgs;
use crate::damage::Damage;
use burn::tensor::Device;
use eggroll_examples::Failure;
use eggroll_examples::digits::{Batches, Dataset, DigitsMlp, Images, PixelScale};
use eggroll_examples::interrupt::Signals;
use std::time::Instant;

/// What the recovery works on.
pub struct Recovery<'a> {
    pub args: &'a FinetuneArgs,
    pub train: &'a Images,
    pub test: &'a Dataset,
    pub scale: PixelScale,
    pub damage: &'a Damage,
    pub device: &'a Device,
    pub signals: &'a Signals,
}

impl Recovery<'_> {
    /// Trains the weights behind the damage: what the network computes with is `damage.apply` of them, always. Also
    /// returns how many generations there were before a signal came.
    pub fn run(&self, mut model: DigitsMlp) -> Result<(DigitsMlp, u64), Failure> {
        let args = self.args;
        let mut strategy = args.strategy().try_init(&model)?;
        println!("{}\ngeneration  seconds  batch accuracy  test accuracy", strategy.parameter_summary());
        let mut batches = Batches::new(args.seed, self.train.len(), args.batch, 0);
        let (start, every) = (Instant::now(), (args.generations / 10).max(1));
        for generation in 0..args.generations {
            if self.signals.came() {
                return Ok((model, generation));
            }
            let batch = Dataset::new(&self.train.select(&batches.samples(generation)), self.scale, self.device);
            // A member's noise is in its weights before they are damaged: no perturbed layer does that.
            let score = |member: DigitsMlp| self.damage.apply(member).accuracy(&batch) as f32;
            let population = strategy.ask();
            let fitness = population.evaluate_each(&model, score);
            let report = strategy.tell(&mut model, population, fitness)?;
            let done = generation + 1;
            if done.is_multiple_of(every) || done == args.generations {
                let (batch, test) =
                    (100.0 * report.fitness_mean, 100.0 * self.damage.apply(model.clone()).accuracy(self.test));
                println!("{done:>10} {:>8.1} {batch:>13.2} % {test:>12.2} %", start.elapsed().as_secs_f64());
            }
        }
        Ok((model, args.generations))
    }
}
