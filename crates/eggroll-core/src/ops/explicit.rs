//! The same operations on noise given as tensors: for held noise that is used often, and for known answers.
//!
//! Composed of ordinary tensor operations. A pair's noise is shared by its two members, with signs +1 and −1.

pub use super::sparse::Entries;

use super::{InputRows, portable};
use burn::backend::Dispatch;
use burn::tensor::Tensor;

/// Factors of low-rank noise for a run of pairs.
#[derive(Clone, Debug)]
pub struct Factors {
    /// `[pairs, rank, d_input]`
    pub b: Tensor<3>,
    /// `[pairs, rank, d_output]`
    pub a: Tensor<3>,
}

/// `y = x·W + s·c·(x·B)·Aᵀ`.
///
/// # Shapes
///
/// - x: `[members · rows, d_input]`, or `[rows, d_input]` if shared; weight: `[d_input, d_output]`
/// - output: `[members · rows, d_output]`
///
/// # Panics
///
/// Panics if shapes do not fit.
pub fn low_rank_linear(x: Tensor<2>, weight: Tensor<2>, factors: Factors, scale: f32, input: InputRows) -> Tensor<2> {
    let (b, a) = (factors.b.into_dispatch(), factors.a.into_dispatch());
    let (x, weight) = (x.into_dispatch(), weight.into_dispatch());
    Tensor::from_dispatch(portable::explicit_low_rank_linear::<Dispatch>(x, weight, b, a, scale, input))
}

/// `y = x·W + s·σ·x·ε` for `epsilon : [pairs, d_input, d_output]`; other shapes as [`low_rank_linear`].
///
/// # Panics
///
/// Panics if shapes do not fit.
pub fn dense_linear(x: Tensor<2>, weight: Tensor<2>, epsilon: Tensor<3>, scale: f32, input: InputRows) -> Tensor<2> {
    let (x, weight) = (x.into_dispatch(), weight.into_dispatch());
    Tensor::from_dispatch(portable::explicit_dense_linear::<Dispatch>(x, weight, epsilon.into_dispatch(), scale, input))
}

/// `θ + s·σ·ε` for `epsilon : [pairs, n]`: `[n]` to `[members, n]`.
///
/// # Panics
///
/// Panics if shapes do not fit.
pub fn perturbed_vector(vector: Tensor<1>, epsilon: Tensor<2>, scale: f32) -> Tensor<2> {
    Tensor::from_dispatch(portable::explicit_vector::<Dispatch>(vector.into_dispatch(), epsilon.into_dispatch(), scale))
}

/// `Σ_q w_q·c·B_q·A_qᵀ` for weights `[pairs]`: `[d_input, d_output]`.
///
/// # Panics
///
/// Panics if shapes do not fit.
pub fn low_rank_estimate(weights: Tensor<1>, factors: Factors, scale: f32) -> Tensor<2> {
    let (b, a) = (factors.b.into_dispatch(), factors.a.into_dispatch());
    Tensor::from_dispatch(portable::explicit_low_rank_estimate::<Dispatch>(weights.into_dispatch(), b, a, scale))
}

/// `Σ_q w_q·σ·ε_q` for weights `[pairs]` and `epsilon : [pairs, elements]`: `[elements]`.
///
/// # Panics
///
/// Panics if shapes do not fit.
pub fn dense_estimate(weights: Tensor<1>, epsilon: Tensor<2>, scale: f32) -> Tensor<1> {
    let epsilon = epsilon.into_dispatch();
    Tensor::from_dispatch(portable::explicit_dense_estimate::<Dispatch>(weights.into_dispatch(), epsilon, scale))
}
