//! Norm by the mean magnitude.

use super::{add_bias, by_member, clip, dims, divide_rounded, is_nonzero, not, to_floor, vector, wide};
use crate::arithmetic::integer::Rounding;
use crate::ops::integer::{IntegerBias, VectorPrimitive};
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::Shape;

pub(crate) fn norm<B: Backend>(
    x: IntTensor<B>,
    gain: VectorPrimitive<B>,
    bias: IntegerBias<B>,
    rounding: Rounding,
) -> IntTensor<B> {
    let ([rows, n], dtype) = (dims::<B>(&x), x.dtype());
    let x = wide::<B>(x);
    let magnitude = B::int_sum_dim(B::int_abs(x.clone()), 1); // [rows, 1]
    let numerator = by_member::<B>(x, vector::<B>(gain, rounding), B::int_mul);
    let y = match rounding {
        Rounding::Floor => {
            let mean = B::int_div_scalar(B::int_clamp_min(magnitude, Scalar::from(1)), Scalar::from(n as i32));
            floor_of_mean::<B>(numerator, mean)
        }
        Rounding::Nearest => {
            let half = Scalar::from((n / 2) as i32);
            let mean = B::int_div_scalar(B::int_add_scalar(magnitude, half), Scalar::from(n as i32));
            let mean = B::int_expand(B::int_clamp_min(mean, Scalar::from(1)), Shape::new([rows, n]));
            divide_rounded::<B>(numerator, mean)
        }
    };
    B::int_cast(clip::<B>(add_bias::<B>(y, bias, rounding)), dtype.into())
}

/// `⌊numerator / mean⌋`. Where the mean is 0: −1 for a numerator of 0, else −2.
fn floor_of_mean<B: Backend>(numerator: IntTensor<B>, mean: IntTensor<B>) -> IntTensor<B> {
    let nonzero = is_nonzero::<B>(mean.clone());
    let divisor = B::int_clamp_min(mean, Scalar::from(1));
    let quotient = B::int_div(numerator.clone(), divisor.clone());
    let remainder = B::int_sub(numerator.clone(), B::int_mul(quotient.clone(), divisor));
    let regular = B::int_mul(to_floor::<B>(quotient, remainder), nonzero.clone());
    let tiny = B::int_neg(B::int_add_scalar(is_nonzero::<B>(numerator), Scalar::from(1)));
    B::int_add(regular, B::int_mul(tiny, not::<B>(nonzero)))
}
