//! Integer operations: functions on integer tensors, and the backend extension trait behind them.
//!
//! Values are int8 within ±127 in fixed point 4. Tensors hold them in type I8 if the device has it, else in another
//! integer type ([`integer_type`]). All sums are int32 and wrap. Every backend gives the same bits. Members are folded
//! into the leading axis as in [`crate::ops`]; without [`IntegerNoise`] an operation is the plain one.
//!
//! Two families of models differ in their [`Rounding`]: Q-EGGROLL's recurrent model rounds down, the transformer to
//! nearest. The formulas are in [`crate::testing::reference::integer`].

mod add;
mod attention;
mod embedding;
pub(crate) mod extension;
mod gru;
mod head;
mod linear;
mod log_likelihood;
mod noise;
mod norm;
mod operands;
mod perturbed_vector;
pub(crate) mod portable;
mod rotary;
mod sum_part_votes;
mod sum_votes;
mod update;

pub use crate::arithmetic::integer::Rounding;
pub use add::add;
pub use attention::attention;
pub use embedding::embedding;
pub(crate) use extension::IntegerOps;
pub use gru::{Gate, gru};
pub use head::head;
pub use linear::linear;
pub use log_likelihood::log_likelihood;
pub use noise::{noise, table_noise};
pub use norm::norm;
use operands::check_votes;
pub(crate) use operands::{
    GatePrimitive, IntegerBias, IntegerMembers, IntegerNoisePrimitive, MAX_DEPTH, VectorPrimitive,
};
pub use operands::{IntegerNoise, Vector};
pub(crate) use operands::{bias_primitive, primitive};
#[cfg(feature = "kernel-sources")]
#[doc(hidden)]
pub mod backend {
    //! The extension trait and its operands, for `eggroll-kernels` alone: nothing checks these calls.
    pub use super::extension::IntegerOps;
    pub use super::operands::{GatePrimitive, IntegerBias, IntegerMembers, IntegerNoisePrimitive, VectorPrimitive};
}
pub use perturbed_vector::perturbed_vector;
pub use rotary::rotary;
pub use sum_part_votes::{MOST_PART_VOTE, sum_part_votes};
pub use sum_votes::sum_votes;
pub use update::update;

use crate::work::profile::{self, Component};
use burn::tensor::kind::Basic;
use burn::tensor::{DType, Device, Tensor};

/// The type that int8 values have on a device: I8, or I32 where shaders have no 8-bit integers.
///
/// # Example
///
/// ```
/// use burn::tensor::{DType, Device};
///
/// assert_eq!(eggroll_core::ops::integer::integer_type(&Device::flex()), DType::I8);
/// ```
pub fn integer_type(device: &Device) -> DType {
    if device.supports_dtype(DType::I8) { DType::I8 } else { DType::I32 }
}

/// Runs an operation in a span of `component`.
fn traced<const D: usize, K: Basic>(component: Component, operation: impl FnOnce() -> Tensor<D, K>) -> Tensor<D, K> {
    let span = profile::span(component, 0);
    let y = operation();
    span.set_bytes(y.shape().num_elements() * y.dtype().size());
    span.end(|| drop(y.device().sync()));
    y
}
