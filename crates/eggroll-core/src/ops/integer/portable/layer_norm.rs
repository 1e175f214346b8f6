//! Layer norm by the mean magnitude.

use super::{PairNoise, clip, dims, is_nonzero, not, reshape, to_floor, wide};
use crate::ops::integer::IntegerNoisePrimitive;
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};

pub(crate) fn layer_norm<B: Backend>(
    x: IntTensor<B>,
    weight: IntTensor<B>,
    noise: IntegerNoisePrimitive<B>,
) -> IntTensor<B> {
    let ([rows, n], dtype) = (dims::<B>(&x), weight.dtype());
    let (x, weight) = (wide::<B>(x), wide::<B>(weight));
    let weight = match PairNoise::of(noise) {
        None => reshape::<B, 2>(weight, [1, n]),
        Some(noise) => noise.vector(weight), // [members, n]
    };
    let members = weight.shape()[0];
    let mean = B::int_clamp_min(B::int_sum_dim(B::int_abs(x.clone()), 1), Scalar::from(1)); // [rows, 1]
    let mean = B::int_div_scalar(mean, Scalar::from(n as i32));
    let weight = reshape::<B, 3>(weight, [members, 1, n]);
    let numerator = B::int_mul(reshape::<B, 3>(x, [members, rows / members, n]), weight);
    let numerator = reshape::<B, 2>(numerator, [rows, n]);

    let nonzero = is_nonzero::<B>(mean.clone());
    let divisor = B::int_clamp_min(mean, Scalar::from(1));
    let quotient = B::int_div(numerator.clone(), divisor.clone());
    let remainder = B::int_sub(numerator.clone(), B::int_mul(quotient.clone(), divisor));
    let regular = B::int_mul(to_floor::<B>(quotient, remainder), nonzero.clone());
    // Where the mean is 0: −1 for a numerator of 0, else −2.
    let tiny = B::int_neg(B::int_add_scalar(is_nonzero::<B>(numerator), Scalar::from(1)));
    let y = B::int_add(regular, B::int_mul(tiny, not::<B>(nonzero)));
    B::int_cast(clip::<B>(y), dtype.into())
}
