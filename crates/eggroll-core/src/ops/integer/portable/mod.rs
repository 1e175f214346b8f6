//! Integer operations by ordinary integer tensor operations, on the device.
//!
//! Everything is computed in I32 and cast back at the end. Where a comparison would need a boolean tensor, a clamp does it:
//! `clamp(v, t − 1, t) − (t − 1)` is 1 where `v ≥ t` and 0 elsewhere, without overflow.

mod add;
mod attention;
mod embedding;
mod gru;
mod linear;
mod log_likelihood;
mod noise;
mod norm;
mod perturbed_vector;
mod update;

pub(crate) use add::add;
pub(crate) use attention::{attention, rotary};
pub(crate) use embedding::embedding;
pub(crate) use gru::gru;
pub(crate) use linear::{head, linear};
pub(crate) use log_likelihood::log_likelihood;
pub(crate) use noise::noise;
pub(crate) use norm::norm;
pub(crate) use perturbed_vector::perturbed_vector;
pub(crate) use update::{sum_votes, update};

use crate::arithmetic::integer::transformer::STRETCHED;
use crate::arithmetic::integer::{INT8_LIMIT, Rounding};
use crate::ops::integer::{IntegerBias, IntegerMembers, IntegerNoisePrimitive, VectorPrimitive};
use burn::backend::tensor::{Device, IntTensor};
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::{IntDType, Shape, Slice, TensorData};

/// The type of all sums.
fn wide<B: Backend>(t: IntTensor<B>) -> IntTensor<B> {
    B::int_cast(t, IntDType::I32)
}

fn clip<B: Backend>(t: IntTensor<B>) -> IntTensor<B> {
    B::int_clamp(t, Scalar::from(-INT8_LIMIT), Scalar::from(INT8_LIMIT))
}

/// `⌊t / 2^bits⌋`
fn floor_shift<B: Backend>(t: IntTensor<B>, bits: u32) -> IntTensor<B> {
    B::bitwise_right_shift_scalar(t, Scalar::from(bits as i32))
}

/// 1 where `t ≥ limit`, else 0.
fn at_least<B: Backend>(t: IntTensor<B>, limit: i32) -> IntTensor<B> {
    let below = Scalar::from(limit - 1);
    B::int_sub_scalar(B::int_clamp(t, below, Scalar::from(limit)), below)
}

/// 1 where `t` is not 0, else 0.
fn is_nonzero<B: Backend>(t: IntTensor<B>) -> IntTensor<B> {
    let sign = B::int_clamp(t, Scalar::from(-1), Scalar::from(1));
    B::int_mul(sign.clone(), sign)
}

/// `1 − t`
fn not<B: Backend>(t: IntTensor<B>) -> IntTensor<B> {
    B::int_add_scalar(B::int_neg(t), Scalar::from(1))
}

/// A quotient that was cut towards zero, one lower where its remainder is negative: the floor, for divisors above 0.
fn to_floor<B: Backend>(quotient: IntTensor<B>, remainder: IntTensor<B>) -> IntTensor<B> {
    B::int_add(quotient, floor_shift::<B>(remainder, 31))
}

/// `⌊t / divisor⌋` for a divisor above 0.
fn divide_floor<B: Backend>(t: IntTensor<B>, divisor: i32) -> IntTensor<B> {
    let quotient = B::int_div_scalar(t.clone(), Scalar::from(divisor));
    let back = B::int_mul_scalar(quotient.clone(), Scalar::from(divisor));
    to_floor::<B>(quotient, B::int_sub(t, back))
}

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
    divide_rounded::<B>(B::int_mul_scalar(v, Scalar::from(STRETCHED)), largest)
}

fn reshape<B: Backend, const D: usize>(t: IntTensor<B>, shape: [usize; D]) -> IntTensor<B> {
    B::int_reshape(t, Shape::new(shape))
}

fn dims<B: Backend>(matrix: &IntTensor<B>) -> [usize; 2] {
    let shape = matrix.shape();
    [shape[0], shape[1]]
}

