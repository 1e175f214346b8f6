//! The convolutional network: eggroll's convolutions on the image, then linear layers.

use crate::classifier::Classifier;
use crate::evolution;
use crate::settings::MnistSettings;
use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use eggroll::nn::{Conv2d, Conv2dConfig, Linear, LinearConfig};
use eggroll::prelude::*;
use eggroll_examples::digits::{self, CLASSES, Dataset, Images, PixelScale};
use serde::{Deserialize, Serialize};

/// The settings of the cnn alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConvolutionSettings {
    pub channels: Vec<usize>,
    pub kernel: usize,
    pub stride: usize,
}

impl Default for ConvolutionSettings {
    fn default() -> Self {
        Self { channels: vec![32], kernel: 9, stride: 5 }
    }
}

impl ConvolutionSettings {
    /// Rows and columns that leave each of the convolutions, for images of `shape`.
    pub fn shapes(&self, shape: [usize; 2]) -> Result<Vec<[usize; 2]>, String> {
        let Self { channels, kernel, stride } = self;
        if channels.is_empty() || channels.contains(&0) || *kernel == 0 || *stride == 0 {
            return Err(format!(
                "convolutions of {channels:?} channels, kernel {kernel}, stride {stride}: a size is 0"
            ));
        }
        let mut shapes = vec![shape];
        for _ in channels {
            let [height, width] = shapes[shapes.len() - 1];
            if height.min(width) < *kernel {
                return Err(format!("a kernel of {kernel} pixels does not fit {height} by {width} (of {shape:?})"));
            }
            shapes.push([height, width].map(|length| (length - kernel) / stride + 1));
        }
        Ok(shapes.split_off(1))
    }
}

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
        let x = first.forward_shared(images.reshape([rows, 1, height, width]));
        let x = rest.iter().fold(x, |x, convolution| convolution.forward(relu(x))); // [members · rows, channels, height', width']
        // Channels last, as convolutions of a population leave them in memory: a linear layer takes them in any order.
        let x = x.permute([0, 2, 3, 1]).flatten::<2>(1, 3);
        self.layers.iter().fold(x, |x, layer| layer.forward(relu(x)))
    }
}

impl Classifier for Cnn {
    type Data = Dataset;

    fn new(shape: [usize; 2], settings: &MnistSettings, device: &Device) -> Result<Self, String> {
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

    fn data(images: &Images, scale: PixelScale, device: &Device) -> Dataset {
        Dataset::new(images, scale, device)
    }

    fn fitness(&self, population: &Population, batch: &Dataset) -> Fitness {
        evolution::likelihood(population, batch, |images| self.forward(images))
    }

    fn accuracy(&self, data: &Dataset) -> f64 {
        digits::accuracy(data, |images| self.forward(images))
    }
}
