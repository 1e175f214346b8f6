//! Activations inside modules: Burn's, perturbed where they have parameters.

use crate::linear::apply;
use burn::nn::activation::Activation;
use burn::nn::{self, PRelu, SwiGlu};
use burn::tensor::Tensor;
use burn::tensor::activation::silu;
use eggroll_core::ops::{self, InputRows};
use eggroll_core::scope::{self, ActiveParameter};

/// Applies `activation`; inside `evaluate` with every member's parameters, if it has any, and with kernels for populations.
#[track_caller]
pub(crate) fn activate<const D: usize>(activation: &Activation, input: Tensor<D>) -> Tensor<D> {
    match activation {
        Activation::SwiGlu(layer) => swi_glu(layer, input),
        Activation::PRelu(layer) => match scope::active(&layer.alpha) {
            None => layer.forward(input),
            Some(alpha) => p_relu(layer, alpha, input),
        },
        other if !scope::is_active() => other.forward(input),
        Activation::Gelu(gelu) if !gelu.approximate => ops::gelu(input),
        Activation::Sigmoid(_) => ops::sigmoid(input),
        other => other.forward(input),
    }
}

/// `silu(x·W_inner)·(x·W_outer)`; without a scope, the same operations as Burn's.
#[track_caller]
fn swi_glu<const D: usize>(layer: &SwiGlu, input: Tensor<D>) -> Tensor<D> {
    let linear = |layer: &nn::Linear, input| apply(&layer.weight, layer.bias.as_ref(), input, InputRows::PerMember);
    let inner = linear(&layer.linear_inner, input.clone());
    (if scope::is_active() { ops::silu(inner) } else { silu(inner) }) * linear(&layer.linear_outer, input)
}

/// `max(x, 0) + α_m·min(x, 0)`, an `α` for all or one for each index of the second axis.
#[track_caller]
fn p_relu<const D: usize>(layer: &PRelu, parameter: ActiveParameter, input: Tensor<D>) -> Tensor<D> {
    parameter.refuse_empty(&input.dims());
    let members = parameter.pairs().members();
    let (batch, alpha) = (input.dims()[0], parameter.vector(&layer.alpha)); // [members, channels]
    let [_, channels] = alpha.dims();
    assert!(
        batch.is_multiple_of(members),
        "PReLU: the leading axis of {:?} is not a multiple of {members} members",
        input.dims()
    );
    parameter.check_rows(batch);
    let mut shape = [1; D];
    shape[0] = batch;
    if channels > 1 {
        shape[1] = channels;
    }
    let alpha = alpha.unsqueeze_dim::<3>(1).repeat_dim(1, batch / members).reshape(shape);
    input.clone().clamp_min(0.0) + alpha * input.clamp_max(0.0)
}
