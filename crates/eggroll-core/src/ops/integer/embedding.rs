//! Rows of an int8 table, perturbed.

use super::operands::{Vector, check_bias, check_matrix};
use super::{IntegerNoise, IntegerOps, Rounding, bias_primitive, primitive};
use crate::ops::len;
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// The row of every token `t`, perturbed.
///
/// | rounding | output |
/// |---|---|
/// | [`Floor`](Rounding::Floor) | `clip(E[t] + ⌊s·B_t·Aᵀ / 2^(4 + sigma shift)⌋)` |
/// | [`Nearest`](Rounding::Nearest) | `rescale(E[t] + s·round(B_t·Aᵀ / 2^(4 + sigma shift)) + e)`, `rescale(v) = round(127·v / max \|v\|)` over a row, 0 for a row of zeros |
///
/// # Shapes
///
/// - tokens: `[rows]`, below `vocab`; with noise `[members · rows]`, member-major
/// - weight: `[vocab, width]`
/// - bias `e`: `[width]`, with [`Rounding::Nearest`] alone; perturbed as in [`linear`](super::linear())
/// - output: `[…, width]`, of the weight's type
///
/// # Panics
///
/// Panics if shapes do not fit, with the shapes, and for a bias with [`Rounding::Floor`]. On the CPU it also panics for a token that is not
/// below `vocab`.
#[track_caller]
pub fn embedding(
    tokens: Tensor<1, Int>,
    weight: Tensor<2, Int>,
    noise: Option<IntegerNoise>,
    bias: Option<Vector>,
    rounding: Rounding,
) -> Tensor<2, Int> {
    let name = "integer embedding";
    let ([rows], shape @ [_, width]) = (tokens.dims(), weight.dims());
    check_matrix(name, noise.as_ref(), shape, rows, 1, rounding);
    check_bias(name, bias.as_ref(), noise.as_ref(), [rows, width], rounding);
    assert!(rounding == Rounding::Floor || width > 0, "{name}: rows of no values");
    len(name, &[rows, width]);
    counters::add_launch();
    let (tokens, weight, noise) = (tokens.into_dispatch(), weight.into_dispatch(), primitive(noise));
    Tensor::from_dispatch(Dispatch::integer_embedding(tokens, weight, noise, bias_primitive(bias), rounding))
}
