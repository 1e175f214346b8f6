//! Points on three spirals, and a network that tells them apart.

use burn::module::Module;
use burn::tensor::activation::tanh;
use burn::tensor::{Device, Int, Tensor, TensorData};
use eggroll::nn::{Linear, LinearConfig};
use eggroll::prelude::*;
use std::f32::consts::TAU;

const SPIRALS: usize = 3;

/// All points, in order.
pub struct Spirals {
    /// `[points, 2]`
    points: Tensor<2>,
    /// `[points]`
    labels: Tensor<1, Int>,
}

impl Spirals {
    pub fn new(count: usize, device: &Device) -> Self {
        let point = |i: usize| {
            let along = (i / SPIRALS) as f32 / count.div_ceil(SPIRALS) as f32;
            let angle = TAU * (along + (i % SPIRALS) as f32 / SPIRALS as f32);
            [(0.2 + along) * angle.cos(), (0.2 + along) * angle.sin()]
        };
        let points: Vec<f32> = (0..count).flat_map(point).collect();
        let labels: Vec<i32> = (0..count).map(|i| (i % SPIRALS) as i32).collect();
        Self {
            points: Tensor::from_data(TensorData::new(points, [count, 2]), device),
            labels: Tensor::from_data(TensorData::new(labels, [count]), device),
        }
    }
}

#[derive(Module, Debug)]
pub struct Classifier {
    first: Linear,
    second: Linear,
    third: Linear,
}

impl Classifier {
    pub fn new(width: usize, device: &Device) -> Self {
        let layer = |d_input, d_output| LinearConfig::new(d_input, d_output).init(device);
        Self { first: layer(2, width), second: layer(width, width), third: layer(width, SPIRALS) }
    }

    /// Logits: `[points, 2]`, shared by all members, to `[members · points, 3]`.
    fn forward(&self, points: Tensor<2>) -> Tensor<2> {
        self.third.forward(tanh(self.second.forward(tanh(self.first.forward_shared(points)))))
    }

    /// The log-likelihood of the labels.
    pub fn fitness(&self, members: &Population, data: &Spirals) -> Fitness {
        members.evaluate(|members| -members.cross_entropy(self.forward(data.points.clone()), data.labels.clone()))
    }

    pub fn accuracy(&self, data: &Spirals) -> f64 {
        let [count] = data.labels.dims();
        let guess = self.forward(data.points.clone()).argmax(1).reshape([count]);
        let hits: i64 = guess.cast(data.labels.dtype()).equal(data.labels.clone()).int().sum().into_scalar();
        hits as f64 / count as f64
    }
}
