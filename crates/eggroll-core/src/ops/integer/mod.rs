//! Integer operations: the backend extension trait of Q-EGGROLL, and the functions on integer tensors.
//!
//! Values are int8 saturated at ±127 in fixed point 4, held in tensors of type I8 where the device has it and of another
//! integer type elsewhere ([`integer_type`]); all sums are int32 and wrap. Every backend gives the same bits. Members are
//! folded into the leading axis as in [`crate::ops`]; without [`IntegerNoise`] an operation is the plain one.
//!
//! The formulas are in [`crate::testing::reference::integer`].

mod add;
mod embedding;
mod gru;
mod layer_norm;
mod linear;
mod log_likelihood;
mod noise;
mod operands;
mod perturbed_vector;
pub(crate) mod portable;
mod sum_votes;
pub mod transformer;
mod update;

pub use add::add;
pub use embedding::embedding;
pub use gru::{Gate, gru};
pub use layer_norm::layer_norm;
pub(crate) use linear::MAX_DEPTH;
pub use linear::linear;
pub use log_likelihood::log_likelihood;
pub use noise::{noise, table_noise};
use operands::check_votes;
pub(crate) use operands::primitive;
pub use operands::{GatePrimitive, IntegerMembers, IntegerNoise, IntegerNoisePrimitive};
pub use perturbed_vector::perturbed_vector;
pub use sum_votes::sum_votes;
pub use update::update;

use crate::arithmetic::integer::Votes;
use crate::rng::key::{NoiseKey, PairRange};
use crate::work::profile::{self, Component};
use burn::backend::tensor::IntTensor;
use burn::backend::{Autodiff, Backend, backend_extension};
#[cfg(feature = "cube")]
use burn::tensor::Shape;
use burn::tensor::{DType, Device, Int, Tensor};

/// Integer operations of a backend: all exact, so that all backends agree bit for bit.
///
/// The defaults are composed of ordinary integer operations on the device.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    NdArray: cfg(feature = "ndarray"),
    Cube: cfg(feature = "cube"),
    Fusion: cfg(feature = "cube"),
    Autodiff,
)]
pub trait IntegerOps: Backend {
    /// See [`noise`]; `like` gives device and type.
    #[fusion(dtype = like, shape = Shape::new([pairs.count as usize, *elements]))]
    fn integer_noise(like: IntTensor<Self>, key: NoiseKey, pairs: PairRange, elements: usize) -> IntTensor<Self> {
        portable::noise::<Self>(&like, key, pairs, elements)
    }

    /// See [`linear`].
    #[fusion(dtype = weight, shape = Shape::new([x[0], weight[1]]))]
    fn integer_linear(
        x: IntTensor<Self>,
        weight: IntTensor<Self>,
        #[extension_type] noise: IntegerNoisePrimitive<Self>,
    ) -> IntTensor<Self> {
        portable::linear::<Self>(x, weight, noise)
    }

    /// See [`embedding`].
    #[fusion(dtype = weight, shape = Shape::new([tokens[0], weight[1]]))]
    fn integer_embedding(
        tokens: IntTensor<Self>,
        weight: IntTensor<Self>,
        #[extension_type] noise: IntegerNoisePrimitive<Self>,
    ) -> IntTensor<Self> {
        portable::embedding::<Self>(tokens, weight, noise)
    }

    /// See [`layer_norm`].
    #[fusion(dtype = weight, shape = x)]
    fn integer_layer_norm(
        x: IntTensor<Self>,
        weight: IntTensor<Self>,
        #[extension_type] noise: IntegerNoisePrimitive<Self>,
    ) -> IntTensor<Self> {
        portable::layer_norm::<Self>(x, weight, noise)
    }

    /// See [`add`].
    #[fusion(dtype = a, shape = a)]
    fn integer_add(a: IntTensor<Self>, b: IntTensor<Self>) -> IntTensor<Self> {
        portable::add::<Self>(&[a, b])
    }

    /// See [`gru`].
    #[fusion(dtype = state, shape = Shape::new([starts[0], state[1]]))]
    fn integer_gru(
        state: IntTensor<Self>,
        starts: IntTensor<Self>,
        #[extension_type] forget: GatePrimitive<Self>,
        #[extension_type] candidate: GatePrimitive<Self>,
    ) -> IntTensor<Self> {
        portable::gru::<Self>(state, starts, forget, candidate)
    }

    /// See [`log_likelihood`].
    #[fusion(dtype = DType::I32, shape = Shape::new([*members]))]
    fn integer_log_likelihood(logits: IntTensor<Self>, targets: IntTensor<Self>, members: usize) -> IntTensor<Self> {
        portable::log_likelihood::<Self>(logits, targets, members)
    }

    /// See [`sum_votes`]; the noise of a vector, rank 0, is for one row.
    #[fusion(dtype = DType::I32, shape = Shape::new([*d_input, *d_output]))]
    fn integer_sum_votes(
        noise: IntTensor<Self>,
        scores: IntTensor<Self>,
        rank: usize,
        votes: Votes,
        d_input: usize,
        d_output: usize,
    ) -> IntTensor<Self> {
        portable::sum_votes::<Self>(noise, scores, rank, votes, [d_input, d_output])
    }

    /// See [`update`].
    #[fusion(dtype = parameter, shape = parameter)]
    fn integer_update(
        parameter: IntTensor<Self>,
        noise: IntTensor<Self>,
        scores: IntTensor<Self>,
        rank: usize,
        votes: Votes,
        limit: i32,
    ) -> IntTensor<Self> {
        portable::update::<Self>(parameter, noise, scores, rank, votes, limit)
    }
}

/// The portable defaults on the inner backend's integers.
impl<B, C> IntegerOps for Autodiff<B, C>
where
    B: IntegerOps,
    C: burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy,
{
}

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
fn traced<const D: usize>(component: Component, operation: impl FnOnce() -> Tensor<D, Int>) -> Tensor<D, Int> {
    let span = profile::span(component, 0);
    let y = operation();
    span.set_bytes(y.shape().num_elements() * y.dtype().size());
    span.end(|| drop(y.device().sync()));
    y
}
