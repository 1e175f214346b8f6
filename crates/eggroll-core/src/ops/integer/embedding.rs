//! Rows of an int8 table, perturbed.

use super::{IntegerNoise, IntegerOps, primitive};
use crate::ops::len;
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// `y = clip(E[t] + ⌊s·B_t·Aᵀ / 2^(4 + sigma shift)⌋)` for every token `t`.
///
/// # Shapes
///
/// - tokens: `[rows]`, below `vocab`; with noise `[members · rows]`, member-major
/// - weight: `[vocab, width]`
/// - output: `[…, width]`, of the weight's type
///
/// # Panics
///
/// Panics if rows are not a multiple of the members; on the CPU also for a token that is not below `vocab`.
#[track_caller]
pub fn embedding(tokens: Tensor<1, Int>, weight: Tensor<2, Int>, noise: Option<IntegerNoise>) -> Tensor<2, Int> {
    let (name, [rows], shape) = ("integer embedding", tokens.dims(), weight.dims());
    len(name, &[rows, shape[1]]);
    if let Some(noise) = &noise {
        noise.check_matrix(name, shape, rows);
    }
    counters::add_launch();
    let (tokens, weight) = (tokens.into_dispatch(), weight.into_dispatch());
    Tensor::from_dispatch(Dispatch::integer_embedding(tokens, weight, primitive(noise)))
}
