//! Products of matrices.

use super::{PairNoise, add_bias, clip, dims, divide_floor, look_up, reshape, shift_rounded, wide};
use crate::arithmetic::integer::transformer::{LARGEST_LOGIT, gelu, head_shift, product_shift};
use crate::arithmetic::integer::{FIXED_POINT, Rounding, product_divisor};
use crate::ops::integer::{IntegerBias, IntegerNoisePrimitive};
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};

pub(crate) fn linear<B: Backend>(
    x: IntTensor<B>,
    weight: IntTensor<B>,
    noise: IntegerNoisePrimitive<B>,
    bias: IntegerBias<B>,
    activate: bool,
    rounding: Rounding,
) -> IntTensor<B> {
    let dtype = weight.dtype();
    let y = product::<B>(wide::<B>(x), wide::<B>(weight), PairNoise::of(noise).as_ref(), rounding);
    let mut y = clip::<B>(add_bias::<B>(y, bias, rounding));
    if activate {
        let table = (-127..=127i8).map(|x| i32::from(gelu(x))).collect();
        y = look_up::<B>(table, B::int_add_scalar(y, Scalar::from(127)));
    }
    B::int_cast(y, dtype.into())
}

/// Sums of [`linear`] in I32, divided.
pub(super) fn product<B: Backend>(
    x: IntTensor<B>,
    weight: IntTensor<B>,
    noise: Option<&PairNoise<B>>,
    rounding: Rounding,
) -> IntTensor<B> {
    let [d_input, d_output] = dims::<B>(&weight);
    let mut sum = B::int_matmul(x.clone(), weight); // [rows, d_output]
    if let Some(noise) = noise {
        let rank = noise.rank;
        let factors = [noise.part(0, rank, d_input), noise.part(rank * d_input, rank, d_output)];
        sum = B::int_add(sum, low_rank::<B>(x, noise, factors, rounding));
    }
    match rounding {
        Rounding::Floor => divide_floor::<B>(sum, product_divisor(d_input)),
        Rounding::Nearest => shift_rounded::<B>(sum, product_shift(d_input)),
    }
}

pub(crate) fn head<B: Backend>(
    x: IntTensor<B>,
    embedding: IntTensor<B>,
    noise: IntegerNoisePrimitive<B>,
) -> IntTensor<B> {
    let [vocab, width] = dims::<B>(&embedding);
    let x = wide::<B>(x);
    let mut y = B::int_matmul(x.clone(), B::int_swap_dims(wide::<B>(embedding), 0, 1)); // [rows, vocab]
    if let Some(noise) = PairNoise::of(noise) {
        let rank = noise.rank;
        let factors = [noise.part(rank * vocab, rank, width), noise.part(0, rank, vocab)];
        y = B::int_add(y, low_rank::<B>(x, &noise, factors, Rounding::Nearest));
    }
    let y = shift_rounded::<B>(y, head_shift(width));
    B::int_clamp(y, Scalar::from(-LARGEST_LOGIT), Scalar::from(LARGEST_LOGIT))
}

/// The noise added to a product, for the factors `F : [pairs, rank, depth]` and `G : [pairs, rank, columns]`: `⌊s·(x·F)·Gᵀ·σ / 16⌋`, or
/// `s·round(round(x·F / 16)·Gᵀ·σ)`.
fn low_rank<B: Backend>(
    x: IntTensor<B>,
    noise: &PairNoise<B>,
    [from, to]: [IntTensor<B>; 2],
    rounding: Rounding,
) -> IntTensor<B> {
    let ([rows, depth], columns) = (dims::<B>(&x), to.shape()[2]);
    let x = reshape::<B, 3>(x, [noise.pairs, rows / noise.pairs, depth]);
    let t = matmul::<B>(x, B::int_swap_dims(from, 1, 2)); // [pairs, rows of both, rank]
    let (t, shift) = match rounding {
        Rounding::Floor => (t, noise.shift),
        Rounding::Nearest => (shift_rounded::<B>(t, FIXED_POINT), noise.shift - FIXED_POINT),
    };
    let product = reshape::<B, 4>(matmul::<B>(t, to), [noise.pairs, 2, rows / noise.pairs / 2, columns]);
    reshape::<B, 2>(noise.of_members(product, shift, rounding), [rows, columns])
}

/// A product of batches of matrices. For depth 1 it is elementwise: CubeCL's matmul refuses the layout of a slice of a
/// tensor there.
pub(super) fn matmul<B: Backend>(a: IntTensor<B>, b: IntTensor<B>) -> IntTensor<B> {
    if b.shape()[1] == 1 { B::int_mul(a, b) } else { B::int_matmul(a, b) }
}
