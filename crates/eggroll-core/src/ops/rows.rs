//! Operations between layers, without noise: activations, a norm, a linear recurrence, causal attention.
//!
//! Composed of many small operations, they take as long as the products in a member's forward. Here each is one pass in host memory,
//! on all threads; elsewhere, ordinary operations that a backend may fuse. Gradients flow through them.

use super::extension_trait::extension_trait;
use super::operands::check_causal_attention;
pub use super::operands::{Activation, CausalAttention};
use super::portable;
use crate::work::device::is_on_host;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch};
use burn::tensor::Tensor;

extension_trait! {
/// Operations of a backend between layers; the defaults are composed of ordinary ones.
pub trait RowOps: Backend {
    /// See [`gelu`], [`sigmoid`], [`silu`] and [`tanh`].
    #[fusion(dtype = x, shape = x.clone())]
    fn activation(x: FloatTensor<Self>, function: Activation) -> FloatTensor<Self> {
        portable::rows::activation::<Self>(x, function)
    }

    /// See [`rms_normalized`].
    #[fusion(dtype = x, shape = x.clone())]
    fn rms_normalized(x: FloatTensor<Self>, epsilon: f32) -> FloatTensor<Self> {
        portable::rows::rms_normalized::<Self>(x, epsilon)
    }

    /// See [`gated_recurrence`].
    #[fusion(dtype = forget, shape = forget.clone())]
    fn gated_recurrence(
        forget: FloatTensor<Self>,
        candidate: FloatTensor<Self>,
        kept: FloatTensor<Self>,
        state: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        portable::rows::gated_recurrence::<Self>(forget, candidate, kept, state)
    }

    /// See [`causal_attention`].
    #[fusion(dtype = query, shape = query.clone())]
    fn causal_attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        attention: CausalAttention,
    ) -> FloatTensor<Self> {
        portable::rows::causal_attention::<Self>(query, key, value, attention)
    }
}
}

/// The portable defaults, through which gradients flow.
impl<B, C> RowOps for Autodiff<B, C>
where
    B: RowOps,
    C: burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy,
{
}

/// `x·Φ(x)`, `Φ` being the normal distribution function (Hendrycks and Gimpel, arXiv 1606.08415); on the CPU within 2e-7·|x|, by 7.1.26 of
/// Abramowitz and Stegun.
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activation(x, Activation::Gelu)
}

/// `1/(1 + exp(−x))`
pub fn sigmoid<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activation(x, Activation::Sigmoid)
}

/// `x/(1 + exp(−x))`
pub fn silu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activation(x, Activation::Silu)
}

/// `tanh(x)`; on the CPU with an absolute error below 3e-7.
pub fn tanh<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activation(x, Activation::Tanh)
}

fn activation<const D: usize>(x: Tensor<D>, function: Activation) -> Tensor<D> {
    let host = is_on_host(&x.device());
    let activation = if host { Dispatch::activation } else { portable::rows::activation::<Dispatch> };
    Tensor::from_dispatch(activation(x.into_dispatch(), function))
}

/// `x/√(mean(x²) + ε)` over the last axis, the mean in f32: an RMS norm without its gain (Zhang and Sennrich, arXiv 1910.07467).
pub fn rms_normalized<const D: usize>(x: Tensor<D>, epsilon: f32) -> Tensor<D> {
    let host = is_on_host(&x.device());
    let normalized = if host { Dispatch::rms_normalized } else { portable::rows::rms_normalized::<Dispatch> };
    Tensor::from_dispatch(normalized(x.into_dispatch(), epsilon))
}

/// States of a recurrence whose gates depend only on the input (Feng et al., "Were RNNs All We Needed?", arXiv
/// 2410.01201):
///
/// `h_t = (1 − f_t)·k_t·h_{t−1} + f_t·c_t`, `f = sigmoid(forget)`
///
/// # Shapes
///
/// - forget, candidate: `[batch, steps, width]`
/// - kept: `[batch, steps]`, the factor `k`: 0 where a sequence begins anew, else 1
/// - state: `[batch, width]`, before the first step
/// - output: `[batch, steps, width]`
///
/// # Panics
///
/// Panics, with the shapes, if they do not fit.
#[track_caller]
pub fn gated_recurrence(forget: Tensor<3>, candidate: Tensor<3>, kept: Tensor<2>, state: Tensor<2>) -> Tensor<3> {
    let ([batch, steps, width], found) = (forget.dims(), (candidate.dims(), kept.dims(), state.dims()));
    assert!(
        found == ([batch, steps, width], [batch, steps], [batch, width]),
        "gated recurrence: candidates, kept and state {found:?} do not fit the gates {:?}",
        [batch, steps, width]
    );
    let host = is_on_host(&forget.device());
    let states = if host { Dispatch::gated_recurrence } else { portable::rows::gated_recurrence::<Dispatch> };
    Tensor::from_dispatch(states(
        forget.into_dispatch(),
        candidate.into_dispatch(),
        kept.into_dispatch(),
        state.into_dispatch(),
    ))
}

/// Attention of every step over itself and the steps before it, `softmax(q·Kᵀ/√d)·V` in each head of size `d`.
///
/// # Shapes
///
/// - query, key, value, output: `[batch, steps, width]`, heads side by side
///
/// # Panics
///
/// Panics, with the shapes, if they differ, the window is 0, or the width is 0 or not a multiple of the heads (of twice the heads, with rotary
/// positions).
#[track_caller]
pub fn causal_attention(query: Tensor<3>, key: Tensor<3>, value: Tensor<3>, attention: CausalAttention) -> Tensor<3> {
    let shapes = [query.dims(), key.dims(), value.dims()];
    check_causal_attention(shapes, &attention);
    let host = is_on_host(&query.device());
    let mixed = if host { Dispatch::causal_attention } else { portable::rows::causal_attention::<Dispatch> };
    Tensor::from_dispatch(mixed(query.into_dispatch(), key.into_dispatch(), value.into_dispatch(), attention))
}
