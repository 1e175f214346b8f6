//! Defaults of [`PerturbedOps`](super::PerturbedOps) for any backend: ordinary tensor operations on the device, nothing read to the host.
//!
//! The noise is the same stream as everywhere ([`crate::rng::normal`]), made by integer operations of the backend.
//! It is held in memory for the members of the call: these defaults are for coverage, not for speed.

use super::{
    BiasPrimitive, DEPENDENT, DenseNoise, InputRows, LinearMembers, LowRankNoise, PairRange, SourcePrimitive,
    table_start,
};
use crate::counters;
use crate::key::NoiseKey;
use crate::rng::normal::GROUP;
use crate::rng::philox::{MULTIPLIERS, ROUNDS, round_key};
use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::{DType, FloatDType, IntDType, Shape, Slice, TensorData};

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
    let drawn = B::float_reshape(drawn, Shape::new([pairs.count as usize, d_input, d_output]));
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
) -> FloatTensor<B> {
    let pairs = PairRange::new(first, weights.shape()[0] as u32);
    let (b, a) = factors::<B>(&noise, source, pairs, shape, &weights);
    explicit_low_rank_estimate::<B>(weights, b, a, noise.scale)
}

pub(crate) fn dense_estimate<B: Backend>(
    weights: FloatTensor<B>,
    noise: DenseNoise,
    source: SourcePrimitive<B>,
    first: u32,
    elements: usize,
) -> FloatTensor<B> {
    let pairs = PairRange::new(first, weights.shape()[0] as u32);
    let drawn = held_or_drawn::<B>(source, noise.key, pairs, elements, &weights);
    explicit_dense_estimate::<B>(weights, drawn, noise.scale)
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
    let x_pairs = per_pair::<B>(x.clone(), b.shape()[0], input); // [pairs, rows of the pair, d_input]
    let t = B::float_matmul(x_pairs, B::float_swap_dims(b, 1, 2)); // [pairs, rows of the pair, rank]
    let delta = B::float_mul_scalar(B::float_matmul(t, a), Scalar::from(scale)); // [pairs, rows of the pair, d_output]
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
    let x_pairs = per_pair::<B>(x.clone(), drawn.shape()[0], input); // [pairs, rows of the pair, d_input]
    let delta = B::float_mul_scalar(B::float_matmul(x_pairs, drawn), Scalar::from(scale));
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
    let ([rows, classes], each) = (dims::<B>(&logits), targets.shape()[0]);
    let targets = B::int_expand(B::int_reshape(targets, Shape::new([1, each])), Shape::new([members, each]));
    let targets = B::int_reshape(targets, Shape::new([rows, 1]));
    let largest = B::float_max_dim(logits.clone(), 1);
    let shifted = B::float_sub(logits, B::float_expand(largest, Shape::new([rows, classes])));
    let chosen = B::float_gather(1, shifted.clone(), targets); // [rows, 1]
    let log_sum = B::float_log(B::float_sum_dim(B::float_exp(shifted), 1)); // [rows, 1]
    let losses = B::float_reshape(B::float_sub(log_sum, chosen), Shape::new([members, each]));
    B::float_reshape(B::float_mean_dim(losses, 1), Shape::new([members]))
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
    let base = B::float_matmul(x, weight);
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

fn slice_columns<B: Backend>(t: FloatTensor<B>, start: usize, len: usize) -> FloatTensor<B> {
    let rows = t.shape()[0];
    B::float_slice(t, &[Slice::from(0..rows), Slice::from(start..start + len)])
}

/// Factors `B : [pairs, rank, d_input]` and `A : [pairs, rank, d_output]`, on the device and of the type of `like`.
fn factors<B: Backend>(
    noise: &LowRankNoise,
    source: SourcePrimitive<B>,
    pairs: PairRange,
    [d_input, d_output]: [usize; 2],
    like: &FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let (p, r) = (pairs.count as usize, noise.rank);
    let drawn = held_or_drawn::<B>(source, noise.key, pairs, (d_input + d_output) * r, like);
    let b = slice_columns::<B>(drawn.clone(), 0, d_input * r);
    let a = slice_columns::<B>(drawn, d_input * r, d_output * r);
    (B::float_reshape(b, Shape::new([p, r, d_input])), B::float_reshape(a, Shape::new([p, r, d_output])))
}

/// The noise of `pairs`, `len` elements each: `[pairs, len]`.
fn held_or_drawn<B: Backend>(
    source: SourcePrimitive<B>,
    key: NoiseKey,
    pairs: PairRange,
    len: usize,
    like: &FloatTensor<B>,
) -> FloatTensor<B> {
    let count = pairs.count as usize;
    match source {
        SourcePrimitive::Drawn => {
            counters::add_noise_bytes(count * len * like.dtype().size());
            normals::<B>(key, pairs, len, like)
        }
        SourcePrimitive::Cached(noise, first) => {
            let first = (pairs.first - first) as usize;
            B::float_slice(noise, &[Slice::from(first..first + count), Slice::from(0..len)])
        }
        SourcePrimitive::Table(table) => {
            let table_len = table.shape()[0];
            let starts = (0..pairs.count).map(|p| table_start(key, pairs.first + p, len, table_len) as i64);
            let device = like.device();
            let words = Words::<B>::new(&device);
            let starts = words.tensor(starts.collect(), [count, 1]);
            let offsets = words.range(0, len, [1, len]);
            let shape = Shape::new([count, len]);
            let indices = B::int_add(B::int_expand(starts, shape.clone()), B::int_expand(offsets, shape.clone()));
            let run = B::float_gather(0, table, B::int_reshape(indices, Shape::new([count * len])));
            B::float_reshape(run, shape)
        }
    }
}

/// The first `len` elements of the streams of `pairs`: `[pairs, len]`, on the device and of the type of `like`.
pub(crate) fn normals<B: Backend>(
    key: NoiseKey,
    pairs: PairRange,
    len: usize,
    like: &FloatTensor<B>,
) -> FloatTensor<B> {
    let (p, groups, dtype) = (pairs.count as usize, len.div_ceil(GROUP), like.dtype());
    let [w0, w1, w2, w3] = Words::<B>::new(&like.device()).blocks(key, pairs, groups);
    let (n0, n1) = box_muller::<B>(w0, w1, dtype.into());
    let (n2, n3) = box_muller::<B>(w2, w3, dtype.into());
    let lanes = [n0, n1, n2, n3].map(|n| B::float_reshape(n, Shape::new([p, groups, 1, GROUP / 4])));
    let all = B::float_reshape(B::float_cat(lanes.into(), 2), Shape::new([p, groups * GROUP]));
    slice_columns::<B>(all, 0, len)
}

/// Two normals from two words, as [`crate::rng::normal`] defines them.
fn box_muller<B: Backend>(
    radius: IntTensor<B>,
    angle: IntTensor<B>,
    dtype: FloatDType,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let scaled =
        |t: IntTensor<B>, scale: f64| B::float_mul_scalar(B::int_into_float(t, FloatDType::F32), Scalar::from(scale));
    let bits = |t: &IntTensor<B>, shift: i64, mask: i64| {
        B::bitwise_and_scalar(B::bitwise_right_shift_scalar(t.clone(), Scalar::from(shift)), Scalar::from(mask))
    };
    let unit = 1.0 / 16_777_216.0;
    let u = scaled(B::bitwise_or_scalar(bits(&radius, 8, 0xff_ffff), Scalar::from(1i64)), unit);
    let r = B::float_sqrt(B::float_mul_scalar(B::float_log(u), Scalar::from(-2.0)));
    // Sign extension of 24 bits: flip the top bit, take it away.
    let half = 1i64 << 23;
    let v = B::bitwise_xor_scalar(bits(&angle, 6, 0xff_ffff), Scalar::from(half));
    let v = B::bitwise_or_scalar(B::int_sub_scalar(v, Scalar::from(half)), Scalar::from(1i64));
    let phi = scaled(v, unit * std::f64::consts::FRAC_PI_2);
    let swap = scaled(bits(&angle, 30, 1), 1.0);
    let sign = B::float_add_scalar(scaled(bits(&angle, 31, 1), -2.0), Scalar::from(1.0));
    let sin = B::float_sin(phi.clone());
    let cos = B::float_mul(B::float_cos(phi), sign);
    // Exact selection: swap is 0 or 1.
    let keep = B::float_add_scalar(B::float_neg(swap.clone()), Scalar::from(1.0));
    let blend = |a: &FloatTensor<B>, b: &FloatTensor<B>| {
        B::float_add(B::float_mul(a.clone(), swap.clone()), B::float_mul(b.clone(), keep.clone()))
    };
    let pair = (blend(&sin, &cos), blend(&cos, &sin));
    let finish = |n: FloatTensor<B>| B::float_cast(B::float_mul(n, r.clone()), dtype);
    (finish(pair.0), finish(pair.1))
}

/// Philox words as integer tensors. With 64-bit integers a word is its value; with 32-bit ones, its bit pattern,
/// and products wrap.
struct Words<'a, B: Backend> {
    device: &'a Device<B>,
    dtype: IntDType,
}

