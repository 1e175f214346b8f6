//! The convolutional network: eggroll's convolutions on the image, then linear layers.

use crate::args::Settings;
use crate::classifier::{self, Classifier};
use crate::data::{CLASSES, Dataset, Images, Scale};
use crate::model;
use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use eggroll::nn::{Conv2d, Conv2dConfig, Linear, LinearConfig};
use eggroll::prelude::*;

/// Convolutions with rectified linear units, then a perceptron on all their channels and positions.
#[derive(Module, Debug)]
pub struct Cnn {
    convolutions: Vec<Conv2d>,
    layers: Vec<Linear>,
    /// Rows and columns of an image.
    shape: [usize; 2],
}

impl Cnn {
    /// Logits of images: `[rows, pixels]` to `[rows, 10]`, or `[members · rows, 10]` inside `evaluate`.
    pub fn forward(&self, images: Tensor<2>) -> Tensor<2> {
        let ([rows, _], [height, width]) = (images.dims(), self.shape);
        let (first, rest) = self.convolutions.split_first().expect("at least one convolution");
        let x = relu(first.forward_shared(images.reshape([rows, 1, height, width])));
        let x = rest.iter().fold(x, |x, convolution| relu(convolution.forward(x))); // [members · rows, channels, height', width']
        let (last, hidden) = self.layers.split_last().expect("at least one layer");
        last.forward(hidden.iter().fold(x.flatten(1, 3), |x, layer| relu(layer.forward(x))))
    }
}

impl Classifier for Cnn {
    type Data = Dataset;

    fn new(shape: [usize; 2], settings: &Settings, device: &Device) -> Result<Self, String> {
        let convolutions = &settings.convolutions;
        let shapes = convolutions.shapes(shape)?;
        let channels: Vec<usize> = [1].iter().chain(&convolutions.channels).copied().collect();
        let convolution = |pair: &[usize]| {
            let config = Conv2dConfig::new([pair[0], pair[1]], [convolutions.kernel; 2]);
            config.with_stride([convolutions.stride; 2]).init(device)
        };
        let seen = channels[channels.len() - 1] * shapes[shapes.len() - 1].iter().product::<usize>();
        let widths: Vec<usize> = [seen].iter().chain(&settings.hidden).chain(&[CLASSES]).copied().collect();
        Ok(Self {
            convolutions: channels.windows(2).map(convolution).collect(),
            layers: widths.windows(2).map(|pair| LinearConfig::new(pair[0], pair[1]).init(device)).collect(),
            shape,
        })
    }

    fn data(images: &Images, scale: Scale, device: &Device) -> Dataset {
        Dataset::new(images, scale, device)
    }

    fn fitness(&self, population: &Population, batch: &Dataset) -> Fitness {
        classifier::likelihood(population, batch, |images| self.forward(images))
    }

    fn accuracy(&self, data: &Dataset) -> f64 {
        model::accuracy(data, |images| self.forward(images))
    }
}
