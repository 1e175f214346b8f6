//! Product of matrices.

use super::{PairNoise, by_member, clip, dims, look_up, reshape, shift_rounded, vector, wide};
use crate::arithmetic::integer::FIXED_POINT;
use crate::arithmetic::integer::transformer::{gelu, product_shift};
use crate::ops::integer::IntegerNoisePrimitive;
use crate::ops::integer::portable::linear::matmul;
use crate::ops::integer::transformer::VectorPrimitive;
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};

pub(crate) fn linear<B: Backend>(
    x: IntTensor<B>,
    weight: IntTensor<B>,
    noise: IntegerNoisePrimitive<B>,
    bias: Option<VectorPrimitive<B>>,
    activate: bool,
) -> IntTensor<B> {
    let ([d_input, d_output], dtype) = (dims::<B>(&weight), weight.dtype());
    let x = wide::<B>(x);
    let mut y = B::int_matmul(x.clone(), wide::<B>(weight)); // [rows, d_output]
    if let Some(noise) = PairNoise::of(noise) {
        let rank = noise.rank;
        let factors = [noise.part(0, rank, d_input), noise.part(rank * d_input, rank, d_output)];
        y = B::int_add(y, low_rank::<B>(x, &noise, factors));
    }
    y = shift_rounded::<B>(y, product_shift(d_input));
    if let Some(bias) = bias {
        y = by_member::<B>(y, vector::<B>(bias), B::int_add);
    }
    y = clip::<B>(y);
    if activate {
        let table = (-127..=127i8).map(|x| i32::from(gelu(x))).collect();
        y = look_up::<B>(table, B::int_add_scalar(y, Scalar::from(127)));
    }
    B::int_cast(y, dtype.into())
}

/// `s·round(round(x·F / 16)·Gᵀ / σ⁻¹)` for the factors `F : [pairs, rank, depth]` and `G : [pairs, rank, columns]`.
pub(super) fn low_rank<B: Backend>(
    x: IntTensor<B>,
    noise: &PairNoise<B>,
    [from, to]: [IntTensor<B>; 2],
) -> IntTensor<B> {
    let ([rows, depth], columns) = (dims::<B>(&x), to.shape()[2]);
    let x = reshape::<B, 3>(x, [noise.pairs, rows / noise.pairs, depth]);
    let t = shift_rounded::<B>(matmul::<B>(x, B::int_swap_dims(from, 1, 2)), FIXED_POINT); // [pairs, rows of both, rank]
    let product = shift_rounded::<B>(matmul::<B>(t, to), noise.shift - FIXED_POINT);
    let product = reshape::<B, 4>(product, [noise.pairs, 2, rows / noise.pairs / 2, columns]);
    reshape::<B, 2>(noise.antithetic(product), [rows, columns])
}
