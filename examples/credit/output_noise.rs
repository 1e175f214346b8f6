//! Output noise, or node perturbation (Widrow and Lehr 1990; Fiete and Seung 2006): independent noise on every row of every layer's output,
//! all layers at once. The loss of a row credits the noise of the same row.
//!
//! `∂L_t/∂W ≈ x_tᵀ · 1/Q · Σ_q (L⁺_tq − L⁻_tq)/2σ · ε_tq`
//!
//! *Dust* (Q Labs 2026) perturbs one layer at a time. At as many forward passes both have about the same cosine.

use crate::task::{Batch, Network};
use burn::module::Param;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Distribution, Tensor};
use eggroll::core::rng::philox::philox4x32;
use eggroll::prelude::cross_entropy;

/// Normal numbers that are drawn once: a layer's noise begins anywhere in them.
const NUMBERS: usize = 1 << 25;
/// Noise of a layer, relative to its outputs.
const SIGMA: f32 = 0.05;

/// A layer in the pass without noise.
struct Layer {
    weight: Param<Tensor<2>>,
    bias: Option<Param<Tensor<1>>>,
    x: Tensor<2>,
    sigma: f32,
    /// `[pairs · rows, d_output]`
    noise: Tensor<2>,
}

pub struct OutputNoise {
    numbers: Tensor<1>,
    pairs: usize,
    seed: u64,
}

impl OutputNoise {
    pub fn new(pairs: usize, seed: u64) -> Self {
        Device::flex().seed(seed);
        let numbers = Tensor::random([NUMBERS], Distribution::Normal(0.0, 1.0), &Device::flex());
        Self { numbers, pairs, seed }
    }

    fn noise(&self, shape: [usize; 2], step: u64, layer: usize) -> Tensor<2> {
        let size = shape[0] * shape[1];
        let word = philox4x32([step as u32, layer as u32, 0, 0], [self.seed as u32, 0])[0];
        let first = ((u64::from(word) * (NUMBERS - size) as u64) >> 32) as usize;
        self.numbers.clone().slice(first..first + size).reshape(shape)
    }

    /// The gradient of the mean loss of rows.
    pub fn gradients<N: Network>(&self, network: &N, batch: &Batch, step: u64) -> GradientsParams {
        let (rows, pairs) = (batch.labels.dims()[0], self.pairs);
        let mut layers: Vec<Layer> = Vec::new();
        network.logits(batch.inputs.clone(), &mut |layer, x, y| {
            let size = y.clone().square().mean().sqrt().into_scalar::<f32>();
            let noise = self.noise([pairs * rows, y.dims()[1]], step, layers.len());
            let (weight, bias) = (layer.weight.clone(), layer.bias.clone());
            layers.push(Layer { weight, bias, x, sigma: SIGMA * size, noise });
            y
        });
        let labels = batch.labels.clone().repeat_dim(0, pairs);
        let [plus, minus] = [1.0, -1.0].map(|sign| {
            let mut all = layers.iter();
            let logits = network.logits(batch.inputs.clone(), &mut |_, _, y| {
                let layer = all.next().expect("the layers of the pass before");
                let members = pairs * rows / y.dims()[0]; // 1 behind the first layer
                y.repeat_dim(0, members) + layer.noise.clone() * (sign * layer.sigma)
            });
            cross_entropy(logits, labels.clone()) // [pairs · rows]
        });
        let slopes = ((plus - minus) / (2 * pairs * rows) as f32).unsqueeze_dim::<2>(1);
        let mut gradients = GradientsParams::new();
        for Layer { weight, bias, x, sigma, noise } in layers {
            let width = noise.dims()[1];
            let y = noise * (slopes.clone() / sigma);
            let y = y.reshape([pairs, rows, width]).sum_dim(0).reshape([rows, width]);
            if let Some(bias) = bias {
                gradients.register(bias.id, y.clone().sum_dim(0).reshape([width]));
            }
            gradients.register(weight.id, x.transpose().matmul(y));
        }
        gradients
    }
}
