//! Product of matrices.

use super::{PairNoise, clip, dims, floor_div_scalar, reshape, wide};
use crate::arithmetic::integer::product_divisor;
use crate::ops::integer::IntegerNoisePrimitive;
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, TensorMetadata};

pub(crate) fn linear<B: Backend>(
    x: IntTensor<B>,
    weight: IntTensor<B>,
    noise: IntegerNoisePrimitive<B>,
) -> IntTensor<B> {
    let dtype = weight.dtype();
    let y = product::<B>(wide::<B>(x), wide::<B>(weight), PairNoise::of(noise).as_ref());
    B::int_cast(y, dtype.into())
}

/// [`linear`] in I32.
pub(super) fn product<B: Backend>(x: IntTensor<B>, weight: IntTensor<B>, noise: Option<&PairNoise<B>>) -> IntTensor<B> {
    let ([rows, d_input], d_output) = (dims::<B>(&x), weight.shape()[1]);
    let mut sum = B::int_matmul(x.clone(), weight); // [rows, d_output]
    if let Some(noise) = noise {
        let (pairs, rank) = (noise.pairs, noise.rank);
        let b = B::int_swap_dims(noise.part(0, rank, d_input), 1, 2); // [pairs, d_input, rank]
        let a = noise.part(rank * d_input, rank, d_output); // [pairs, rank, d_output]
        let x = reshape::<B, 3>(x, [pairs, rows / pairs, d_input]);
        let delta = matmul::<B>(matmul::<B>(x, b), a); // [pairs, 2 · rows of a member, d_output]
        let delta = noise.signed(reshape::<B, 4>(delta, [pairs, 2, rows / pairs / 2, d_output]));
        sum = B::int_add(sum, reshape::<B, 2>(delta, [rows, d_output]));
    }
    clip::<B>(floor_div_scalar::<B>(sum, product_divisor(d_input)))
}

/// A product of batches of matrices. Of depth 1 it is an elementwise one: CubeCL's matmul refuses the layout that a part of
/// a tensor has then.
pub(in crate::ops::integer) fn matmul<B: Backend>(a: IntTensor<B>, b: IntTensor<B>) -> IntTensor<B> {
    if b.shape()[1] == 1 { B::int_mul(a, b) } else { B::int_matmul(a, b) }
}
