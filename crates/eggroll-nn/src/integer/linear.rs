//! A linear layer without bias.

use super::{normal_matrix, perturbed};
use crate::check::check;
use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::ops::integer::{self, Rounding};
use eggroll_core::scope::IntegerInput;

/// Configuration of a [`Linear`] layer.
#[derive(Config, Debug)]
pub struct LinearConfig {
    /// The size of the input features.
    pub d_input: usize,
    /// The size of the output features.
    pub d_output: usize,
}

impl LinearConfig {
    /// A layer with weights `round(16·N(0, 1))`.
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Linear {
        check("integer LinearConfig", self, &[&[("d_input", self.d_input), ("d_output", self.d_output)]]);
        Linear { weight: normal_matrix([self.d_input, self.d_output], device) }
    }
}

/// `y = clip(⌊x·W / (16·⌊√d_input⌋)⌋)`; inside `evaluate`, `W` perturbed for every member
/// ([`ops::integer::linear`](eggroll_core::ops::integer::linear), rounded down).
///
/// # Example
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use eggroll_nn::integer::LinearConfig;
///
/// let device = Device::flex();
/// let layer = LinearConfig::new(16, 4).init(&device);
/// let x = Tensor::<3, Int>::zeros([2, 5, 16], (&device, DType::I8));
/// assert_eq!(layer.forward(x).dims(), [2, 5, 4]);
/// ```
#[derive(Module, Debug)]
pub struct Linear {
    /// Matrix of shape `[d_input, d_output]`.
    pub weight: Param<Tensor<2, Int>>,
}

impl Linear {
    /// Applies the layer.
    ///
    /// # Shapes
    ///
    /// - input: `[..., d_input]`; inside `evaluate` the first axis is `members · rows`, member-major
    /// - output: `[..., d_output]`
    ///
    /// # Panics
    ///
    /// Panics if the last axis of `input` is not `d_input`; inside `evaluate` also if the rows are not a multiple of the
    /// members.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D, Int>) -> Tensor<D, Int> {
        let mut dims = input.dims();
        let (width, rows) = (dims[D - 1], dims[..D - 1].iter().product::<usize>());
        let (x, weight) = (input.reshape([rows, width]), perturbed(&self.weight, rows));
        weight.given(|| IntegerInput::Rows(x.clone()));
        let y = integer::linear(x, self.weight.val(), weight.noise.clone(), None, false, Rounding::Floor);
        let y = weight.made(y); // [rows, d_output]
        dims[D - 1] = y.dims()[1];
        y.reshape(dims)
    }
}
