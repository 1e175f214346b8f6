//! A product of int8 matrices, perturbed.

use super::operands::{Vector, check_bias, check_matrix};
use super::{IntegerNoise, IntegerOps, MAX_DEPTH, Rounding, bias_primitive, primitive, traced};
use crate::ops::len;
use crate::work::counters;
use crate::work::profile::Component;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// A product of int8 matrices, `σ = 2^−sigma shift` for the members of `noise`.
///
/// | rounding | output | of the noise |
/// |---|---|---|
/// | [`Floor`](Rounding::Floor) | `y = clip(⌊(x·W + P) / (16·⌊√d_input⌋)⌋)` | `P = ⌊s·(x·B)·Aᵀ·σ / 16⌋` |
/// | [`Nearest`](Rounding::Nearest) | `y = clip(round((x·W + P) / 2^(4 + h(d_input))) + b)` | `P = s·round(round(x·B / 16)·Aᵀ·σ)` |
///
/// `2^h(n)` is about `√n` ([`half_log2`](crate::arithmetic::integer::half_log2)).
///
/// # Shapes
///
/// - x: `[rows, d_input]`; with noise `[members · rows, d_input]`, member-major
/// - weight: `[d_input, d_output]`
/// - bias `b`: `[d_output]`, with [`Rounding::Nearest`] alone; perturbed as `clip(b + s·round(n₀·n₁·σ / 16))`
/// - `activate`: `GELU(y)` ([`gelu`](crate::arithmetic::integer::transformer::gelu)), with [`Rounding::Nearest`] alone
/// - output: `[…, d_output]`, of the weight's type
///
/// # Panics
///
/// Panics, with the shapes, if they do not fit, and if `d_input` is 0 or above 65,536. With [`Rounding::Nearest`] and noise, also if
/// `d_input` times the rank is above 8,192. With [`Rounding::Floor`], also for a bias or an activation.
///
/// # Example
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use eggroll_core::integer::Rounding;
/// use eggroll_core::ops::integer::linear;
///
/// let on = (&Device::flex(), DType::I8);
/// let x = Tensor::<2, Int>::from_data([[16i8, -9]], on);
/// let w = Tensor::<2, Int>::from_data([[16i8, 1], [8, 1]], on);
/// // [256 − 72, 7] / 16
/// let y = |rounding| linear(x.clone(), w.clone(), None, None, false, rounding).into_data().try_to_vec::<i8>().unwrap();
/// assert_eq!((y(Rounding::Floor), y(Rounding::Nearest)), (vec![11, 0], vec![12, 0]));
/// ```
///
/// # References
///
/// Sarkar et al., "Evolution Strategies at the Hyperscale", arXiv 2511.16652.
#[track_caller]
pub fn linear(
    x: Tensor<2, Int>,
    weight: Tensor<2, Int>,
    noise: Option<IntegerNoise>,
    bias: Option<Vector>,
    activate: bool,
    rounding: Rounding,
) -> Tensor<2, Int> {
    let (name, input @ [rows, width], shape @ [d_input, d_output]) = ("integer linear", x.dims(), weight.dims());
    assert!(
        width == d_input && (1..=MAX_DEPTH).contains(&d_input),
        "{name}: the input {input:?} does not fit the weight {shape:?}"
    );
    len(name, &[rows, d_output]);
    check_matrix(name, noise.as_ref(), shape, rows, d_input, rounding);
    check_bias(name, bias.as_ref(), noise.as_ref(), [rows, d_output], rounding);
    assert!(!activate || rounding == Rounding::Nearest, "{name}: there is no activation with {rounding:?}");
    counters::add_launch();
    traced(Component::BaseProduct, || {
        let (x, weight, noise, bias) =
            (x.into_dispatch(), weight.into_dispatch(), primitive(noise), bias_primitive(bias));
        Tensor::from_dispatch(Dispatch::integer_linear(x, weight, noise, bias, activate, rounding))
    })
}
