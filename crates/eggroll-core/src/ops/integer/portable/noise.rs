//! int8 noise: bytes of Philox words, looked up.

use super::{look_up, reshape, wide};
use crate::ops::portable::noise::Words;
use crate::rng::integer::{GROUP, QUANTILES};
use crate::rng::key::{NoiseKey, PairRange};
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::Slice;

/// The first `elements` elements of the streams of `pairs`, `[pairs, elements]`, on the device and of the type of `like`.
pub(crate) fn noise<B: Backend>(like: &IntTensor<B>, key: NoiseKey, pairs: PairRange, elements: usize) -> IntTensor<B> {
    let (p, groups) = (pairs.count as usize, elements.div_ceil(GROUP));
    // A group has the same number of blocks as a group of Gaussian values.
    let words = Words::<B>::new(&like.device()).blocks(key, 0, pairs, groups);
    let words = words.map(|word| reshape::<B, 4>(word, [p * groups, 1, GROUP / 16, 1]));
    let words = B::int_cat(words.into(), 1); // [pairs · groups, 4 words, 16 blocks, 1]
    let byte = |i: i64| {
        let shifted = B::bitwise_right_shift_scalar(words.clone(), Scalar::from(8 * i));
        B::bitwise_and_scalar(shifted, Scalar::from(255i64))
    };
    let bytes = B::int_cat((0..4).map(byte).collect(), 3); // …, 4 bytes
    let all = reshape::<B, 2>(wide::<B>(bytes), [p, groups * GROUP]);
    let bytes = B::int_slice(all, &[Slice::from(0..p), Slice::from(0..elements)]);
    let noise = look_up::<B>(QUANTILES.iter().map(|value| i32::from(*value)).collect(), bytes);
    B::int_cast(noise, like.dtype().into())
}
