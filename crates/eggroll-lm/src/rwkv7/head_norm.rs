//! Normalization of every head.

use super::vector::of_rows;
use burn::module::{Initializer, Module, Param};
use burn::tensor::{Device, Tensor};

/// `y = (x − mean)/√(var + ε)·γ + β`, with the mean and the variance of each head: group normalization (Wu and He, arXiv 1803.08494).
/// Inside `evaluate` every member has its `γ` and `β`.
#[derive(Module, Debug)]
pub struct HeadNorm {
    /// The gain `γ`, `[heads · head_dim]`.
    pub gamma: Param<Tensor<1>>,
    /// The bias `β`, `[heads · head_dim]`.
    pub beta: Param<Tensor<1>>,
    /// `ε`
    #[module(skip)]
    pub epsilon: f64,
}

impl HeadNorm {
    pub(super) fn new(width: usize, epsilon: f64, device: &Device) -> Self {
        let (gamma, beta) = (Initializer::Ones.init([width], device), Initializer::Zeros.init([width], device));
        Self { gamma, beta, epsilon }
    }

    /// `[rows, length, heads, head_dim]` to `[rows, length, heads · head_dim]`.
    pub(super) fn forward(&self, x: Tensor<4>) -> Tensor<3> {
        let [rows, length, heads, head_dim] = x.dims();
        let x = x.clone() - x.mean_dim(3);
        let variance = (x.clone() * x.clone()).mean_dim(3);
        let x = x / (variance + self.epsilon).sqrt();
        x.reshape([rows, length, heads * head_dim]) * of_rows(&self.gamma, rows) + of_rows(&self.beta, rows)
    }
}
