//! Operations of the integer transformer by ordinary integer tensor operations, on the device.

mod attention;
mod head;
mod linear;
mod rows;

pub(crate) use attention::{attention, rotary};
pub(crate) use head::{head, log_likelihood};
pub(crate) use linear::linear;
pub(crate) use rows::{add, embedding, norm};

use super::operands::VectorPrimitive;
use crate::ops::integer::portable::{PairNoise, clip, constant, dims, floor_shift, look_up, reshape, wide};
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};

/// `t / 2^bits` to nearest, halves away from zero.
fn shift_rounded<B: Backend>(t: IntTensor<B>, bits: u32) -> IntTensor<B> {
    if bits == 0 {
        return t;
    }
    let down = floor_shift::<B>(t.clone(), 31); // −1 below zero
    let half = Scalar::from(1 << (bits - 1));
    floor_shift::<B>(B::int_add_scalar(B::int_add(t, down), half), bits)
}

/// [`shift_rounded`] by as many bits as another tensor says, for values that are not negative and at least one bit.
fn shift_each_rounded<B: Backend>(t: IntTensor<B>, bits: IntTensor<B>) -> IntTensor<B> {
    let one = B::int_add_scalar(B::int_mul_scalar(bits.clone(), Scalar::from(0)), Scalar::from(1));
    let half = B::bitwise_left_shift(one, B::int_sub_scalar(bits.clone(), Scalar::from(1)));
    B::bitwise_right_shift(B::int_add(t, half), bits)
}

/// `a / b` to nearest, halves away from zero, for `b` above 0 that `a`'s shape repeats.
fn divide_rounded<B: Backend>(a: IntTensor<B>, b: IntTensor<B>) -> IntTensor<B> {
    let sign = B::int_clamp(a.clone(), Scalar::from(-1), Scalar::from(1));
    let half = floor_shift::<B>(b.clone(), 1);
    B::int_mul(B::int_div(B::int_add(B::int_abs(a), half), b), sign)
}

/// `round(127·v / max |v|)` over the last axis of `[rows, n]`.
fn rescale<B: Backend>(v: IntTensor<B>) -> IntTensor<B> {
    let largest = B::int_clamp_min(B::int_max_dim(B::int_abs(v.clone()), 1), Scalar::from(1)); // [rows, 1]
    divide_rounded::<B>(B::int_mul_scalar(v, Scalar::from(crate::arithmetic::integer::transformer::STRETCHED)), largest)
}

impl<B: Backend> PairNoise<B> {
    /// Products of pairs with both signs: `[pairs, 1 or 2, rows, columns] → [pairs, 2, rows, columns]`.
    fn antithetic(&self, product: IntTensor<B>) -> IntTensor<B> {
        let signs = constant::<B, 4>(vec![1, -1], [1, 2, 1, 1], &product.device());
        B::int_mul(product, signs)
    }
}

/// A vector as each member sees it, `[members, n]`; `[1, n]` without noise.
fn vector<B: Backend>(vector: VectorPrimitive<B>) -> IntTensor<B> {
    let n = vector.values.shape()[0];
    let values = reshape::<B, 2>(wide::<B>(vector.values), [1, n]);
    let Some(noise) = PairNoise::of(vector.noise) else { return values };
    let product = B::int_mul(noise.part(0, 1, n), noise.part(n, 1, n)); // [pairs, 1, n]
    let product = shift_rounded::<B>(reshape::<B, 4>(product, [noise.pairs, 1, 1, n]), noise.shift);
    clip::<B>(B::int_add(reshape::<B, 2>(noise.antithetic(product), [2 * noise.pairs, n]), values))
}

/// `rows : [members · rows, n]` with a vector of each member, by `f`.
fn by_member<B: Backend>(
    rows: IntTensor<B>,
    vector: IntTensor<B>,
    f: impl Fn(IntTensor<B>, IntTensor<B>) -> IntTensor<B>,
) -> IntTensor<B> {
    let ([count, n], members) = (dims::<B>(&rows), vector.shape()[0]);
    let rows = reshape::<B, 3>(rows, [members, count / members, n]);
    reshape::<B, 2>(f(rows, reshape::<B, 3>(vector, [members, 1, n])), [count, n])
}
