//! Logits by the embedding, transposed: one matrix, and one noise, for both.

use super::operands::check_matrix;
use super::{IntegerNoise, IntegerOps, MAX_DEPTH, Rounding, primitive, traced};
use crate::ops::len;
use crate::work::counters;
use crate::work::profile::Component;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// `y = round((x·Eᵀ + s·round(round(x·A / 16)·Bᵀ / σ⁻¹)) / 2^(2 + h(width)))` within ±32767: logits in 1/256 bit, with the same
/// noise as in [`embedding`](super::embedding).
///
/// # Shapes
///
/// - x: `[rows, width]`; with noise `[members · rows, width]`, member-major
/// - embedding: `[vocab, width]`; its noise is for a matrix `[vocab, width]`
/// - output: `[…, vocab]`, of type I32
///
/// # Panics
///
/// Panics, with the shapes, if they do not fit. Also if `width` is 0 or above 65,536, or with noise if `width` times the rank is above
/// 8,192.
#[track_caller]
pub fn head(x: Tensor<2, Int>, embedding: Tensor<2, Int>, noise: Option<IntegerNoise>) -> Tensor<2, Int> {
    let name = "integer head";
    let ([rows, width], shape) = (x.dims(), embedding.dims());
    assert!(
        width == shape[1] && (1..=MAX_DEPTH).contains(&width),
        "{name}: the input {:?} does not fit the embedding {shape:?}",
        x.dims()
    );
    check_matrix(name, noise.as_ref(), shape, rows, width, Rounding::Nearest);
    len(name, &[rows, shape[0]]);
    counters::add_launch();
    traced(Component::BaseProduct, || {
        let (x, embedding) = (x.into_dispatch(), embedding.into_dispatch());
        Tensor::from_dispatch(Dispatch::integer_head(x, embedding, primitive(noise)))
    })
}
