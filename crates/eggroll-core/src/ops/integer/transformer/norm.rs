//! Norm by the mean magnitude.

use super::IntegerTransformerOps;
use super::operands::{Vector, check_same_members};
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// `y = clip(round(x·g / m) + b)`, `m = max(1, round(Σ|x| / n))` over the row; gain and bias are perturbed as vectors.
///
/// # Shapes
///
/// - x: `[rows, n]`; with noise `[members · rows, n]`, member-major
/// - gain, bias: `[n]`
/// - output: as x
///
/// # Panics
///
/// Panics if shapes do not fit, with the shapes, or if `n` is 0 or above 65,536.
#[track_caller]
pub fn norm(x: Tensor<2, Int>, gain: Vector, bias: Vector) -> Tensor<2, Int> {
    let name = "integer transformer's norm";
    let [rows, n] = x.dims();
    assert!((1..=crate::ops::integer::MAX_DEPTH).contains(&n), "{name}: rows of {n} values");
    gain.check(name, "gain", n, rows);
    bias.check(name, "bias", n, rows);
    check_same_members(name, [gain.noise.as_ref(), bias.noise.as_ref()]);
    counters::add_launch();
    let (gain, bias) = (gain.into_primitive(), bias.into_primitive());
    Tensor::from_dispatch(Dispatch::integer_transformer_norm(x.into_dispatch(), gain, bias))
}
