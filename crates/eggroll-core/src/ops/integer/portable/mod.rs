//! Integer operations by ordinary integer tensor operations, on the device.
//!
//! Everything is computed in I32 and cast back at the end. Where a comparison would need a boolean tensor, a clamp does it:
//! `clamp(v, t − 1, t) − (t − 1)` is 1 where `v ≥ t` and 0 elsewhere, without overflow.

mod embedding;
mod gru;
mod layer_norm;
pub(super) mod linear;
mod log_likelihood;
mod noise;
mod perturbed_vector;
mod update;

pub(crate) use embedding::embedding;
pub(crate) use gru::gru;
pub(crate) use layer_norm::layer_norm;
pub(crate) use linear::linear;
pub(crate) use log_likelihood::log_likelihood;
pub(crate) use noise::noise;
pub(crate) use perturbed_vector::perturbed_vector;
pub(crate) use update::{sum_votes, update};

use crate::arithmetic::integer::INT8_LIMIT;
use crate::ops::integer::{IntegerMembers, IntegerNoisePrimitive};
use burn::backend::tensor::{Device, IntTensor};
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::{IntDType, Shape, Slice, TensorData};

/// `clip(Σ terms)`, of the first one's type.
pub(crate) fn add<B: Backend>(terms: &[IntTensor<B>]) -> IntTensor<B> {
    let dtype = terms[0].dtype();
    let sum = terms.iter().cloned().map(wide::<B>).reduce(B::int_add).expect("at least one term");
    B::int_cast(clip::<B>(sum), dtype.into())
}

/// The type of all sums.
pub(super) fn wide<B: Backend>(t: IntTensor<B>) -> IntTensor<B> {
    B::int_cast(t, IntDType::I32)
}

pub(super) fn clip<B: Backend>(t: IntTensor<B>) -> IntTensor<B> {
    B::int_clamp(t, Scalar::from(-INT8_LIMIT), Scalar::from(INT8_LIMIT))
}

/// `⌊t / 2^bits⌋`
pub(super) fn floor_shift<B: Backend>(t: IntTensor<B>, bits: u32) -> IntTensor<B> {
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
fn floor_div_scalar<B: Backend>(t: IntTensor<B>, divisor: i32) -> IntTensor<B> {
    let quotient = B::int_div_scalar(t.clone(), Scalar::from(divisor));
    let back = B::int_mul_scalar(quotient.clone(), Scalar::from(divisor));
    to_floor::<B>(quotient, B::int_sub(t, back))
}

pub(super) fn reshape<B: Backend, const D: usize>(t: IntTensor<B>, shape: [usize; D]) -> IntTensor<B> {
    B::int_reshape(t, Shape::new(shape))
}

pub(super) fn dims<B: Backend>(matrix: &IntTensor<B>) -> [usize; 2] {
    let shape = matrix.shape();
    [shape[0], shape[1]]
}

/// A constant in memory, of type I32.
pub(super) fn constant<B: Backend, const D: usize>(
    values: Vec<i32>,
    shape: [usize; D],
    device: &Device<B>,
) -> IntTensor<B> {
    B::int_from_data(TensorData::new(values, shape), device)
}

/// Entries of a table, of type I32 and of the shape of `indices`.
pub(super) fn look_up<B: Backend>(table: Vec<i32>, indices: IntTensor<B>) -> IntTensor<B> {
    let (shape, len, device) = (indices.shape(), table.len(), indices.device());
    let flat = reshape::<B, 1>(indices, [shape.num_elements()]);
    B::int_reshape(B::int_select(constant::<B, 1>(table, [len], &device), 0, flat), shape)
}

/// The noise of a call's pairs.
pub(super) struct PairNoise<B: Backend> {
    /// `[pairs, elements]`
    values: IntTensor<B>,
    pub(super) pairs: usize,
    pub(super) rank: usize,
    pub(super) shift: u32,
}

impl<B: Backend> PairNoise<B> {
    pub(super) fn new(values: IntTensor<B>, members: IntegerMembers) -> Self {
        let (pairs, elements) = (members.pairs.count as usize, values.shape()[1]);
        let rows = Slice::from(members.skip..members.skip + pairs);
        let values = wide::<B>(B::int_slice(values, &[rows, Slice::from(0..elements)]));
        Self { values, pairs, rank: members.rank, shift: members.shift }
    }

    pub(super) fn of(noise: IntegerNoisePrimitive<B>) -> Option<Self> {
        match noise {
            IntegerNoisePrimitive::None => None,
            IntegerNoisePrimitive::Held(values, members) => Some(Self::new(values, members)),
        }
    }

    /// `rows` runs of `len` elements from `start` on: `[pairs, rows, len]`.
    pub(super) fn part(&self, start: usize, rows: usize, len: usize) -> IntTensor<B> {
        let columns = Slice::from(start..start + rows * len);
        let part = B::int_slice(self.values.clone(), &[Slice::from(0..self.pairs), columns]);
        reshape::<B, 3>(part, [self.pairs, rows, len])
    }

    /// `⌊s·product / 2^shift⌋` for the products of each pair, of both signs if they have one row for both:
    /// `[pairs, 1 or 2, rows, columns] → [pairs, 2, rows, columns]`.
    pub(super) fn signed(&self, product: IntTensor<B>) -> IntTensor<B> {
        let signs = constant::<B, 4>(vec![1, -1], [1, 2, 1, 1], &product.device());
        floor_shift::<B>(B::int_mul(product, signs), self.shift)
    }

    /// A vector `[n]` as each member sees it: `[members, n]`, saturated.
    pub(super) fn vector(&self, vector: IntTensor<B>) -> IntTensor<B> {
        let n = vector.shape()[0];
        let product = B::int_mul(self.part(0, 1, n), self.part(n, 1, n)); // [pairs, 1, n]
        let shift = self.signed(reshape::<B, 4>(product, [self.pairs, 1, 1, n]));
        let sum = B::int_add(reshape::<B, 2>(shift, [2 * self.pairs, n]), reshape::<B, 2>(vector, [1, n]));
        clip::<B>(sum)
    }
}
