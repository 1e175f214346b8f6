//! The backend extension trait of perturbed operations.

use super::extension_trait::extension_trait;
use super::operands::{BiasPrimitive, DenseNoise, InputRows, LinearMembers, LowRankNoise, MatrixNoise};
use super::portable;
use super::source::SourcePrimitive;
use super::window::Window;
use crate::rng::key::{NoiseKey, PairRange};
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend};
use burn::tensor::DType;
#[cfg(feature = "cube")]
use burn::tensor::Shape;

extension_trait! {
/// Perturbed operations of a backend.
///
/// The defaults are composed of ordinary operations on the device and hold the noise of the call's members in memory. Backends
/// override them with kernels that hold none. Only the public functions of [`ops`](crate::ops) call them, after checking every
/// operand.
pub trait PerturbedOps: Backend {
    /// See [`low_rank_linear`](super::low_rank_linear).
    #[fusion(dtype = x, shape = linear_shape(x, weight, members))]
    fn low_rank_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        #[extension_type] bias: BiasPrimitive<Self>,
        noise: LowRankNoise,
        #[extension_type] source: SourcePrimitive<Self>,
        members: LinearMembers,
    ) -> FloatTensor<Self> {
        portable::low_rank_linear::<Self>(x, weight, bias, noise, source, members)
    }

    /// See [`dense_linear`](super::dense_linear).
    #[fusion(dtype = x, shape = linear_shape(x, weight, members))]
    fn dense_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        #[extension_type] bias: BiasPrimitive<Self>,
        noise: DenseNoise,
        #[extension_type] source: SourcePrimitive<Self>,
        members: LinearMembers,
    ) -> FloatTensor<Self> {
        portable::dense_linear::<Self>(x, weight, bias, noise, source, members)
    }

    /// See [`perturbed_embedding`](super::perturbed_embedding).
    #[fusion(dtype = weight, shape = embedding_shape(weight, indices, members))]
    fn perturbed_embedding(
        weight: FloatTensor<Self>,
        indices: IntTensor<Self>,
        noise: MatrixNoise,
        #[extension_type] source: SourcePrimitive<Self>,
        members: LinearMembers,
    ) -> FloatTensor<Self> {
        portable::perturbed_embedding::<Self>(weight, indices, noise, source, members)
    }

    /// See [`patches`](super::patches).
    #[fusion(dtype = images, shape = patches_shape(images, window))]
    fn patches(images: FloatTensor<Self>, window: Window, input: InputRows) -> FloatTensor<Self> {
        let _ = input; // what is the same for all members needs no special care here
        portable::patches::<Self>(images, window)
    }

    /// See [`perturbed_vector`](super::perturbed_vector).
    #[fusion(dtype = vector, shape = Shape::new([pairs.members(), vector[0]]))]
    fn perturbed_vector(
        vector: FloatTensor<Self>,
        noise: DenseNoise,
        #[extension_type] source: SourcePrimitive<Self>,
        pairs: PairRange,
    ) -> FloatTensor<Self> {
        portable::perturbed_vector::<Self>(vector, noise, source, pairs)
    }

    /// See [`low_rank_estimate`](super::low_rank_estimate).
    #[fusion(dtype = *dtype, shape = Shape::new([*d_input, *d_output]))]
    fn low_rank_estimate(
        weights: FloatTensor<Self>,
        noise: LowRankNoise,
        #[extension_type] source: SourcePrimitive<Self>,
        first_pair: u32,
        d_input: usize,
        d_output: usize,
        dtype: DType,
    ) -> FloatTensor<Self> {
        portable::low_rank_estimate::<Self>(weights, noise, source, first_pair, [d_input, d_output], dtype)
    }

    /// See [`dense_estimate`](super::dense_estimate).
    #[fusion(dtype = *dtype, shape = Shape::new([*elements]))]
    fn dense_estimate(
        weights: FloatTensor<Self>,
        noise: DenseNoise,
        #[extension_type] source: SourcePrimitive<Self>,
        first_pair: u32,
        elements: usize,
        dtype: DType,
    ) -> FloatTensor<Self> {
        portable::dense_estimate::<Self>(weights, noise, source, first_pair, elements, dtype)
    }

    /// See [`noise`](super::noise()); `like` gives device and type.
    #[fusion(dtype = like, shape = Shape::new([pairs.count as usize, *elements]))]
    fn noise(like: FloatTensor<Self>, key: NoiseKey, pairs: PairRange, elements: usize) -> FloatTensor<Self> {
        portable::noise::<Self>(key, pairs, elements, &like)
    }

    /// See [`row_projection`](super::row_projection).
    #[fusion(dtype = gradient, shape = gradient.clone())]
    fn row_projection(gradient: FloatTensor<Self>, x: FloatTensor<Self>) -> FloatTensor<Self> {
        portable::row_projection::<Self>(gradient, x)
    }

    /// See [`member_cross_entropy`](super::member_cross_entropy).
    #[fusion(dtype = logits, shape = Shape::new([*members]))]
    fn member_cross_entropy(logits: FloatTensor<Self>, targets: IntTensor<Self>, members: usize) -> FloatTensor<Self> {
        portable::member_cross_entropy::<Self>(logits, targets, members)
    }

    /// See [`row_cross_entropy`](super::row_cross_entropy).
    #[fusion(dtype = logits, shape = Shape::new([*members, logits[0] / (*members).max(1)]))]
    fn row_cross_entropy(logits: FloatTensor<Self>, targets: IntTensor<Self>, members: usize) -> FloatTensor<Self> {
        portable::row_cross_entropy::<Self>(logits, targets, members)
    }
}
}

/// The portable defaults: no gradient flows through noise, so Burn's autodiff decorator needs no more.
impl<B, C> PerturbedOps for Autodiff<B, C>
where
    B: PerturbedOps,
    C: burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy,
{
}

/// Shape of the output of a linear operation, for backends that run it later.
#[cfg(feature = "cube")]
fn linear_shape(x: &Shape, weight: &Shape, members: &LinearMembers) -> Shape {
    Shape::new([members.pairs.members() * members.rows_per_member(x[0]), weight[1]])
}

/// Shape of the output of an embedding, for backends that run it later.
#[cfg(feature = "cube")]
fn embedding_shape(weight: &Shape, indices: &Shape, members: &LinearMembers) -> Shape {
    Shape::new([members.pairs.members() * members.rows_per_member(indices[0]), weight[1]])
}

/// Shape of patches, for backends that cut them out later.
#[cfg(feature = "cube")]
fn patches_shape(images: &Shape, window: &Window) -> Shape {
    let [height, width] = window.positions([images[2], images[3]]);
    Shape::new([images[0] * height * width, images[1] * window.size()])
}
