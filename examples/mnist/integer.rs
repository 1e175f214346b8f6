//! The network in integers only: int8 pixels, weights and activations, int32 sums.

use crate::classifier::Classifier;
use crate::settings::MnistSettings;
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use eggroll::core::ops::integer::{Rounding, integer_type, log_likelihood};
use eggroll::nn::integer::{Linear, LinearConfig};
use eggroll::prelude::*;
use eggroll_examples::digits::{CLASSES, Images, PixelScale};

/// Rows that are evaluated at a time outside training.
const EVALUATION_ROWS: usize = 1000;

/// Multilayer perceptron of int8 weights, without biases: rectified units, and products that are divided and clipped to
/// ±127.
#[derive(Module, Debug)]
pub struct IntegerMlp {
    layers: Vec<Linear>,
}

/// Quantized images on a device.
#[derive(Clone, Debug)]
pub struct IntegerDataset {
    /// `[count, pixels]`, 0 to 127
    images: Tensor<2, Int>,
    /// `[count]`
    labels: Tensor<1, Int>,
}

impl IntegerDataset {
    /// Halves the pixels, which then fit into int8, and moves them to a device. The background stays 0: noise in weights of
    /// pixels that are always background changes nothing.
    pub fn new(images: &Images, device: &Device) -> Self {
        let count = images.len();
        let pixels: Vec<i8> = images.pixels.iter().map(|pixel| (pixel >> 1) as i8).collect();
        let labels: Vec<i32> = images.labels.iter().map(|label| i32::from(*label)).collect();
        let kind = (device, integer_type(device));
        Self {
            images: Tensor::from_data(TensorData::new(pixels, [count, images.size()]), kind),
            labels: Tensor::from_data(TensorData::new(labels, [count]), device),
        }
    }
}

impl IntegerMlp {
    /// Logits of images in sixteenths of a bit: `[rows, pixels]` to `[rows, 10]`; inside `evaluate`
    /// `[members · rows, pixels]`, member-major, to `[members · rows, 10]`.
    pub fn forward(&self, images: Tensor<2, Int>) -> Tensor<2, Int> {
        let (first, rest) = self.layers.split_first().expect("at least one layer");
        rest.iter().fold(first.forward(images), |x, layer| layer.forward(x.clamp_min(0)))
    }
}

impl Classifier for IntegerMlp {
    type Data = IntegerDataset;

    fn new([height, width]: [usize; 2], settings: &MnistSettings, device: &Device) -> Result<Self, String> {
        let widths: Vec<usize> = [height * width].iter().chain(&settings.hidden).chain(&[CLASSES]).copied().collect();
        let layer = |pair: &[usize]| LinearConfig::new(pair[0], pair[1]).init(device);
        Ok(Self { layers: widths.windows(2).map(layer).collect() })
    }

    fn data(images: &Images, _scale: PixelScale, device: &Device) -> IntegerDataset {
        IntegerDataset::new(images, device)
    }

    /// The log-likelihood of every image's label in sixteenths of a bit, for every member.
    fn fitness(&self, population: &Population, batch: &IntegerDataset) -> Fitness {
        population.evaluate(|members| {
            let logits = self.forward(members.repeat(batch.images.clone())); // [members · batch, 10]
            let labels = members.repeat(batch.labels.clone()); // [members · batch]
            let [rows] = labels.dims();
            let scores = log_likelihood(logits, labels, rows, Rounding::Floor);
            scores.reshape([members.count(), rows / members.count()])
        })
    }

    fn accuracy(&self, data: &IntegerDataset) -> f64 {
        let [count] = data.labels.dims();
        let mut right = 0;
        for start in (0..count).step_by(EVALUATION_ROWS) {
            let rows = start..(start + EVALUATION_ROWS).min(count);
            let guess = self.forward(data.images.clone().slice(rows.clone())).argmax(1); // [rows, 1]
            let labels = data.labels.clone().slice(rows.clone());
            let guess = guess.reshape([rows.len()]).cast(labels.dtype());
            let hits: i64 = guess.equal(labels).int().sum().into_scalar();
            right += hits;
        }
        right as f64 / count as f64
    }
}
