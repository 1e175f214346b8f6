//! An embedding that is the head too.

use super::{by_row, constant_vector, normal_matrix, perturbed, vector};
use crate::check::check;
use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::ops::integer::{self, Rounding};
use eggroll_core::scope::IntegerInput;

/// Configuration of a [`TiedEmbedding`].
#[derive(Config, Debug)]
pub struct TiedEmbeddingConfig {
    /// The number of tokens.
    pub n_embedding: usize,
    /// The size of each vector.
    pub d_model: usize,
}

impl TiedEmbeddingConfig {
    /// An embedding with values `round(16·N(0, 1))` and a bias of 0.
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> TiedEmbedding {
        check("TiedEmbeddingConfig", self, &[&[("n_embedding", self.n_embedding), ("d_model", self.d_model)]]);
        TiedEmbedding {
            weight: normal_matrix([self.n_embedding, self.d_model], device),
            bias: constant_vector(self.d_model, 0, device),
        }
    }
}

/// `x = rescale(E[token] + e)` and, at the other end, logits `x·Eᵀ`: one matrix and, inside `evaluate`, one noise for both.
#[derive(Module, Debug)]
pub struct TiedEmbedding {
    /// Matrix of shape `[n_embedding, d_model]`.
    pub weight: Param<Tensor<2, Int>>,
    /// Vector of shape `[d_model]`.
    pub bias: Param<Tensor<1, Int>>,
}

impl TiedEmbedding {
    /// Looks tokens up ([`ops::integer::embedding`](eggroll_core::ops::integer::embedding)).
    ///
    /// # Shapes
    ///
    /// - tokens: `[batch, steps]`; inside `evaluate` the first axis is `members · rows`, member-major
    /// - output: `[batch, steps, d_model]`
    ///
    /// # Panics
    ///
    /// Panics on the CPU if a token is not below `n_embedding`; inside `evaluate` also if the rows are not a multiple of the members.
    #[track_caller]
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3, Int> {
        let [batch, steps] = tokens.dims();
        let rows = batch * steps;
        let (tokens, weight) = (tokens.reshape([rows]), perturbed(&self.weight, rows));
        weight.given(|| IntegerInput::Indices(tokens.clone()));
        let (noise, bias) = (weight.noise.clone(), Some(vector(&self.bias, rows)));
        let y = weight.made(integer::embedding(tokens, self.weight.val(), noise, bias, Rounding::Nearest));
        let [_, d_model] = y.dims();
        y.reshape([batch, steps, d_model])
    }

    /// Logits in 1/256 bit, of type I32 ([`ops::integer::head`](eggroll_core::ops::integer::head)).
    ///
    /// # Shapes
    ///
    /// - input: `[..., d_model]`; inside `evaluate` the first axis is `members · rows`, member-major
    /// - output: `[..., n_embedding]`
    ///
    /// # Panics
    ///
    /// Panics if the last axis of `input` is not `d_model`; inside `evaluate` also if the rows are not a multiple of the members.
    #[track_caller]
    pub fn logits<const D: usize>(&self, input: Tensor<D, Int>) -> Tensor<D, Int> {
        by_row(input, |x| {
            let [rows, _] = x.dims();
            let weight = perturbed(&self.weight, rows);
            weight.given(|| IntegerInput::Transposed(x.clone()));
            integer::head(x, self.weight.val(), weight.noise)
        })
    }
}
