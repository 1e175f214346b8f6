//! What the training loop needs of a network, whatever numbers it computes with.

use crate::data::{Dataset, Images, Scale};
use crate::model::Mlp;
use burn::module::Module;
use burn::tensor::Device;
use eggroll::prelude::*;

/// A network that tells digits apart.
pub trait Classifier: Module {
    /// Images with labels, as the network takes them.
    type Data;

    /// A network with random weights, of the given hidden widths.
    fn new(inputs: usize, hidden: &[usize], device: &Device) -> Self;

    /// Moves images to a device.
    fn data(images: &Images, scale: Scale, device: &Device) -> Self::Data;

    /// The fitness of a population on a mini-batch.
    fn fitness(&self, population: &Population, batch: &Self::Data) -> Fitness;

    /// Share of images whose largest logit is the label's.
    fn accuracy(&self, data: &Self::Data) -> f64;
}

impl Classifier for Mlp {
    type Data = Dataset;

    fn new(inputs: usize, hidden: &[usize], device: &Device) -> Self {
        Self::new(inputs, hidden, device)
    }

    fn data(images: &Images, scale: Scale, device: &Device) -> Dataset {
        Dataset::new(images, scale, device)
    }

    /// Mean log-likelihood of the labels in nats.
    fn fitness(&self, population: &Population, batch: &Dataset) -> Fitness {
        population.evaluate_parallel(|members| {
            let logits = self.forward(batch.images.clone()); // [members · batch, 10]
            -members.cross_entropy(logits, batch.labels.clone())
        })
    }

    fn accuracy(&self, data: &Dataset) -> f64 {
        self.accuracy(data)
    }
}
