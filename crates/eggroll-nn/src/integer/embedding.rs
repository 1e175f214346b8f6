//! An embedding of bytes or other tokens.

use super::{normal_matrix, perturbed};
use crate::check::check;
use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::ops::integer::{self, Rounding};
use eggroll_core::scope::IntegerInput;

/// Configuration of an [`Embedding`].
#[derive(Config, Debug)]
pub struct EmbeddingConfig {
    /// The number of tokens.
    pub n_embedding: usize,
    /// The size of each vector.
    pub d_model: usize,
}

impl EmbeddingConfig {
    /// An embedding with values `round(16·N(0, 1))`.
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Embedding {
        check("integer EmbeddingConfig", self, &[&[("n_embedding", self.n_embedding), ("d_model", self.d_model)]]);
        Embedding { weight: normal_matrix([self.n_embedding, self.d_model], device) }
    }
}

/// `y = E[token]`; inside `evaluate`, `E` perturbed for every member
/// ([`ops::integer::embedding`](eggroll_core::ops::integer::embedding), rounded down).
#[derive(Module, Debug)]
pub struct Embedding {
    /// Matrix of shape `[n_embedding, d_model]`.
    pub weight: Param<Tensor<2, Int>>,
}

impl Embedding {
    /// Looks tokens up.
    ///
    /// # Shapes
    ///
    /// - tokens: `[batch, steps]`; inside `evaluate` the first axis is `members · rows`, member-major
    /// - output: `[batch, steps, d_model]`
    ///
    /// # Panics
    ///
    /// Panics on the CPU if a token is not below `n_embedding`; inside `evaluate` also if the rows are not a multiple of the
    /// members.
    #[track_caller]
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3, Int> {
        let [batch, steps] = tokens.dims();
        let (tokens, weight) = (tokens.reshape([batch * steps]), perturbed(&self.weight, batch * steps));
        weight.given(|| IntegerInput::Indices(tokens.clone()));
        let y = integer::embedding(tokens, self.weight.val(), weight.noise.clone(), None, Rounding::Floor);
        let y = weight.made(y);
        let [_, d_model] = y.dims();
        y.reshape([batch, steps, d_model])
    }
}
