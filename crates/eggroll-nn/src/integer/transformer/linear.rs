//! A linear layer.

use super::{by_row, constant_vector, normal_matrix, perturbed, vector};
use crate::check::check;
use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use eggroll_core::ops::integer::{self, Rounding};
use eggroll_core::scope::IntegerInput;

/// Configuration of a [`RoundedLinear`] layer.
#[derive(Config, Debug)]
pub struct RoundedLinearConfig {
    /// The size of the input features.
    pub d_input: usize,
    /// The size of the output features.
    pub d_output: usize,
    /// If a bias is added.
    #[config(default = true)]
    pub bias: bool,
    /// If [GELU](eggroll_core::integer::transformer::gelu) follows.
    #[config(default = false)]
    pub activate: bool,
}

impl RoundedLinearConfig {
    /// A layer with weights `round(16·N(0, 1))` and a bias of 0.
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> RoundedLinear {
        check("RoundedLinearConfig", self, &[&[("d_input", self.d_input), ("d_output", self.d_output)]]);
        RoundedLinear {
            weight: normal_matrix([self.d_input, self.d_output], device),
            bias: self.bias.then(|| constant_vector(self.d_output, 0, device)),
            activate: self.activate,
        }
    }
}

/// `y = clip(round(x·W / 2^(4 + h(d_input))) + b)`, and GELU of it if configured; inside `evaluate`, `W` and `b` perturbed for every member
/// ([`ops::integer::linear`](eggroll_core::ops::integer::linear), rounded to nearest).
///
/// # Example
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use eggroll_nn::integer::transformer::RoundedLinearConfig;
///
/// let device = Device::flex();
/// let layer = RoundedLinearConfig::new(16, 4).with_activate(true).init(&device);
/// let x = Tensor::<3, Int>::zeros([2, 5, 16], (&device, DType::I8));
/// assert_eq!(layer.forward(x).dims(), [2, 5, 4]);
/// ```
#[derive(Module, Debug)]
pub struct RoundedLinear {
    /// Matrix of shape `[d_input, d_output]`.
    pub weight: Param<Tensor<2, Int>>,
    /// Vector of shape `[d_output]`.
    pub bias: Option<Param<Tensor<1, Int>>>,
    /// If GELU follows.
    pub activate: bool,
}

impl RoundedLinear {
    /// Applies the layer.
    ///
    /// # Shapes
    ///
    /// - input: `[..., d_input]`; inside `evaluate` the first axis is `members · rows`, member-major
    /// - output: `[..., d_output]`
    ///
    /// # Panics
    ///
    /// Panics if the last axis of `input` is not `d_input`. Inside `evaluate` also if the rows are not a multiple of the members, or the noise's
    /// rank times `d_input` is above 8,192.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D, Int>) -> Tensor<D, Int> {
        by_row(input, |x| {
            let [rows, _] = x.dims();
            let (weight, bias) = (perturbed(&self.weight, rows), self.bias.as_ref().map(|bias| vector(bias, rows)));
            weight.given(|| IntegerInput::Rows(x.clone()));
            let noise = weight.noise.clone();
            weight.made(integer::linear(x, self.weight.val(), noise, bias, self.activate, Rounding::Nearest))
        })
    }
}
