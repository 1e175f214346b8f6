//! Training: a generation at a time, for as long as the page wants.

use crate::digits::{Digits, DigitsError, images};
use crate::drawing::centered;
use crate::network::{CLASSES, Network};
use burn::lr_scheduler::exponential::ExponentialLrSchedulerConfig;
use eggroll::prelude::*;
use eggroll::train::MuonAdamWConfig;

/// Images of a mini-batch.
const BATCH: usize = 64;
/// Noise scale.
const SIGMA: f64 = 0.02;
/// Learning rate of the first generation, and its factor from one to the next.
const RATE: [f64; 2] = [0.01, 0.998];

/// What goes wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// In the file of digits.
    #[error(transparent)]
    Digits(#[from] DigitsError),
    /// In training.
    #[error(transparent)]
    Training(#[from] eggroll::Error),
}

/// A network and its evolution strategy.
pub struct Trainer {
    device: Device,
    train: Digits,
    /// Images and labels that are not learned from.
    test: (Tensor<2>, Tensor<1, Int>),
    network: Network,
    strategy: EvolutionStrategy,
}

fn config(population: usize) -> EvolutionStrategyConfig {
    let [rate, factor] = RATE;
    EvolutionStrategyConfig::new(EggrollConfig::new(), MuonAdamWConfig::new())
        .with_population_size(population)
        .with_sigma(SIGMA)
        .with_learning_rate(ExponentialLrSchedulerConfig::new(rate, factor))
}

impl Trainer {
    /// A network with random weights, on [a file of digits](Digits::read).
    ///
    /// # Errors
    ///
    /// [`Error`] if the file is damaged, or the population is not even.
    pub fn new(file: &[u8], population: usize) -> Result<Self, Error> {
        let device = Device::flex();
        let [train, test] = Digits::read(file)?;
        let network = Network::new(&device);
        let strategy = config(population).try_init(&network).map_err(eggroll::Error::from)?;
        let test = test.all(&device);
        Ok(Self { device, train, test, network, strategy })
    }

    /// Generations that are done.
    pub fn generation(&self) -> u64 {
        self.strategy.generation()
    }

    /// The next generation: returns the members' mean log-likelihood of a label, in nats.
    ///
    /// # Errors
    ///
    /// [`Error`] if training is impossible, which no population makes it.
    pub fn step(&mut self) -> Result<f64, Error> {
        let (images, labels) = self.train.batch(BATCH, self.generation(), &self.device);
        let population = self.strategy.ask();
        let fitness = population.evaluate(|members| {
            let logits = self.network.forward(images.clone()); // [members · batch, 10]
            -members.row_cross_entropy(logits, labels.clone()) // [members, batch]: weights learn from every image's score
        });
        let report = self.strategy.tell(&mut self.network, population, fitness).map_err(eggroll::Error::from)?;
        Ok(report.fitness_mean)
    }

    /// Continues with another number of members.
    ///
    /// # Errors
    ///
    /// [`Error`] if the population is not even.
    pub fn set_population(&mut self, population: usize) -> Result<(), Error> {
        let strategy = config(population).try_init(&self.network).map_err(eggroll::Error::from)?;
        self.strategy = strategy.load_record(self.strategy.to_record());
        Ok(())
    }

    /// The share of test images that the network reads.
    pub fn accuracy(&self) -> f64 {
        let (images, labels) = self.test.clone();
        let count = labels.dims()[0];
        let read = self.network.forward(images).argmax(1).reshape([count]);
        let right: i64 = read.equal(labels).int().sum().into_scalar();
        right as f64 / count as f64
    }

    /// The probability of each digit for [a drawing](centered).
    pub fn read(&self, ink: &[u8], width: usize) -> [f32; CLASSES] {
        let logits = self.network.forward(images(&centered(ink, width), &self.device));
        let probabilities: Vec<f32> = activation::softmax(logits, 1).into_data().try_to_vec().expect("floats");
        probabilities.try_into().expect("ten digits")
    }
}