/// A constant in memory, of type I32.
fn constant<B: Backend, const D: usize>(values: Vec<i32>, shape: [usize; D], device: &Device<B>) -> IntTensor<B> {
    B::int_from_data(TensorData::new(values, shape), device)
}

/// Entries of a table, of type I32 and of the shape of `indices`.
fn look_up<B: Backend>(table: Vec<i32>, indices: IntTensor<B>) -> IntTensor<B> {
    let (shape, len, device) = (indices.shape(), table.len(), indices.device());
    let flat = reshape::<B, 1>(indices, [shape.num_elements()]);
    B::int_reshape(B::int_select(constant::<B, 1>(table, [len], &device), 0, flat), shape)
}

/// The noise of a call's pairs.
struct PairNoise<B: Backend> {
    /// `[pairs, elements]`
    values: IntTensor<B>,
    pairs: usize,
    rank: usize,
    shift: u32,
}

impl<B: Backend> PairNoise<B> {
    fn new(values: IntTensor<B>, members: IntegerMembers) -> Self {
        let (pairs, elements) = (members.pairs.count as usize, values.shape()[1]);
        let rows = Slice::from(members.skip..members.skip + pairs);
        let values = wide::<B>(B::int_slice(values, &[rows, Slice::from(0..elements)]));
        Self { values, pairs, rank: members.rank, shift: members.shift }
    }

    fn of(noise: IntegerNoisePrimitive<B>) -> Option<Self> {
        match noise {
            IntegerNoisePrimitive::None => None,
            IntegerNoisePrimitive::Held(values, members) => Some(Self::new(values, members)),
        }
    }

    /// `rows` runs of `len` elements from `start` on: `[pairs, rows, len]`.
    fn part(&self, start: usize, rows: usize, len: usize) -> IntTensor<B> {
        let columns = Slice::from(start..start + rows * len);
        let part = B::int_slice(self.values.clone(), &[Slice::from(0..self.pairs), columns]);
        reshape::<B, 3>(part, [self.pairs, rows, len])
    }

    /// [The added noise](Rounding::noise) from the products of each pair, for both members also if they share rows:
    /// `[pairs, 1 or 2, rows, columns] → [pairs, 2, rows, columns]`.
    fn of_members(&self, product: IntTensor<B>, shift: u32, rounding: Rounding) -> IntTensor<B> {
        let signs = constant::<B, 4>(vec![1, -1], [1, 2, 1, 1], &product.device());
        match rounding {
            Rounding::Floor => floor_shift::<B>(B::int_mul(product, signs), shift),
            Rounding::Nearest => B::int_mul(shift_rounded::<B>(product, shift), signs),
        }
    }

    /// A vector `[n]` under each member's noise: `[members, n]`, saturated.
    fn vector(&self, vector: IntTensor<B>, rounding: Rounding) -> IntTensor<B> {
        let n = vector.shape()[0];
        let product = B::int_mul(self.part(0, 1, n), self.part(n, 1, n)); // [pairs, 1, n]
        let by = self.of_members(reshape::<B, 4>(product, [self.pairs, 1, 1, n]), self.shift, rounding);
        clip::<B>(B::int_add(reshape::<B, 2>(by, [2 * self.pairs, n]), reshape::<B, 2>(vector, [1, n])))
    }
}

/// A vector under each member's noise, `[members, n]`; `[1, n]` without noise.
fn vector<B: Backend>(vector: VectorPrimitive<B>, rounding: Rounding) -> IntTensor<B> {
    let values = wide::<B>(vector.values);
    match PairNoise::of(vector.noise) {
        Some(noise) => noise.vector(values, rounding),
        None => {
            let n = values.shape()[0];
            reshape::<B, 2>(values, [1, n])
        }
    }
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

/// `rows : [members · rows, n]` and the bias of each member, if there is one.
fn add_bias<B: Backend>(rows: IntTensor<B>, bias: IntegerBias<B>, rounding: Rounding) -> IntTensor<B> {
    match bias.into_vector() {
        Some(bias) => by_member::<B>(rows, vector::<B>(bias, rounding), B::int_add),
        None => rows,
    }
}
