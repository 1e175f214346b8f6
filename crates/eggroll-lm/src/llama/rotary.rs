//! Angles of rotary positions.

use crate::load::{LlamaConfig, RopeScaling};
use burn::tensor::{DType, Device, Tensor, TensorData};

/// Angles per position, one for each pair of a head's dimensions: `θ^(−2i/head_dim)`, divided as the configuration's scaling says.
#[derive(Clone, Debug)]
pub(crate) struct Frequencies(Vec<f64>);

impl Frequencies {
    /// Frequencies of a model's layers, and of its layers with a window, if they differ.
    pub(crate) fn of(config: &LlamaConfig) -> (Self, Option<Self>) {
        let own = config.window.and_then(|window| window.rope_theta);
        let own = own.map(|theta| Self::new(config.head_dim, theta, RopeScaling::None));
        (Self::new(config.head_dim, config.rope_theta, config.rope_scaling), own)
    }

    fn new(dim: usize, theta: f64, scaling: RopeScaling) -> Self {
        let divisors = scaling.divisors(dim, theta);
        let frequency = |(i, divisor): (usize, &f64)| theta.powf(-2.0 * i as f64 / dim as f64) / divisor;
        Self(divisors.iter().enumerate().map(frequency).collect())
    }

    /// Pairs of a head.
    pub(crate) fn half(&self) -> usize {
        self.0.len()
    }

    /// Cosines and sines of the angles of positions from 0 on, `[positions, half]` each.
    pub(crate) fn tensors(&self, positions: usize, (device, dtype): (&Device, DType)) -> [Tensor<2>; 2] {
        let [mut cosines, mut sines] = [Vec::new(), Vec::new()];
        (0..positions).for_each(|position| self.push(position, &mut cosines, &mut sines));
        let shape = [positions, self.half()];
        [cosines, sines].map(|values| Tensor::from_data(TensorData::new(values, shape), (device, dtype)))
    }

    /// Appends the cosines and sines of a position's angles.
    pub(crate) fn push(&self, position: usize, cosines: &mut Vec<f32>, sines: &mut Vec<f32>) {
        for frequency in &self.0 {
            let (sine, cosine) = (position as f64 * frequency).sin_cos();
            cosines.push(cosine as f32);
            sines.push(sine as f32);
        }
    }
}