impl<'a, B: Backend> Words<'a, B> {
    fn new(device: &'a Device<B>) -> Self {
        let dtype = if B::supports_dtype(device, DType::I64) { IntDType::I64 } else { IntDType::I32 };
        Self { device, dtype }
    }

    /// The words of the first `groups` groups of every pair: four tensors `[pairs, 16 · groups]`.
    fn blocks(&self, key: NoiseKey, pairs: PairRange, groups: usize) -> [IntTensor<B>; 4] {
        let lanes = GROUP / 4;
        let shape = Shape::new([pairs.count as usize, groups * lanes]);
        let block = self.range(0, groups * lanes, [1, groups * lanes]);
        let pair = self.range(pairs.first, pairs.count as usize, [pairs.count as usize, 1]);
        let [_, _, c2, c3] = key.counter(0, 0);
        let constant = |word: u32| B::int_expand(self.range(word, 1, [1, 1]), shape.clone());
        let mut c =
            [B::int_expand(block, shape.clone()), B::int_expand(pair, shape.clone()), constant(c2), constant(c3)];
        for round in 0..ROUNDS {
            let [k0, k1] = round_key(key.words(), round).map(constant);
            let [c0, c1, c2, c3] = c;
            let (high0, low0) = self.product(c0, MULTIPLIERS[0]);
            let (high1, low1) = self.product(c2, MULTIPLIERS[1]);
            c = [
                B::bitwise_xor(B::bitwise_xor(high1, c1), k0),
                low1,
                B::bitwise_xor(B::bitwise_xor(high0, c3), k1),
                low0,
            ];
        }
        c
    }

