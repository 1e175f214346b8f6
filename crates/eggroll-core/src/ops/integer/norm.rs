//! Norm by the mean magnitude.

use super::operands::{Vector, check_bias};
use super::{IntegerOps, MAX_DEPTH, Rounding, bias_primitive};
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// Rows divided by the mean magnitude of their values, times a gain that is perturbed as a vector.
///
/// | rounding | output |
/// |---|---|
/// | [`Floor`](Rounding::Floor) | `clip(⌊x·g / m⌋)`, `m = ⌊max(Σ\|x\|, 1) / n⌋`. Where `m = 0`: −1 if the numerator is 0, else −2, as the reference's division table has it |
/// | [`Nearest`](Rounding::Nearest) | `clip(round(x·g / m) + b)`, `m = max(1, round(Σ\|x\| / n))` |
///
/// # Shapes
///
/// - x: `[rows, n]`; with noise `[members · rows, n]`, member-major
/// - gain `g`: `[n]`
/// - bias `b`: `[n]`, with [`Rounding::Nearest`] alone; perturbed as the gain
/// - output: as x
///
/// # Panics
///
/// Panics, with the shapes, if they do not fit. Also if `n` is 0, or above 65,536 with [`Rounding::Nearest`], and for a bias with
/// [`Rounding::Floor`].
#[track_caller]
pub fn norm(x: Tensor<2, Int>, gain: Vector, bias: Option<Vector>, rounding: Rounding) -> Tensor<2, Int> {
    let (name, shape @ [rows, n]) = ("integer norm", x.dims());
    assert!(n > 0 && (rounding == Rounding::Floor || n <= MAX_DEPTH), "{name}: rows of {n} values");
    gain.check(name, "gain", n, rows);
    check_bias(name, bias.as_ref(), gain.noise.as_ref(), shape, rounding);
    counters::add_launch();
    let (x, gain, bias) = (x.into_dispatch(), gain.into_primitive(), bias_primitive(bias));
    Tensor::from_dispatch(Dispatch::integer_norm(x, gain, bias, rounding))
}
