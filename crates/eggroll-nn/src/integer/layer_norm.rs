//! Layer norm by the mean magnitude.

use super::{constant_vector, vector_noise};
use crate::check::check;
use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::integer::FIXED_POINT;
use eggroll_core::ops::integer::{self, Rounding, Vector};

/// Configuration of a [`LayerNorm`].
#[derive(Config, Debug)]
pub struct LayerNormConfig {
    /// The size of the last axis.
    pub d_model: usize,
}

impl LayerNormConfig {
    /// A layer with gains of 16.
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> LayerNorm {
        check("integer LayerNormConfig", self, &[]);
        LayerNorm { weight: constant_vector(self.d_model, 1 << FIXED_POINT, device) }
    }
}

/// `y = clip(⌊x·w / m⌋)`, `m` the mean magnitude of a row; inside `evaluate`, `w` perturbed for every member
/// ([`ops::integer::norm`](eggroll_core::ops::integer::norm), rounded down).
#[derive(Module, Debug)]
pub struct LayerNorm {
    /// Gains, `[d_model]`.
    pub weight: Param<Tensor<1, Int>>,
}

impl LayerNorm {
    /// Normalizes the last axis.
    ///
    /// # Shapes
    ///
    /// - input: `[..., d_model]`; inside `evaluate` the first axis is `members · rows`, member-major
    /// - output: as the input
    ///
    /// # Panics
    ///
    /// Panics if the last axis of `input` is not `d_model`; inside `evaluate` also if the rows are not a multiple of the
    /// members.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D, Int>) -> Tensor<D, Int> {
        let dims = input.dims();
        let (width, rows) = (dims[D - 1], dims[..D - 1].iter().product::<usize>());
        let gain = Vector { values: self.weight.val(), noise: vector_noise(&self.weight, rows) };
        integer::norm(input.reshape([rows, width]), gain, None, Rounding::Floor).reshape(dims)
    }
}
