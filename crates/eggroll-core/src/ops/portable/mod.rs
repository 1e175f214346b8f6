//! Defaults of [`PerturbedOps`](super::PerturbedOps) for any backend: ordinary tensor operations on the device, nothing read to the host.
//!
//! The noise is the same stream as everywhere ([`crate::rng`]), made by integer operations of the backend.
//! It is held in memory for the members of the call: these defaults are for coverage, not for speed.

mod embedding;
pub(super) mod noise;
mod patches;
pub(crate) mod rows;

pub(crate) use embedding::perturbed_embedding;
pub(crate) use noise::noise;
pub(crate) use patches::patches;

use super::{BiasPrimitive, DEPENDENT, DenseNoise, InputRows, LinearMembers, LowRankNoise, PairRange, SourcePrimitive};
use crate::work::profile::{self, Component};
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::{DType, Shape, Slice};
use noise::{factors, held_or_drawn};

pub(crate) fn low_rank_linear<B: Backend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    bias: BiasPrimitive<B>,
    noise: LowRankNoise,
    source: SourcePrimitive<B>,
    members: LinearMembers,
) -> FloatTensor<B> {
    let (pairs, shape) = (members.pairs, dims::<B>(&weight));
    let (b, a) = factors::<B>(&noise, source, pairs, shape, &x);
    let y = explicit_low_rank_linear::<B>(x, weight, b, a, noise.scale, members.input);
    add_bias::<B>(y, bias, pairs)
}

pub(crate) fn dense_linear<B: Backend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    bias: BiasPrimitive<B>,
    noise: DenseNoise,
    source: SourcePrimitive<B>,
    members: LinearMembers,
) -> FloatTensor<B> {
    let ([d_input, d_output], pairs) = (dims::<B>(&weight), members.pairs);
    let drawn = held_or_drawn::<B>(source, noise.key, pairs, d_input * d_output, &x);
    let count = pairs.count as usize;
    let drawn = if noise.transposed {
        B::float_swap_dims(B::float_reshape(drawn, Shape::new([count, d_output, d_input])), 1, 2)
    } else {
        B::float_reshape(drawn, Shape::new([count, d_input, d_output]))
    };
    let y = explicit_dense_linear::<B>(x, weight, drawn, noise.scale, members.input);
    add_bias::<B>(y, bias, pairs)
}

pub(crate) fn perturbed_vector<B: Backend>(
    vector: FloatTensor<B>,
    noise: DenseNoise,
    source: SourcePrimitive<B>,
    pairs: PairRange,
) -> FloatTensor<B> {
    let drawn = held_or_drawn::<B>(source, noise.key, pairs, vector.shape()[0], &vector);
    explicit_vector::<B>(vector, drawn, noise.scale)
}

pub(crate) fn low_rank_estimate<B: Backend>(
    weights: FloatTensor<B>,
    noise: LowRankNoise,
    source: SourcePrimitive<B>,
    first: u32,
    shape: [usize; 2],
    dtype: DType,
) -> FloatTensor<B> {
    let pairs = PairRange::new(first, weights.shape()[0] as u32);
    let (b, a) = factors::<B>(&noise, source, pairs, shape, &in_type::<B>(weights.clone(), dtype));
    let (b, a) = if noise.signs { (B::float_sign(b), B::float_sign(a)) } else { (b, a) };
    let [weights, b, a] = [weights, b, a].map(|tensor| in_type::<B>(tensor, sum_type(dtype)));
    in_type::<B>(explicit_low_rank_estimate::<B>(weights, b, a, noise.scale), dtype)
}

/// The type in which an estimate of type `dtype` is summed.
pub(crate) fn sum_type(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// The same values in another type.
fn in_type<B: Backend>(tensor: FloatTensor<B>, dtype: DType) -> FloatTensor<B> {
    if tensor.dtype() == dtype { tensor } else { B::float_cast(tensor, dtype.into()) }
}

pub(crate) fn dense_estimate<B: Backend>(
    weights: FloatTensor<B>,
    noise: DenseNoise,
    source: SourcePrimitive<B>,
    first: u32,
    elements: usize,
    dtype: DType,
) -> FloatTensor<B> {
    let pairs = PairRange::new(first, weights.shape()[0] as u32);
    let like = in_type::<B>(weights.clone(), dtype);
    let drawn = held_or_drawn::<B>(source, noise.key, pairs, elements, &like);
    let [weights, drawn] = [weights, drawn].map(|tensor| in_type::<B>(tensor, sum_type(dtype)));
    in_type::<B>(explicit_dense_estimate::<B>(weights, drawn, noise.scale), dtype)
}

/// `x·W ± c·(x·B)·Aᵀ` for factors `b : [pairs, rank, d_input]`, `a : [pairs, rank, d_output]`.
pub(crate) fn explicit_low_rank_linear<B: Backend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    b: FloatTensor<B>,
    a: FloatTensor<B>,
    scale: f32,
    input: InputRows,
) -> FloatTensor<B> {
    let span = profile::span(Component::LowRankPart, 0);
    let x_pairs = per_pair::<B>(x.clone(), b.shape()[0], input); // [pairs, rows of the pair, d_input]
    let t = B::float_matmul(x_pairs, B::float_swap_dims(b, 1, 2)); // [pairs, rows of the pair, rank]
    let delta = B::float_mul_scalar(B::float_matmul(t, a), Scalar::from(scale)); // [pairs, rows of the pair, d_output]
    span.end(|| drop(B::sync(&delta.device())));
    plus_minus_product::<B>(x, weight, delta, input)
}

