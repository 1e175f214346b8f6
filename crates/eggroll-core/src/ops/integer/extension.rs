//! The backend extension trait of integer operations.

use super::operands::{GatePrimitive, IntegerBias, IntegerNoisePrimitive, VectorPrimitive};
use super::portable;
use crate::arithmetic::integer::{Rounding, Votes};
use crate::ops::extension_trait::extension_trait;
use crate::rng::key::{NoiseKey, PairRange};
use burn::backend::tensor::IntTensor;
use burn::backend::{Autodiff, Backend};
#[cfg(feature = "cube")]
use burn::tensor::{DType, Shape};

extension_trait! {
/// Integer operations of a backend. All are exact: all backends agree bit for bit.
///
/// The defaults are composed of ordinary integer operations on the device.
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
        #[extension_type] bias: IntegerBias<Self>,
        activate: bool,
        rounding: Rounding,
    ) -> IntTensor<Self> {
        portable::linear::<Self>(x, weight, noise, bias, activate, rounding)
    }

    /// See [`head`](super::head()).
    #[fusion(dtype = DType::I32, shape = Shape::new([x[0], embedding[0]]))]
    fn integer_head(
        x: IntTensor<Self>,
        embedding: IntTensor<Self>,
        #[extension_type] noise: IntegerNoisePrimitive<Self>,
    ) -> IntTensor<Self> {
        portable::head::<Self>(x, embedding, noise)
    }

    /// See [`embedding`](super::embedding()).
    #[fusion(dtype = weight, shape = Shape::new([tokens[0], weight[1]]))]
    fn integer_embedding(
        tokens: IntTensor<Self>,
        weight: IntTensor<Self>,
        #[extension_type] noise: IntegerNoisePrimitive<Self>,
        #[extension_type] bias: IntegerBias<Self>,
        rounding: Rounding,
    ) -> IntTensor<Self> {
        portable::embedding::<Self>(tokens, weight, noise, bias, rounding)
    }

    /// See [`norm`](super::norm()).
    #[fusion(dtype = x, shape = x)]
    fn integer_norm(
        x: IntTensor<Self>,
        #[extension_type] gain: VectorPrimitive<Self>,
        #[extension_type] bias: IntegerBias<Self>,
        rounding: Rounding,
    ) -> IntTensor<Self> {
        portable::norm::<Self>(x, gain, bias, rounding)
    }

    /// See [`add`](super::add()).
    #[fusion(dtype = a, shape = a)]
    fn integer_add(a: IntTensor<Self>, b: IntTensor<Self>, rounding: Rounding) -> IntTensor<Self> {
        portable::add::<Self>(a, b, rounding)
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

    /// See [`rotary`](super::rotary()).
    #[fusion(dtype = x, shape = x)]
    fn integer_rotary(x: IntTensor<Self>, steps: usize, first_position: usize, heads: usize) -> IntTensor<Self> {
        portable::rotary::<Self>(x, steps, first_position, heads)
    }

    /// See [`attention`](super::attention()).
    #[fusion(dtype = query, shape = query)]
    fn integer_attention(
        query: IntTensor<Self>,
        keys: IntTensor<Self>,
        values: IntTensor<Self>,
        heads: usize,
    ) -> IntTensor<Self> {
        portable::attention::<Self>(query, keys, values, heads)
    }

    /// See [`log_likelihood`](super::log_likelihood()).
    #[fusion(dtype = DType::I32, shape = Shape::new([*members]))]
    fn integer_log_likelihood(
        logits: IntTensor<Self>,
        targets: IntTensor<Self>,
        members: usize,
        rounding: Rounding,
    ) -> IntTensor<Self> {
        portable::log_likelihood::<Self>(logits, targets, members, rounding)
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
}

/// The portable defaults on the inner backend's integers.
impl<B, C> IntegerOps for Autodiff<B, C>
where
    B: IntegerOps,
    C: burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy,
{
}
