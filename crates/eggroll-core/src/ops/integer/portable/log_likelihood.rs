//! Log-likelihood in sixteenths of a bit.

use super::{constant, dims, floor_shift, look_up, reshape, wide};
use crate::arithmetic::integer::{EXP2_MANTISSA, STEPS};
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};

pub(crate) fn log_likelihood<B: Backend>(logits: IntTensor<B>, targets: IntTensor<B>, members: usize) -> IntTensor<B> {
    let [rows, _] = dims::<B>(&logits);
    let q = B::int_add_scalar(wide::<B>(logits), Scalar::from(128)); // [rows, classes]
    let chosen = B::int_gather(1, q.clone(), reshape::<B, 2>(targets, [rows, 1]));
    let likelihoods = B::int_sub(chosen, log2::<B>(B::int_sum_dim(exp2::<B>(q), 1))); // [rows, 1]
    reshape::<B, 1>(B::int_sum_dim(reshape::<B, 2>(likelihoods, [members, rows / members]), 1), [members])
}

/// `⌊16·2^{q/16}⌋` by element.
fn exp2<B: Backend>(q: IntTensor<B>) -> IntTensor<B> {
    let fraction = B::bitwise_and_scalar(q.clone(), Scalar::from(15));
    let mantissa = look_up::<B>(EXP2_MANTISSA.iter().map(|m| *m as i32).collect(), fraction);
    let shift = B::int_add_scalar(B::int_neg(floor_shift::<B>(q, 4)), Scalar::from(15));
    B::bitwise_right_shift(mantissa, shift)
}

/// `⌊16·log2(sum/16)⌋` for `sum : [rows, 1]`, at least 16 as every term of it is.
fn log2<B: Backend>(sum: IntTensor<B>) -> IntTensor<B> {
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