/// `x·W ± σ·x·ε` for `drawn : [pairs, d_input, d_output]`.
pub(crate) fn explicit_dense_linear<B: Backend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    drawn: FloatTensor<B>,
    scale: f32,
    input: InputRows,
) -> FloatTensor<B> {
    let span = profile::span(Component::LowRankPart, 0);
    let x_pairs = per_pair::<B>(x.clone(), drawn.shape()[0], input); // [pairs, rows of the pair, d_input]
    let delta = B::float_mul_scalar(B::float_matmul(x_pairs, drawn), Scalar::from(scale));
    span.end(|| drop(B::sync(&delta.device())));
    plus_minus_product::<B>(x, weight, delta, input)
}

/// `θ ± σ·ε` for `drawn : [pairs, n]`: `[members, n]`.
pub(crate) fn explicit_vector<B: Backend>(vector: FloatTensor<B>, drawn: FloatTensor<B>, scale: f32) -> FloatTensor<B> {
    let [p, n] = dims::<B>(&drawn);
    let shift = B::float_mul_scalar(drawn, Scalar::from(scale));
    let both = plus_minus::<B>(B::float_reshape(shift, Shape::new([p, 1, n])));
    let vector = B::float_reshape(vector, Shape::new([1, 1, n]));
    B::float_reshape(B::float_add(vector, both), Shape::new([2 * p, n]))
}

/// `Σ_q w_q·c·B_q·A_qᵀ` for factors as in [`explicit_low_rank_linear`].
pub(crate) fn explicit_low_rank_estimate<B: Backend>(
    weights: FloatTensor<B>,
    b: FloatTensor<B>,
    a: FloatTensor<B>,
    scale: f32,
) -> FloatTensor<B> {
    let (p, r) = (b.shape()[0], b.shape()[1]);
    let (d_input, d_output) = (b.shape()[2], a.shape()[2]);
    let weights = B::float_mul_scalar(weights, Scalar::from(scale));
    let a = B::float_mul(a, B::float_reshape(weights, Shape::new([p, 1, 1])));
    let b = B::float_swap_dims(B::float_reshape(b, Shape::new([p * r, d_input])), 0, 1);
    B::float_matmul(b, B::float_reshape(a, Shape::new([p * r, d_output])))
}

/// `Σ_q w_q·σ·ε_q` for `drawn : [pairs, elements]`.
pub(crate) fn explicit_dense_estimate<B: Backend>(
    weights: FloatTensor<B>,
    drawn: FloatTensor<B>,
    scale: f32,
) -> FloatTensor<B> {
    let [p, elements] = dims::<B>(&drawn);
    let weights = B::float_mul_scalar(weights, Scalar::from(scale));
    let sum = B::float_matmul(B::float_reshape(weights, Shape::new([1, p])), drawn);
    B::float_reshape(sum, Shape::new([elements]))
}

/// Gram–Schmidt by tensor operations, twice for stability; a dependent row becomes a row of zeros.
pub(crate) fn row_projection<B: Backend>(gradient: FloatTensor<B>, x: FloatTensor<B>) -> FloatTensor<B> {
    let [rows, d_input] = dims::<B>(&x);
    let square = |v: &FloatTensor<B>| B::float_sum_dim(B::float_mul(v.clone(), v.clone()), 1); // [1, 1]
    let mut basis: Option<FloatTensor<B>> = None;
    for row in 0..rows {
        let mut v = B::float_slice(x.clone(), &[Slice::from(row..row + 1), Slice::from(0..d_input)]); // [1, d_input]
        let norm = square(&v);
        for _ in 0..2 {
            if let Some(q) = &basis {
                let overlap = B::float_matmul(v.clone(), B::float_swap_dims(q.clone(), 0, 1)); // [1, row]
                v = B::float_sub(v, B::float_matmul(overlap, q.clone()));
            }
        }
        let left = square(&v);
        let threshold = B::float_mul_scalar(norm, Scalar::from(DEPENDENT));
        let keep = B::float_sign(B::float_sub(left.clone(), threshold)); // 1 if independent, else 0 or −1
        let keep = B::float_clamp_min(keep, Scalar::from(0.0f32));
        let length = B::float_add_scalar(B::float_sqrt(left), Scalar::from(f32::MIN_POSITIVE));
        let factor = B::float_div(keep, length);
        let q = B::float_mul(v, B::float_expand(factor, Shape::new([1, d_input])));
        basis = Some(match basis {
            None => q,
            Some(basis) => B::float_cat(vec![basis, q], 0),
        });
    }
    match basis {
        None => B::float_mul_scalar(gradient, Scalar::from(0.0f32)),
        Some(q) => {
            let inner = B::float_matmul(q.clone(), gradient); // [rows, d_output]
            B::float_matmul(B::float_swap_dims(q, 0, 1), inner)
        }
    }
}

