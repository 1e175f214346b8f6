//! What goes row by row without a product of activations.

use super::{PairNoise, by_member, clip, dims, divide_rounded, rescale, reshape, shift_rounded, vector, wide};
use crate::ops::integer::IntegerNoisePrimitive;
use crate::ops::integer::portable::linear::matmul;
use crate::ops::integer::transformer::VectorPrimitive;
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::Shape;

pub(crate) fn embedding<B: Backend>(
    tokens: IntTensor<B>,
    weight: IntTensor<B>,
    noise: IntegerNoisePrimitive<B>,
    bias: VectorPrimitive<B>,
) -> IntTensor<B> {
    let ([vocab, width], rows, dtype) = (dims::<B>(&weight), tokens.shape()[0], weight.dtype());
    let mut y = wide::<B>(B::int_select(weight, 0, tokens.clone())); // [rows, width]
    if let Some(noise) = PairNoise::of(noise) {
        let (pairs, rank) = (noise.pairs, noise.rank);
        let each = rows / pairs;
        let indices = B::int_expand(reshape::<B, 3>(tokens, [pairs, 1, each]), Shape::new([pairs, rank, each]));
        let b = B::int_gather(2, noise.part(0, rank, vocab), indices); // [pairs, rank, rows of both members]
        let a = noise.part(rank * vocab, rank, width);
        let delta = shift_rounded::<B>(matmul::<B>(B::int_swap_dims(b, 1, 2), a), noise.shift);
        let delta = noise.antithetic(reshape::<B, 4>(delta, [pairs, 2, each / 2, width]));
        y = B::int_add(y, reshape::<B, 2>(delta, [rows, width]));
    }
    let y = by_member::<B>(y, vector::<B>(bias), B::int_add);
    B::int_cast(rescale::<B>(y), dtype.into())
}

pub(crate) fn norm<B: Backend>(x: IntTensor<B>, gain: VectorPrimitive<B>, bias: VectorPrimitive<B>) -> IntTensor<B> {
    let ([rows, n], dtype) = (dims::<B>(&x), x.dtype());
    let x = wide::<B>(x);
    let magnitude = B::int_sum_dim(B::int_abs(x.clone()), 1); // [rows, 1]
    let mean = B::int_div_scalar(B::int_add_scalar(magnitude, Scalar::from((n / 2) as i32)), Scalar::from(n as i32));
    let mean = B::int_expand(B::int_clamp_min(mean, Scalar::from(1)), Shape::new([rows, n]));
    let scaled = divide_rounded::<B>(by_member::<B>(x, vector::<B>(gain), B::int_mul), mean);
    B::int_cast(clip::<B>(by_member::<B>(scaled, vector::<B>(bias), B::int_add)), dtype.into())
}

pub(crate) fn add<B: Backend>(x: IntTensor<B>, y: IntTensor<B>) -> IntTensor<B> {
    let dtype = x.dtype();
    B::int_cast(rescale::<B>(B::int_add(wide::<B>(x), wide::<B>(y))), dtype.into())
}
