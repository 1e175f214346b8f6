//! Norm by the mean magnitude, with gain and bias.

use super::{by_row, constant_vector, vector};
use crate::check::check;
use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::integer::FIXED_POINT;
use eggroll_core::ops::integer::{self, Rounding};

/// Configuration of a [`MeanNorm`].
#[derive(Config, Debug)]
pub struct MeanNormConfig {
    /// The size of the last axis.
    pub d_model: usize,
}

impl MeanNormConfig {
    /// A layer with gains of 16 and biases of 0.
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> MeanNorm {
        check("MeanNormConfig", self, &[]);
        MeanNorm {
            gain: constant_vector(self.d_model, 1 << FIXED_POINT, device),
            bias: constant_vector(self.d_model, 0, device),
        }
    }
}

/// `y = clip(round(x·g / m) + b)`, `m` the mean magnitude of a row; inside `evaluate`, `g` and `b` perturbed for every member
/// ([`ops::integer::norm`](eggroll_core::ops::integer::norm), rounded to nearest).
#[derive(Module, Debug)]
pub struct MeanNorm {
    /// Gains, `[d_model]`.
    pub gain: Param<Tensor<1, Int>>,
    /// Biases, `[d_model]`.
    pub bias: Param<Tensor<1, Int>>,
}

impl MeanNorm {
    /// Normalizes the last axis.
    ///
    /// # Shapes
    ///
    /// - input: `[..., d_model]`; inside `evaluate` the first axis is `members · rows`, member-major
    /// - output: as the input
    ///
    /// # Panics
    ///
    /// Panics if the last axis of `input` is not `d_model`; inside `evaluate` also if the rows are not a multiple of the members.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D, Int>) -> Tensor<D, Int> {
        by_row(input, |x| {
            let [rows, _] = x.dims();
            integer::norm(x, vector(&self.gain, rows), Some(vector(&self.bias, rows)), Rounding::Nearest)
        })
    }
}