pub(crate) fn member_cross_entropy<B: Backend>(
    logits: FloatTensor<B>,
    targets: IntTensor<B>,
    members: usize,
) -> FloatTensor<B> {
    let losses = row_cross_entropy::<B>(logits, targets, members);
    B::float_reshape(B::float_mean_dim(losses, 1), Shape::new([members]))
}

/// `[members, rows]`
pub(crate) fn row_cross_entropy<B: Backend>(
    logits: FloatTensor<B>,
    targets: IntTensor<B>,
    members: usize,
) -> FloatTensor<B> {
    let ([rows, classes], each) = (dims::<B>(&logits), targets.shape()[0]);
    let targets = B::int_expand(B::int_reshape(targets, Shape::new([1, each])), Shape::new([members, each]));
    let targets = B::int_reshape(targets, Shape::new([rows, 1]));
    let largest = B::float_max_dim(logits.clone(), 1);
    let shifted = B::float_sub(logits, B::float_expand(largest, Shape::new([rows, classes])));
    let chosen = B::float_gather(1, shifted.clone(), targets); // [rows, 1]
    let log_sum = B::float_log(B::float_sum_dim(B::float_exp(shifted), 1)); // [rows, 1]
    B::float_reshape(B::float_sub(log_sum, chosen), Shape::new([members, each]))
}

fn dims<B: Backend>(matrix: &FloatTensor<B>) -> [usize; 2] {
    let shape = matrix.shape();
    [shape[0], shape[1]]
}

/// Input rows of every pair: `[pairs, 2 · rows, d_input]`, or `[1, rows, d_input]` if shared.
fn per_pair<B: Backend>(x: FloatTensor<B>, pairs: usize, input: InputRows) -> FloatTensor<B> {
    let [rows, d_input] = dims::<B>(&x);
    let shape = match input {
        InputRows::PerMember => [pairs, rows / pairs, d_input],
        InputRows::Shared => [1, rows, d_input],
    };
    let x = B::float_reshape(x, Shape::new(shape));
    B::float_expand(x, Shape::new([pairs, shape[1], d_input]))
}

/// `x·W ± delta`: `[members · rows, d_output]`.
fn plus_minus_product<B: Backend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    delta: FloatTensor<B>,
    input: InputRows,
) -> FloatTensor<B> {
    let (p, d_output) = (delta.shape()[0], weight.shape()[1]);
    let span = profile::span(Component::BaseProduct, 0);
    let base = B::float_matmul(x, weight);
    span.set_bytes(base.shape().num_elements() * base.dtype().size());
    span.end(|| drop(B::sync(&base.device())));
    let span = profile::span(Component::LowRankPart, 0);
    let (base, delta) = match input {
        InputRows::Shared => {
            let rows = delta.shape()[1];
            let delta = B::float_reshape(delta, Shape::new([p, 1, rows, d_output]));
            (B::float_reshape(base, Shape::new([1, 1, rows, d_output])), plus_minus::<B>(delta))
        }
        InputRows::PerMember => {
            let shape = Shape::new([p, 2, delta.shape()[1] / 2, d_output]);
            let one = B::float_ones(Shape::new([1, 1, 1, 1]), &delta.device(), delta.dtype().into());
            let delta = B::float_mul(B::float_reshape(delta, shape.clone()), plus_minus::<B>(one));
            (B::float_reshape(base, shape), delta)
        }
    };
    let y = B::float_add(base, delta); // [pairs, 2, rows, d_output]
    let rows = 2 * p * y.shape()[2];
    span.set_bytes(y.shape().num_elements() * y.dtype().size());
    span.end(|| drop(B::sync(&y.device())));
    B::float_reshape(y, Shape::new([rows, d_output]))
}

/// Adds the bias of every member to `y : [members · rows, d_output]`.
fn add_bias<B: Backend>(y: FloatTensor<B>, bias: BiasPrimitive<B>, pairs: PairRange) -> FloatTensor<B> {
    let [rows, d_output] = dims::<B>(&y);
    match bias {
        BiasPrimitive::None => y,
        BiasPrimitive::Plain(bias) => B::float_add(y, B::float_reshape(bias, Shape::new([1, d_output]))),
        BiasPrimitive::Perturbed(bias, noise, source) => {
            let members = pairs.members();
            let bias = perturbed_vector::<B>(bias, noise, source, pairs);
            let bias = B::float_reshape(bias, Shape::new([members, 1, d_output]));
            let y = B::float_reshape(y, Shape::new([members, rows / members, d_output]));
            B::float_reshape(B::float_add(y, bias), Shape::new([rows, d_output]))
        }
    }
}

/// `t` and `−t`, side by side along dimension 1.
fn plus_minus<B: Backend>(t: FloatTensor<B>) -> FloatTensor<B> {
    let negative = B::float_neg(t.clone());
    B::float_cat(vec![t, negative], 1)
}
