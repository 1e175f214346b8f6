//! The network: a perceptron with one hidden layer.

use crate::digits::PIXELS;
use eggroll::prelude::*;

/// Digits.
pub(crate) const CLASSES: usize = 10;
/// Units of the hidden layer.
const HIDDEN: usize = 64;

/// Two layers with a rectified linear unit between them.
#[derive(Module, Debug)]
pub struct Network {
    hidden: nn::Linear,
    output: nn::Linear,
}

impl Network {
    /// A network with random weights.
    pub fn new(device: &Device) -> Self {
        Self {
            hidden: nn::LinearConfig::new(PIXELS, HIDDEN).init(device),
            output: nn::LinearConfig::new(HIDDEN, CLASSES).init(device),
        }
    }

    /// Logits of images: `[rows, 784]` to `[rows, 10]`, or `[members · rows, 10]` inside `evaluate`.
    pub fn forward(&self, images: Tensor<2>) -> Tensor<2> {
        self.output.forward(activation::relu(self.hidden.forward_shared(images)))
    }
}
