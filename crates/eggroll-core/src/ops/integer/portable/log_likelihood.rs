//! Log-likelihood of targets.

use super::{constant, dims, floor_shift, look_up, reshape, shift_each_rounded, wide};
use crate::arithmetic::integer::transformer::{EXP2_DIGITS, LOG2};
use crate::arithmetic::integer::{EXP2_MANTISSA, Rounding, STEPS};
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};

pub(crate) fn log_likelihood<B: Backend>(
    logits: IntTensor<B>,
    targets: IntTensor<B>,
    members: usize,
    rounding: Rounding,
) -> IntTensor<B> {
    let [rows, _] = dims::<B>(&logits);
    let (logits, targets) = (wide::<B>(logits), reshape::<B, 2>(targets, [rows, 1]));
    let likelihoods = match rounding {
        Rounding::Floor => {
            let q = B::int_add_scalar(logits, Scalar::from(128)); // [rows, classes]
            let chosen = B::int_gather(1, q.clone(), targets);
            B::int_sub(chosen, log2_sixteenths::<B>(B::int_sum_dim(exp2_sixteenths::<B>(q), 1)))
        }
        Rounding::Nearest => {
            let largest = B::int_max_dim(logits.clone(), 1); // [rows, 1]
            let below = B::int_sub(largest.clone(), logits.clone()); // [rows, classes]
            let sum = B::int_sum_dim(exp2_256ths::<B>(below), 1);
            let chosen = B::int_gather(1, logits, targets);
            B::int_sub(B::int_sub(chosen, largest), log2_256ths::<B>(sum))
        }
    }; // [rows, 1]
    reshape::<B, 1>(B::int_sum_dim(reshape::<B, 2>(likelihoods, [members, rows / members]), 1), [members])
}

/// `⌊16·2^{q/16}⌋` by element.
fn exp2_sixteenths<B: Backend>(q: IntTensor<B>) -> IntTensor<B> {
    let fraction = B::bitwise_and_scalar(q.clone(), Scalar::from(15));
    let mantissa = look_up::<B>(EXP2_MANTISSA.iter().map(|m| *m as i32).collect(), fraction);
    let shift = B::int_add_scalar(B::int_neg(floor_shift::<B>(q, 4)), Scalar::from(15));
    B::bitwise_right_shift(mantissa, shift)
}

/// `⌊16·log2(sum/16)⌋` for `sum : [rows, 1]`, at least 16 as every term of it is.
fn log2_sixteenths<B: Backend>(sum: IntTensor<B>) -> IntTensor<B> {
    let device = sum.device();
    // The exponent, bit by bit: whether 2^bits and more is left.
    let (mut left, mut exponent) = (sum.clone(), B::int_mul_scalar(sum.clone(), Scalar::from(0)));
    for bits in [16, 8, 4, 2, 1] {
        let more = B::int_clamp(floor_shift::<B>(left.clone(), bits), Scalar::from(0), Scalar::from(1));
        let more = B::int_mul_scalar(more, Scalar::from(bits as i32));
        left = B::bitwise_right_shift(left, more.clone());
        exponent = B::int_add(exponent, more);
    }
    let to_top = B::int_add_scalar(B::int_neg(exponent.clone()), Scalar::from(30));
    let mantissa = B::bitwise_left_shift(sum, to_top); // in [2³⁰, 2³¹)
    let steps = STEPS.iter().map(|step| step.div_ceil(2) as i32).collect();
    let difference = B::int_sub(mantissa, constant::<B, 2>(steps, [1, STEPS.len()], &device));
    let reached = B::int_add_scalar(floor_shift::<B>(difference, 31), Scalar::from(1)); // 1 from a step on
    let sixteenths = B::int_mul_scalar(exponent, Scalar::from(16));
    B::int_sub_scalar(B::int_add(sixteenths, B::int_sum_dim(reached, 1)), Scalar::from(64))
}

/// `2¹⁶·2^(−c/256)` by element, 0 from 17 bits on.
fn exp2_256ths<B: Backend>(c: IntTensor<B>) -> IntTensor<B> {
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
fn log2_256ths<B: Backend>(sum: IntTensor<B>) -> IntTensor<B> {
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
