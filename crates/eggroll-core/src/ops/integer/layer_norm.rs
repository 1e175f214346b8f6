//! Layer norm by the mean magnitude.

use super::{IntegerNoise, IntegerOps, primitive};
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// `y = clip(⌊x·w / m⌋)`, `m = ⌊max(Σ|x|, 1) / n⌋` over the row, `w` perturbed as a vector. Where `m = 0`: −1 if the numerator is
/// 0, else −2, as the reference's division table has it.
///
/// # Shapes
///
/// - x: `[rows, n]`; with noise `[members · rows, n]`, member-major
/// - weight: `[n]`
/// - output: as x, of the weight's type
///
/// # Panics
///
/// Panics if shapes do not fit, with the shapes.
#[track_caller]
pub fn layer_norm(x: Tensor<2, Int>, weight: Tensor<1, Int>, noise: Option<IntegerNoise>) -> Tensor<2, Int> {
    let ([rows, n], [width]) = (x.dims(), weight.dims());
    assert!(
        width == n && n > 0,
        "integer layer norm: the input {:?} does not fit the weight {:?}",
        x.dims(),
        weight.dims()
    );
    if let Some(noise) = &noise {
        noise.check("integer layer norm", 2 * n, rows);
    }
    counters::add_launch();
    Tensor::from_dispatch(Dispatch::integer_layer_norm(x.into_dispatch(), weight.into_dispatch(), primitive(noise)))
}