    /// `first, first + 1, …` in the given shape.
    fn range(&self, first: u32, len: usize, shape: [usize; 2]) -> IntTensor<B> {
        self.tensor((0..len as u32).map(|i| i64::from(first.wrapping_add(i))).collect(), shape)
    }

    fn tensor(&self, words: Vec<i64>, shape: [usize; 2]) -> IntTensor<B> {
        let data = match self.dtype {
            IntDType::I64 => TensorData::new(words, shape),
            _ => TensorData::new(words.into_iter().map(|word| word as i32).collect::<Vec<_>>(), shape),
        };
        B::int_from_data(data, self.device)
    }

    /// High and low word of `a · m`, by halves of 16 bits.
    fn product(&self, a: IntTensor<B>, m: u32) -> (IntTensor<B>, IntTensor<B>) {
        let mask = Scalar::from(0xffffi64);
        let low = |t: &IntTensor<B>| B::bitwise_and_scalar(t.clone(), mask);
        let high = |t: &IntTensor<B>| {
            B::bitwise_and_scalar(B::bitwise_right_shift_scalar(t.clone(), Scalar::from(16i64)), mask)
        };
        let (m_low, m_high) = (Scalar::from(i64::from(m & 0xffff)), Scalar::from(i64::from(m >> 16)));
        let (a_low, a_high) = (low(&a), high(&a));
        let ll = B::int_mul_scalar(a_low.clone(), m_low);
        let lh = B::int_mul_scalar(a_low, m_high);
        let hl = B::int_mul_scalar(a_high.clone(), m_low);
        let hh = B::int_mul_scalar(a_high, m_high);
        let middle = B::int_add(B::int_add(high(&ll), low(&lh)), low(&hl));
        let top = B::int_add(B::int_add(hh, high(&lh)), B::int_add(high(&hl), high(&middle)));
        let bottom = B::bitwise_left_shift_scalar(low(&middle), Scalar::from(16i64));
        (top, B::bitwise_or(bottom, low(&ll)))
    }
}
