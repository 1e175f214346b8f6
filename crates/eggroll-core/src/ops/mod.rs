//! Perturbed operations: the backend extension trait, and the functions on [`Tensor`](burn::tensor::Tensor) that users of this crate call.
//!
//! Every function takes a [`PairRange`]: the members of consecutive antithetic pairs. The population is folded
//! into the leading axis, member-major: row block `m` belongs to member `m` of the range.

mod checks;
mod cross_entropy;
mod dense_linear;
mod entry_sum;
mod estimate;
#[doc(hidden)]
pub mod explicit;
pub mod integer;
mod low_rank_linear;
mod noise;
mod operands;
pub(crate) mod part_estimate;
mod patches;
mod perturbed_embedding;
mod perturbed_vector;
pub(crate) mod portable;
mod row_projection;
pub mod rows;
mod source;
mod sparse;
mod window;

pub use crate::rng::key::PairRange;
pub use cross_entropy::{member_cross_entropy, row_cross_entropy};
pub use dense_linear::dense_linear;
pub use estimate::{dense_estimate, low_rank_estimate};
pub use low_rank_linear::low_rank_linear;
pub use noise::noise;
pub use operands::{BiasPrimitive, DenseNoise, InputRows, LinearBias, LinearMembers, LowRankNoise, MatrixNoise};
pub(crate) use operands::{DEPENDENT, check_causal_attention};
pub use part_estimate::{Input, orthonormal_rows};
pub use patches::patches;
pub use perturbed_embedding::perturbed_embedding;
pub use perturbed_vector::perturbed_vector;
pub use row_projection::row_projection;
pub use rows::{CausalAttention, causal_attention, gated_recurrence, gelu, rms_normalized, sigmoid, silu, tanh};
pub(crate) use source::loudness;
pub use source::{NoiseSource, SourcePrimitive, table_start};
#[cfg(feature = "cube")]
pub(crate) use source::{TABLE_STEP, table_runs};
pub use sparse::{SparseNoise, sparse_embedding, sparse_entries, sparse_estimate, sparse_linear};
pub use window::Window;

use checks::check_linear;
#[cfg(feature = "cube")]
use checks::{embedding_shape, linear_shape, patches_shape};

use crate::rng::key::NoiseKey;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, backend_extension};
use burn::tensor::DType;
#[cfg(feature = "cube")]
use burn::tensor::Shape;

/// Perturbed operations of a backend.
///
/// The defaults are composed of ordinary operations on the device and hold the noise of the call's members in
/// memory; backends override them with kernels that do not. Checks of shapes stand in the public functions of
/// [`ops`](crate::ops); backends whose kernels work on slices of memory check every call again.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    NdArray: cfg(feature = "ndarray"),
    Cube: cfg(feature = "cube"),
    Fusion: cfg(feature = "cube"),
    Autodiff,
)]
pub trait PerturbedOps: Backend {
    /// See [`low_rank_linear`].
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

    /// See [`dense_linear`].
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

    /// See [`perturbed_embedding`].
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

    /// See [`patches`].
    #[fusion(dtype = images, shape = patches_shape(images, window))]
    fn patches(images: FloatTensor<Self>, window: Window, input: InputRows) -> FloatTensor<Self> {
        let _ = input; // what is the same for all members needs no special care here
        portable::patches::<Self>(images, window)
    }

    /// See [`perturbed_vector`].
    #[fusion(dtype = vector, shape = Shape::new([pairs.members(), vector[0]]))]
    fn perturbed_vector(
        vector: FloatTensor<Self>,
        noise: DenseNoise,
        #[extension_type] source: SourcePrimitive<Self>,
        pairs: PairRange,
    ) -> FloatTensor<Self> {
        portable::perturbed_vector::<Self>(vector, noise, source, pairs)
    }

    /// See [`low_rank_estimate`].
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

    /// See [`dense_estimate`].
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

    /// See [`noise`]; `like` gives device and type.
    #[fusion(dtype = like, shape = Shape::new([pairs.count as usize, *elements]))]
    fn noise(like: FloatTensor<Self>, key: NoiseKey, pairs: PairRange, elements: usize) -> FloatTensor<Self> {
        portable::noise::<Self>(key, pairs, elements, &like)
    }

    /// See [`row_projection`].
    #[fusion(dtype = gradient, shape = gradient.clone())]
    fn row_projection(gradient: FloatTensor<Self>, x: FloatTensor<Self>) -> FloatTensor<Self> {
        portable::row_projection::<Self>(gradient, x)
    }

    /// See [`member_cross_entropy`].
    #[fusion(dtype = logits, shape = Shape::new([*members]))]
    fn member_cross_entropy(logits: FloatTensor<Self>, targets: IntTensor<Self>, members: usize) -> FloatTensor<Self> {
        portable::member_cross_entropy::<Self>(logits, targets, members)
    }

    /// See [`row_cross_entropy`].
    #[fusion(dtype = logits, shape = Shape::new([*members, logits[0] / (*members).max(1)]))]
    fn row_cross_entropy(logits: FloatTensor<Self>, targets: IntTensor<Self>, members: usize) -> FloatTensor<Self> {
        portable::row_cross_entropy::<Self>(logits, targets, members)
    }
}

/// The portable defaults: no gradient flows through noise, so Burn's autodiff decorator needs no more.
impl<B, C> PerturbedOps for Autodiff<B, C>
where
    B: PerturbedOps,
    C: burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy,
{
}
