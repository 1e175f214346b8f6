//! The backend extension trait of integer operations.

use super::operands::{GatePrimitive, IntegerNoisePrimitive};
use super::portable;
use crate::arithmetic::integer::Votes;
use crate::rng::key::{NoiseKey, PairRange};
use burn::backend::tensor::IntTensor;
use burn::backend::{Autodiff, Backend, backend_extension};
#[cfg(feature = "cube")]
use burn::tensor::{DType, Shape};

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
    /// See [`noise`](super::noise()); `like` gives device and type.
    #[fusion(dtype = like, shape = Shape::new([pairs.count as usize, *elements]))]
    fn integer_noise(like: IntTensor<Self>, key: NoiseKey, pairs: PairRange, elements: usize) -> IntTensor<Self> {
        portable::noise::<Self>(&like, key, pairs, elements)
    }

    /// See [`linear`](super::linear()).
    #[fusion(dtype = weight, shape = Shape::new([x[0], weight[1]]))]
    fn integer_linear(
        x: IntTensor<Self>,
        weight: IntTensor<Self>,
        #[extension_type] noise: IntegerNoisePrimitive<Self>,
    ) -> IntTensor<Self> {
        portable::linear::<Self>(x, weight, noise)
    }

    /// See [`embedding`](super::embedding()).
    #[fusion(dtype = weight, shape = Shape::new([tokens[0], weight[1]]))]
    fn integer_embedding(
        tokens: IntTensor<Self>,
        weight: IntTensor<Self>,
        #[extension_type] noise: IntegerNoisePrimitive<Self>,
    ) -> IntTensor<Self> {
        portable::embedding::<Self>(tokens, weight, noise)
    }

    /// See [`layer_norm`](super::layer_norm()).
    #[fusion(dtype = weight, shape = x)]
    fn integer_layer_norm(
        x: IntTensor<Self>,
        weight: IntTensor<Self>,
        #[extension_type] noise: IntegerNoisePrimitive<Self>,
    ) -> IntTensor<Self> {
        portable::layer_norm::<Self>(x, weight, noise)
    }

    /// See [`add`](super::add()).
    #[fusion(dtype = a, shape = a)]
    fn integer_add(a: IntTensor<Self>, b: IntTensor<Self>) -> IntTensor<Self> {
        portable::add::<Self>(&[a, b])
    }

    /// See [`gru`](super::gru()).
    #[fusion(dtype = state, shape = Shape::new([starts[0], state[1]]))]
    fn integer_gru(
        state: IntTensor<Self>,
        starts: IntTensor<Self>,
        #[extension_type] forget: GatePrimitive<Self>,
        #[extension_type] candidate: GatePrimitive<Self>,
    ) -> IntTensor<Self> {
        portable::gru::<Self>(state, starts, forget, candidate)
    }

    /// See [`log_likelihood`](super::log_likelihood()).
    #[fusion(dtype = DType::I32, shape = Shape::new([*members]))]
    fn integer_log_likelihood(logits: IntTensor<Self>, targets: IntTensor<Self>, members: usize) -> IntTensor<Self> {
        portable::log_likelihood::<Self>(logits, targets, members)
    }

    /// See [`sum_votes`](super::sum_votes()); the noise of a vector, rank 0, is for one row.
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

    /// See [`update`](super::update()).
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
