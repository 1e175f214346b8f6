//! The network: a multilayer perceptron of eggroll's linear layers.

use super::data::{CLASSES, Dataset};
use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use eggroll::nn::{Linear, LinearConfig};

/// Rows that are evaluated at a time.
const EVALUATION_ROWS: usize = 1000;

/// Multilayer perceptron with rectified linear units.
#[derive(Module, Debug)]
pub struct DigitsMlp {
    layers: Vec<Linear>,
}

impl DigitsMlp {
    /// A network of the given hidden widths.
    pub fn new(inputs: usize, hidden: &[usize], device: &Device) -> Self {
        let widths: Vec<usize> = [inputs].iter().chain(hidden).chain(&[CLASSES]).copied().collect();
        let layer = |pair: &[usize]| LinearConfig::new(pair[0], pair[1]).init(device);
        Self { layers: widths.windows(2).map(layer).collect() }
    }

    /// Logits of images: `[rows, pixels]` to `[rows, 10]`, or `[members · rows, 10]` inside `evaluate`.
    pub fn forward(&self, images: Tensor<2>) -> Tensor<2> {
        let (first, rest) = self.layers.split_first().expect("at least one layer");
        rest.iter().fold(first.forward_shared(images), |x, layer| layer.forward(relu(x)))
    }

    /// Weights of the first layer, `[pixels, units]`.
    pub fn first_layer(&self) -> Tensor<2> {
        self.layers[0].weight.val()
    }

    /// Share of images whose largest logit is the label's.
    pub fn accuracy(&self, data: &Dataset) -> f64 {
        accuracy(data, |images| self.forward(images))
    }
}

/// Share of images whose largest logit is the label's.
pub fn accuracy(data: &Dataset, logits: impl Fn(Tensor<2>) -> Tensor<2>) -> f64 {
    let count = data.len();
    let mut right = 0;
    for start in (0..count).step_by(EVALUATION_ROWS) {
        let rows = start..(start + EVALUATION_ROWS).min(count);
        let guess = logits(data.images.clone().slice(rows.clone())).argmax(1);
        let labels = data.labels.clone().slice(rows.clone());
        let hits: i64 = guess.reshape([rows.len()]).equal(labels).int().sum().into_scalar();
        right += hits;
    }
    right as f64 / count as f64
}
