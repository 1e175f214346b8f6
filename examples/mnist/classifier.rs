//! What the training loop needs of a network, whatever numbers it computes with.

use crate::evolution::likelihood;
use crate::settings::MnistSettings;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use eggroll::prelude::*;
use eggroll_examples::digits::{Dataset, DigitsMlp, Images, PixelScale};

/// A network that tells digits apart.
pub trait Classifier: Module {
    /// Images with labels, in the form that the network reads.
    type Data;

    /// A network with random weights for images of `shape`.
    fn new(shape: [usize; 2], settings: &MnistSettings, device: &Device) -> Result<Self, String>;

    /// Moves images to a device.
    fn data(images: &Images, scale: PixelScale, device: &Device) -> Self::Data;

    /// The fitness of a population on a mini-batch, or on every image of it if its scores are floats.
    fn fitness(&self, population: &Population, batch: &Self::Data) -> Fitness;

    /// Share of images whose largest logit is the label's.
    fn accuracy(&self, data: &Self::Data) -> f64;

    /// Weights of a first layer that sees whole images, `[pixels, units]`.
    fn first_layer(&self) -> Option<Tensor<2>> {
        None
    }
}

impl Classifier for DigitsMlp {
    type Data = Dataset;

    fn new([height, width]: [usize; 2], settings: &MnistSettings, device: &Device) -> Result<Self, String> {
        Ok(Self::new(height * width, &settings.hidden, device))
    }

    fn data(images: &Images, scale: PixelScale, device: &Device) -> Dataset {
        Dataset::new(images, scale, device)
    }

    fn fitness(&self, population: &Population, batch: &Dataset) -> Fitness {
        likelihood(population, batch, |images| self.forward(images))
    }

    fn accuracy(&self, data: &Dataset) -> f64 {
        self.accuracy(data)
    }

    fn first_layer(&self) -> Option<Tensor<2>> {
        Some(self.first_layer())
    }
}
