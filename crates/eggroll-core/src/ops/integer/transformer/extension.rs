//! The backend extension trait of the integer transformer.

use super::operands::{IntegerBias, VectorPrimitive};
use super::portable;
use crate::ops::integer::IntegerNoisePrimitive;
use burn::backend::tensor::IntTensor;
use burn::backend::{Autodiff, Backend, backend_extension};
#[cfg(feature = "cube")]
use burn::tensor::{DType, Shape};

/// Operations of the integer transformer on a backend: all exact, so that all backends agree bit for bit.
///
/// The defaults are composed of ordinary integer operations on the device.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    NdArray: cfg(feature = "ndarray"),
    Cube: cfg(feature = "cube"),
    Fusion: cfg(feature = "cube"),
    Autodiff,
)]
pub trait IntegerTransformerOps: Backend {
    /// See [`linear`](super::linear()).
    #[fusion(dtype = weight, shape = Shape::new([x[0], weight[1]]))]
    fn integer_transformer_linear(
        x: IntTensor<Self>,
        weight: IntTensor<Self>,
        #[extension_type] noise: IntegerNoisePrimitive<Self>,
        #[extension_type] bias: IntegerBias<Self>,
        activate: bool,
    ) -> IntTensor<Self> {
        portable::linear::<Self>(x, weight, noise, bias.into_vector(), activate)
    }

    /// See [`head`](super::head()).
    #[fusion(dtype = DType::I32, shape = Shape::new([x[0], embedding[0]]))]
    fn integer_transformer_head(
        x: IntTensor<Self>,
        embedding: IntTensor<Self>,
        #[extension_type] noise: IntegerNoisePrimitive<Self>,
    ) -> IntTensor<Self> {
        portable::head::<Self>(x, embedding, noise)
    }

    /// See [`embedding`](super::embedding()).
    #[fusion(dtype = weight, shape = Shape::new([tokens[0], weight[1]]))]
    fn integer_transformer_embedding(
        tokens: IntTensor<Self>,
        weight: IntTensor<Self>,
        #[extension_type] noise: IntegerNoisePrimitive<Self>,
        #[extension_type] bias: VectorPrimitive<Self>,
    ) -> IntTensor<Self> {
        portable::embedding::<Self>(tokens, weight, noise, bias)
    }

    /// See [`norm`](super::norm()).
    #[fusion(dtype = x, shape = x)]
    fn integer_transformer_norm(
        x: IntTensor<Self>,
        #[extension_type] gain: VectorPrimitive<Self>,
        #[extension_type] bias: VectorPrimitive<Self>,
    ) -> IntTensor<Self> {
        portable::norm::<Self>(x, gain, bias)
    }

    /// See [`add`](super::add()).
    #[fusion(dtype = x, shape = x)]
    fn integer_transformer_add(x: IntTensor<Self>, y: IntTensor<Self>) -> IntTensor<Self> {
        portable::add::<Self>(x, y)
    }

    /// See [`rotary`](super::rotary()).
    #[fusion(dtype = x, shape = x)]
    fn integer_transformer_rotary(
        x: IntTensor<Self>,
        steps: usize,
        first_position: usize,
        heads: usize,
    ) -> IntTensor<Self> {
        portable::rotary::<Self>(x, steps, first_position, heads)
    }

    /// See [`attention`](super::attention()).
    #[fusion(dtype = query, shape = query)]
    fn integer_transformer_attention(
        query: IntTensor<Self>,
        keys: IntTensor<Self>,
        values: IntTensor<Self>,
        heads: usize,
    ) -> IntTensor<Self> {
        portable::attention::<Self>(query, keys, values, heads)
    }

    /// See [`log_likelihood`](super::log_likelihood()).
    #[fusion(dtype = DType::I32, shape = Shape::new([*members]))]
    fn integer_transformer_log_likelihood(
        logits: IntTensor<Self>,
        targets: IntTensor<Self>,
        members: usize,
    ) -> IntTensor<Self> {
        portable::log_likelihood::<Self>(logits, targets, members)
    }
}

/// The portable defaults on the inner backend's integers.
impl<B, C> IntegerTransformerOps for Autodiff<B, C>
where
    B: IntegerTransformerOps,
    C: burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy,
{
}
