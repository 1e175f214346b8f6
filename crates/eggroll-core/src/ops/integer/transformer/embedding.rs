//! Rows of an int8 table, perturbed and rescaled.

use super::IntegerTransformerOps;
use super::operands::{Vector, check_matrix, check_same_members};
use crate::ops::integer::{IntegerNoise, primitive};
use crate::ops::len;
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// `y = rescale(E[t] + s·round(B_t·Aᵀ / 2^(4 + sigma shift)) + e)` for every token `t`; `rescale(v) = round(127·v / max |v|)` over a row, 0
/// for a row of zeros.
///
/// # Shapes
///
/// - tokens: `[rows]`, below `vocab`; with noise `[members · rows]`, member-major
/// - weight: `[vocab, width]`
/// - bias: `[width]`
/// - output: `[…, width]`, of the weight's type
///
/// # Panics
///
/// Panics if shapes do not fit, with the shapes; on the CPU also for a token that is not below `vocab`.
#[track_caller]
pub fn embedding(
    tokens: Tensor<1, Int>,
    weight: Tensor<2, Int>,
    noise: Option<IntegerNoise>,
    bias: Vector,
) -> Tensor<2, Int> {
    let name = "integer transformer's embedding";
    let ([rows], shape @ [_, width]) = (tokens.dims(), weight.dims());
    check_matrix(name, noise.as_ref(), shape, rows, 1);
    bias.check(name, "bias", width, rows);
    check_same_members(name, [noise.as_ref(), bias.noise.as_ref()]);
    assert!(width > 0, "{name}: rows of no values");
    len(name, &[rows, width]);
    counters::add_launch();
    let (tokens, weight, noise) = (tokens.into_dispatch(), weight.into_dispatch(), primitive(noise));
    Tensor::from_dispatch(Dispatch::integer_transformer_embedding(tokens, weight, noise, bias.into_primitive()))
}
