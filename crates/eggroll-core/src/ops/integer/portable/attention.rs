//! Attention, and the rotation of its heads.

use super::{
    constant, dims, divide_rounded, floor_shift, look_up, rescale, reshape, shift_each_rounded, shift_rounded, wide,
};
use crate::arithmetic::integer::transformer::{ROTARY_BITS, Rotations, WEIGHT_END, WEIGHTS, attention_shift};
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::{Shape, Slice};

/// Below every score.
const NEVER: i32 = -(1 << 30);

pub(crate) fn rotary<B: Backend>(x: IntTensor<B>, steps: usize, first_position: usize, heads: usize) -> IntTensor<B> {
    let ([rows, width], dtype, device) = (dims::<B>(&x), x.dtype(), x.device());
    let (sequences, half) = (rows / steps, width / heads / 2);
    let x = reshape::<B, 5>(wide::<B>(x), [sequences, steps, heads, 2, half]);
    let part = |i: usize| {
        let all = [sequences, steps, heads].map(|len| Slice::from(0..len));
        B::int_slice(x.clone(), &[all[0], all[1], all[2], Slice::from(i..i + 1), Slice::from(0..half)])
    };
    let Rotations { cos, sin } = Rotations::new(first_position, steps, 2 * half);
    let [cos, sin] = [cos, sin].map(|table| constant::<B, 5>(table, [1, steps, 1, 1, half], &device));
    let turned = [
        B::int_sub(B::int_mul(part(0), cos.clone()), B::int_mul(part(1), sin.clone())),
        B::int_add(B::int_mul(part(1), cos), B::int_mul(part(0), sin)),
    ];
    let turned = B::int_cat(turned.map(|t| shift_rounded::<B>(t, ROTARY_BITS)).into(), 3);
    let scaled = rescale::<B>(reshape::<B, 2>(turned, [rows * heads, 2 * half]));
    B::int_cast(reshape::<B, 2>(scaled, [rows, width]), dtype.into())
}

pub(crate) fn attention<B: Backend>(
    query: IntTensor<B>,
    keys: IntTensor<B>,
    values: IntTensor<B>,
    heads: usize,
) -> IntTensor<B> {
    let ([rows, width], dtype, device) = (dims::<B>(&query), query.dtype(), query.device());
    let (sequences, context) = (keys.shape()[0], keys.shape()[1]);
    let (steps, d) = (rows / sequences, width / heads);
    let by_head = |t: IntTensor<B>, rows: usize| {
        let t = reshape::<B, 4>(wide::<B>(t), [sequences, rows, heads, d]);
        reshape::<B, 3>(B::int_swap_dims(t, 1, 2), [sequences * heads, rows, d])
    };
    let (query, keys, values) = (by_head(query, steps), by_head(keys, context), by_head(values, context));
    let scores = B::int_matmul(query, B::int_swap_dims(keys, 1, 2)); // [sequences · heads, steps, context]
    // 1 for positions that a row may see, else 0.
    let visible = (0..steps).flat_map(|t| (0..context).map(move |j| i32::from(j + steps <= t + context)));
    let visible = constant::<B, 3>(visible.collect(), [1, steps, context], &device);
    let hidden = B::int_mul_scalar(B::int_add_scalar(visible.clone(), Scalar::from(-1)), Scalar::from(-NEVER));
    let seen = B::int_add(B::int_mul(scores.clone(), visible.clone()), hidden);
    let largest = B::int_max_dim(seen, 2); // [sequences · heads, steps, 1]
    let below = B::int_mul(B::int_sub(largest, scores), visible.clone());
    let weights = B::int_mul(weights::<B>(shift_rounded::<B>(below, attention_shift(d))), visible);
    let total = B::int_sum_dim(weights.clone(), 2);
    let sums = B::int_matmul(weights, values); // [sequences · heads, steps, d]
    let total = B::int_expand(total, Shape::new([sequences * heads, steps, d]));
    let output = reshape::<B, 4>(divide_rounded::<B>(sums, total), [sequences, heads, steps, d]);
    B::int_cast(reshape::<B, 2>(B::int_swap_dims(output, 1, 2), [rows, width]), dtype.into())
}

/// `2¹²·2^(−i/16)` by element, 0 from the end on.
fn weights<B: Backend>(below: IntTensor<B>) -> IntTensor<B> {
    let below = B::int_clamp_max(below, Scalar::from(WEIGHT_END));
    let digit = B::bitwise_and_scalar(below.clone(), Scalar::from(15));
    let whole = floor_shift::<B>(below, 4);
    // One bit more: shifts start with one.
    let doubled = B::int_mul_scalar(look_up::<B>(WEIGHTS.to_vec(), digit), Scalar::from(2));
    let weights = shift_each_rounded::<B>(doubled, B::int_add_scalar(whole.clone(), Scalar::from(1)));
    let end = Scalar::from(WEIGHT_END >> 4);
    let before = Scalar::from((WEIGHT_END >> 4) - 1);
    let ended = B::int_sub_scalar(B::int_clamp(whole, before, end), before);
    B::int_mul(weights, B::int_add_scalar(B::int_neg(ended), Scalar::from(1)))
}
