//! Logits, and the log-likelihood of targets.

use super::linear::low_rank;
use super::{PairNoise, constant, dims, floor_shift, look_up, reshape, shift_each_rounded, shift_rounded, wide};
use crate::arithmetic::integer::transformer::{EXP2_DIGITS, LARGEST_LOGIT, LOG2, head_shift};
use crate::ops::integer::IntegerNoisePrimitive;
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};

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
        y = B::int_add(y, low_rank::<B>(x, &noise, factors));
    }
    let y = shift_rounded::<B>(y, head_shift(width));
    B::int_clamp(y, Scalar::from(-LARGEST_LOGIT), Scalar::from(LARGEST_LOGIT))
}

pub(crate) fn log_likelihood<B: Backend>(logits: IntTensor<B>, targets: IntTensor<B>, members: usize) -> IntTensor<B> {
    let [rows, _] = dims::<B>(&logits);
    let logits = wide::<B>(logits);
    let largest = B::int_max_dim(logits.clone(), 1); // [rows, 1]
    let below = B::int_sub(largest.clone(), logits.clone()); // [rows, classes]
    let sum = B::int_sum_dim(exp2::<B>(below), 1);
    let chosen = B::int_gather(1, logits, reshape::<B, 2>(targets, [rows, 1]));
    let likelihoods = B::int_sub(B::int_sub(chosen, largest), log2::<B>(sum));
    reshape::<B, 1>(B::int_sum_dim(reshape::<B, 2>(likelihoods, [members, rows / members]), 1), [members])
}

/// `2¹⁶·2^(−c/256)` by element, 0 from 17 bits on.
fn exp2<B: Backend>(c: IntTensor<B>) -> IntTensor<B> {
    let digit = |shift: u32| B::bitwise_and_scalar(floor_shift::<B>(c.clone(), shift), Scalar::from(15));
    let [high, low] = &*EXP2_DIGITS;
    let product = B::int_mul(look_up::<B>(high.to_vec(), digit(4)), look_up::<B>(low.to_vec(), digit(0)));
    let bits = B::int_clamp(floor_shift::<B>(c, 8), Scalar::from(0), Scalar::from(17));
    // With 17 bits and more the shift is one by 30 of at most 2³⁰, made 0.
    let kept = B::int_sub(
        constant::<B, 2>(vec![17], [1, 1], &bits.device()),
        B::int_clamp(bits.clone(), Scalar::from(16), Scalar::from(17)),
    );
    let bits = B::int_add_scalar(B::int_clamp_max(bits, Scalar::from(16)), Scalar::from(14));
    B::int_mul(shift_each_rounded::<B>(product, bits), kept)
}

/// `256·log2(sum / 2¹⁶)` for `sum : [rows, 1]` of at least 2¹⁶, and below 2²⁵.
fn log2<B: Backend>(sum: IntTensor<B>) -> IntTensor<B> {
    // Bits above 2¹⁶, one by one.
    let above = |bits: u32| {
        let more = floor_shift::<B>(sum.clone(), 16 + bits);
        B::int_clamp(more, Scalar::from(0), Scalar::from(1))
    };
    let exponent = (1..=8).map(above).reduce(B::int_add).expect("eight bits"); // [rows, 1]
    let leading = B::bitwise_right_shift(sum, B::int_add_scalar(exponent.clone(), Scalar::from(8))); // in [256, 512)
    let fraction = look_up::<B>(LOG2.to_vec(), B::int_sub_scalar(leading, Scalar::from(256)));
    B::int_add(B::int_mul_scalar(exponent, Scalar::from(256)), fraction)
}
