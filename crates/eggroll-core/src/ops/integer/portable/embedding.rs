//! Rows of a table.

use super::linear::matmul;
use super::{PairNoise, add_bias, clip, dims, rescale, reshape, wide};
use crate::arithmetic::integer::Rounding;
use crate::ops::integer::{IntegerBias, IntegerNoisePrimitive};
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::Shape;

pub(crate) fn embedding<B: Backend>(
    tokens: IntTensor<B>,
    weight: IntTensor<B>,
    noise: IntegerNoisePrimitive<B>,
    bias: IntegerBias<B>,
    rounding: Rounding,
) -> IntTensor<B> {
    let ([vocab, width], rows, dtype) = (dims::<B>(&weight), tokens.shape()[0], weight.dtype());
    let mut y = wide::<B>(B::int_select(weight, 0, tokens.clone())); // [rows, width]
    if let Some(noise) = PairNoise::of(noise) {
        let (pairs, rank) = (noise.pairs, noise.rank);
        let each = rows / pairs;
        let indices = reshape::<B, 3>(tokens, [pairs, 1, each]);
        let indices = B::int_expand(indices, Shape::new([pairs, rank, each]));
        let b = B::int_gather(2, noise.part(0, rank, vocab), indices); // [pairs, rank, 2 · rows of a member]
        let a = noise.part(rank * vocab, rank, width);
        let product = matmul::<B>(B::int_swap_dims(b, 1, 2), a);
        let product = reshape::<B, 4>(product, [pairs, 2, each / 2, width]);
        let delta = noise.of_members(product, noise.shift, rounding);
        y = B::int_add(y, reshape::<B, 2>(delta, [rows, width]));
    }
    let y = add_bias::<B>(y, bias, rounding);
    let y = match rounding {
        Rounding::Floor => clip::<B>(y),
        Rounding::Nearest => rescale::<B>(y),
    };
    B::int_cast(y, dtype.into())
}
