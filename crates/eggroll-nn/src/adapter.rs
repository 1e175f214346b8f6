//! Weights with a LoRA adapter, `W + s·A·B`: layers perturb `A` and `B` as two linear layers next to `W`.

use burn::module::{LoraAdapter, Param};
use burn::tensor::{DType, Tensor};
use eggroll_core::scope::{self, ActiveParameter};

/// A weight and its adapter, in a scope that perturbs a factor.
pub(crate) struct Adapted<'a> {
    pub adapter: &'a LoraAdapter,
    /// The weight without its adapter, in floats of the adapter's type.
    pub base: Tensor<2>,
    pub weight: ActiveParameter,
    pub a: ActiveParameter,
    pub b: ActiveParameter,
}

/// The parts of a weight; `None` without an adapter, or outside a scope that trains it.
#[track_caller]
pub(crate) fn adapted(weight: &Param<Tensor<2>>) -> Option<Adapted<'_>> {
    let adapter = weight.reparameterization::<LoraAdapter>()?;
    let (a, b) = (scope::active(&adapter.a)?, scope::active(&adapter.b)?);
    if a.is_inactive() && b.is_inactive() {
        return None;
    }
    Some(Adapted { adapter, base: floats(weight.base(), adapter.a.dtype()), weight: scope::active(weight)?, a, b })
}

/// A weight, which may be quantized, in floats of this type.
pub(crate) fn floats(weight: Tensor<2>, dtype: DType) -> Tensor<2> {
    let weight = if weight.dtype().is_float() { weight } else { weight.dequantize() };
    if weight.dtype() == dtype { weight } else { weight.cast(dtype) }
}
