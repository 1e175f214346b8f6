//! A product of int8 matrices, perturbed, and rounded to nearest.

use super::IntegerTransformerOps;
use super::operands::{Vector, bias_primitive, check_matrix, check_same_members};
use crate::ops::integer::{IntegerNoise, primitive};
use crate::ops::integer::{MAX_DEPTH, traced};
use crate::ops::len;
use crate::work::counters;
use crate::work::profile::Component;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// `y = clip(round((x·W + P) / 2^(4 + h(d_input))) + b)`, `P = s·round(round(x·B / 16)·Aᵀ / σ⁻¹)` for the members of `noise`, `σ = 2^−sigma
/// shift`; with `activate`, `GELU(y)` ([`gelu`](crate::arithmetic::integer::transformer::gelu)).
///
/// # Shapes
///
/// - x: `[rows, d_input]`; with noise `[members · rows, d_input]`, member-major
/// - weight: `[d_input, d_output]`
/// - bias: `[d_output]`, perturbed as `clip(b + s·round(n₀·n₁ / 2^(4 + sigma shift)))`
/// - output: `[…, d_output]`, of the weight's type
///
/// # Panics
///
/// Panics if shapes do not fit, with the shapes; if `d_input` is 0 or above 65,536, or with noise if its product with the rank is above 8,192.
///
/// # Example
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use eggroll_core::ops::integer::transformer::linear;
///
/// let device = Device::flex();
/// let x = Tensor::<2, Int>::from_data([[16i8, -9]], (&device, DType::I8));
/// let w = Tensor::<2, Int>::from_data([[16i8, 1], [8, 1]], (&device, DType::I8));
/// let y = linear(x, w, None, None, false); // [256 − 72, 7] / 16, rounded
/// assert_eq!(y.into_data().try_to_vec::<i8>().unwrap(), [12, 0]);
/// ```
#[track_caller]
pub fn linear(
    x: Tensor<2, Int>,
    weight: Tensor<2, Int>,
    noise: Option<IntegerNoise>,
    bias: Option<Vector>,
    activate: bool,
) -> Tensor<2, Int> {
    let name = "integer transformer's linear";
    let ([rows, width], shape @ [d_input, d_output]) = (x.dims(), weight.dims());
    assert!(
        width == d_input && (1..=MAX_DEPTH).contains(&d_input),
        "{name}: the input {:?} does not fit the weight {shape:?}",
        x.dims()
    );
    check_matrix(name, noise.as_ref(), shape, rows, d_input);
    if let Some(bias) = &bias {
        bias.check(name, "bias", d_output, rows);
        check_same_members(name, [noise.as_ref(), bias.noise.as_ref()]);
    }
    len(name, &[rows, d_output]);
    counters::add_launch();
    traced(Component::BaseProduct, || {
        let (x, weight, noise) = (x.into_dispatch(), weight.into_dispatch(), primitive(noise));
        Tensor::from_dispatch(Dispatch::integer_transformer_linear(x, weight, noise, bias_primitive(bias), activate))
    })
}
