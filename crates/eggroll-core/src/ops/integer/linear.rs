//! A product of int8 matrices, perturbed.

use super::{IntegerNoise, IntegerOps, primitive, traced};
use crate::ops::len;
use crate::work::counters;
use crate::work::profile::Component;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// Largest depth of a product: int32 holds the sum then.
pub(crate) const MAX_DEPTH: usize = 1 << 16;

/// `y = clip(⌊(x·W + P) / (16·⌊√d_input⌋)⌋)`, `P = ⌊s·(x·B)·Aᵀ / 2^(4 + sigma shift)⌋` for the members of `noise`.
///
/// # Shapes
///
/// - x: `[rows, d_input]`; with noise `[members · rows, d_input]`, member-major
/// - weight: `[d_input, d_output]`
/// - output: `[…, d_output]`, of the weight's type
///
/// # Panics
///
/// Panics if shapes do not fit, with the shapes, or if `d_input` is 0 or above 65,536.
///
/// # Example
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use eggroll_core::ops::integer::linear;
///
/// let device = Device::flex();
/// let x = Tensor::<2, Int>::from_data([[16i8, 32]], (&device, DType::I8));
/// let w = Tensor::<2, Int>::from_data([[16i8], [16]], (&device, DType::I8));
/// assert_eq!(linear(x, w, None).into_data().try_to_vec::<i8>().unwrap(), [48]); // (256 + 512) / (16·1)
/// ```
///
/// # References
///
/// Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652.
#[track_caller]
pub fn linear(x: Tensor<2, Int>, weight: Tensor<2, Int>, noise: Option<IntegerNoise>) -> Tensor<2, Int> {
    let (name, input @ [rows, width], shape @ [d_input, d_output]) = ("integer linear", x.dims(), weight.dims());
    assert!(
        width == d_input && (1..=MAX_DEPTH).contains(&d_input),
        "{name}: the input {input:?} does not fit the weight {shape:?}"
    );
    len(name, &[rows, d_output]);
    if let Some(noise) = &noise {
        noise.check_matrix(name, shape, rows);
    }
    counters::add_launch();
    traced(Component::BaseProduct, || {
        Tensor::from_dispatch(Dispatch::integer_linear(x.into_dispatch(), weight.into_dispatch(), primitive(noise)))
    })
}
