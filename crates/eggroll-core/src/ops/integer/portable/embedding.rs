//! Rows of a table.

use super::linear::matmul;
use super::{PairNoise, clip, dims, reshape, wide};
use crate::ops::integer::IntegerNoisePrimitive;
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::Shape;

pub(crate) fn embedding<B: Backend>(
    tokens: IntTensor<B>,
    weight: IntTensor<B>,
    noise: IntegerNoisePrimitive<B>,
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
        let delta = matmul::<B>(B::int_swap_dims(b, 1, 2), a);
        let delta = noise.signed(reshape::<B, 4>(delta, [pairs, 2, each / 2, width]));
        y = B::int_add(y, reshape::<B, 2>(delta, [rows, width]));
    }
    B::int_cast(clip::<B>(y), dtype.into())
}
