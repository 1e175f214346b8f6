//! Projection onto the span of input rows.

use super::PerturbedOps;
use crate::work::counters;
use crate::work::profile::{self, Component};
use burn::backend::Dispatch;
use burn::tensor::Tensor;

/// Projects the columns of a weight's gradient estimate onto the span of the layer's input rows: `Qᵀ·Q·G`. The rows of
/// `Q` are an orthonormal basis of the rows of `x`.
///
/// If all members see the same rows `x`, their fitness depends on the noise `E` only through `x·E`. The part of `E` outside
/// the span of `x` is independent of the fitness and has mean 0. Without it, the estimate `Σ f·E` has the same expectation
/// and less variance: of `d_input · d_output` noisy dimensions, `rank(x) · d_output` remain.
///
/// This holds for Gaussian noise, dense or of any rank. Rademacher and sparse noise outside the span is uncorrelated with `x·E`, but not
/// independent of it. For a fitness that is not quadratic, the plain estimate then has a mean of order σ² outside the span, where the
/// gradient is 0. The projection removes that too.
///
/// Rows that are (nearly) combinations of the rows before them add nothing to the basis.
///
/// On devices: one launch for the basis of up to 32 rows and two products. With more rows, six more launches for
/// every 16 rows after the first 16 (see `docs/decisions/0026-gpu-kernel-shapes.md`).
///
/// # Shapes
///
/// - gradient: `[d_input, d_output]`, x: `[rows, d_input]`
/// - output: `[d_input, d_output]`; the gradient itself if `rows ≥ d_input`
///
/// # Panics
///
/// Panics if `d_input` differs, with both shapes.
#[track_caller]
pub fn row_projection(gradient: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
    let ([d_input, _], [rows, width]) = (gradient.dims(), x.dims());
    assert!(
        width == d_input,
        "row projection: the input {:?} does not fit the gradient {:?}",
        x.dims(),
        gradient.dims()
    );
    if rows >= d_input {
        return gradient;
    }
    let span = profile::span(Component::Estimate, 0);
    counters::add_launch();
    let projected = Dispatch::row_projection(gradient.into_dispatch(), x.into_dispatch());
    let projected = Tensor::<2>::from_dispatch(projected);
    span.end_waiting(|| drop(projected.device().sync()));
    projected
}
