//! Noise by tensor operations: Philox words as integer tensors, Gaussian values or signs of them, and noise that is held.

use crate::ops::{LowRankNoise, PairRange, SourcePrimitive, baseline_mask, table_start};
use crate::rng::group::BLOCKS;
use crate::rng::key::{NoiseDistribution, NoiseKey};
use crate::rng::normal::GROUP;
use crate::rng::philox::{MULTIPLIERS, ROUNDS, round_key};
use crate::rng::rademacher;
use crate::work::counters;
use crate::work::profile::{self, Component};
use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::{DType, FloatDType, IntDType, Shape, Slice, TensorData};

/// Factors `B : [pairs, rank, d_input]` and `A : [pairs, rank, d_output]` of the operation's matrix, on the device and of the type of `like`.
pub(super) fn factors<B: Backend>(
    noise: &LowRankNoise,
    source: SourcePrimitive<B>,
    pairs: PairRange,
    [d_input, d_output]: [usize; 2],
    like: &FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let (p, r) = (pairs.count as usize, noise.rank);
    let drawn = held_or_drawn::<B>(source, noise.key, pairs, (d_input + d_output) * r, like);
    let [b_start, a_start] = noise.starts([d_input, d_output]);
    let b = slice_columns::<B>(drawn.clone(), b_start, d_input * r);
    let a = slice_columns::<B>(drawn, a_start, d_output * r);
    (B::float_reshape(b, Shape::new([p, r, d_input])), B::float_reshape(a, Shape::new([p, r, d_output])))
}

/// The noise of `pairs`, `len` elements each: `[pairs, len]`.
pub(super) fn held_or_drawn<B: Backend>(
    source: SourcePrimitive<B>,
    key: NoiseKey,
    pairs: PairRange,
    len: usize,
    like: &FloatTensor<B>,
) -> FloatTensor<B> {
    let count = pairs.count as usize;
    match source {
        SourcePrimitive::Drawn => {
            let bytes = count * len * like.dtype().size();
            let span = profile::span(Component::Noise, bytes);
            counters::add_noise_bytes(bytes);
            let noise = noise::<B>(key, pairs, len, like);
            span.end(|| drop(B::sync(&like.device())));
            noise
        }
        SourcePrimitive::Cached(noise, first) => {
            let first = (pairs.first - first) as usize;
            let noise = B::float_slice(noise, &[Slice::from(first..first + count), Slice::from(0..len)]);
            without_baselines::<B>(noise, key, pairs)
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
            without_baselines::<B>(B::float_reshape(run, shape), key, pairs)
        }
    }
}

/// The noise `[pairs, len]`, with 0 for baselines.
fn without_baselines<B: Backend>(noise: FloatTensor<B>, key: NoiseKey, pairs: PairRange) -> FloatTensor<B> {
    if !key.has_baselines() {
        return noise;
    }
    let loud = TensorData::new(baseline_mask(key, pairs), [pairs.count as usize, 1]);
    let loud = B::float_cast(B::float_from_data(loud, &noise.device()), noise.dtype().into());
    B::float_mul(noise, loud)
}

/// The first `len` elements of the streams of `pairs`: `[pairs, len]`, on the device and of the type of `like`.
pub(crate) fn noise<B: Backend>(key: NoiseKey, pairs: PairRange, len: usize, like: &FloatTensor<B>) -> FloatTensor<B> {
    let noise = match key.distribution() {
        NoiseDistribution::Normal => normals::<B>(key, pairs, len, like),
        NoiseDistribution::Rademacher => signs::<B>(key, pairs, len, like),
    };
    without_baselines::<B>(noise, key, pairs)
}

fn normals<B: Backend>(key: NoiseKey, pairs: PairRange, len: usize, like: &FloatTensor<B>) -> FloatTensor<B> {
    let (p, groups, dtype) = (pairs.count as usize, len.div_ceil(GROUP), like.dtype());
    let [w0, w1, w2, w3] = Words::<B>::new(&like.device()).blocks(key, 0, pairs, groups);
    let (n0, n1) = box_muller::<B>(w0, w1, dtype.into());
    let (n2, n3) = box_muller::<B>(w2, w3, dtype.into());
    let lanes = [n0, n1, n2, n3].map(|n| B::float_reshape(n, Shape::new([p, groups, 1, GROUP / 4])));
    let all = B::float_reshape(B::float_cat(lanes.into(), 2), Shape::new([p, groups * GROUP]));
    slice_columns::<B>(all, 0, len)
}

/// Rademacher noise, as [`rademacher`] defines it.
fn signs<B: Backend>(key: NoiseKey, pairs: PairRange, len: usize, like: &FloatTensor<B>) -> FloatTensor<B> {
    let (p, groups) = (pairs.count as usize, len.div_ceil(rademacher::GROUP));
    let device = like.device();
    let words = Words::<B>::new(&device);
    let blocks = words.blocks(key, rademacher::SIGNS, pairs, groups);
    let rows = rademacher::WORD / BLOCKS;
    let shape = Shape::new([p * groups, blocks.len(), rows, BLOCKS]);
    let of_blocks = blocks.map(|word| B::int_reshape(word, Shape::new([p * groups, 1, 1, BLOCKS])));
    let bits = B::int_expand(B::int_cat(of_blocks.into(), 1), shape.clone());
    let shifts = words.tensor((0..rows as i64).rev().collect(), [rows, 1]);
    let shifts = B::int_expand(B::int_reshape(shifts, Shape::new([1, 1, rows, 1])), shape);
    let bits = B::bitwise_and_scalar(B::bitwise_right_shift(bits, shifts), Scalar::from(1i64));
    let signs = B::int_add_scalar(B::int_mul_scalar(bits, Scalar::from(-2i64)), Scalar::from(1i64));
    let signs = B::int_into_float(signs, like.dtype().into());
    slice_columns::<B>(B::float_reshape(signs, Shape::new([p, groups * rademacher::GROUP])), 0, len)
}

fn slice_columns<B: Backend>(t: FloatTensor<B>, start: usize, len: usize) -> FloatTensor<B> {
    let rows = t.shape()[0];
    B::float_slice(t, &[Slice::from(0..rows), Slice::from(start..start + len)])
}

/// Two Gaussian values from two words, as [`crate::rng::normal`] defines them.
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
    // Sign extension of 24 bits: flip the top bit, then subtract it.
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
pub(in crate::ops) struct Words<'a, B: Backend> {
    device: &'a Device<B>,
    dtype: IntDType,
}

impl<'a, B: Backend> Words<'a, B> {
    pub(in crate::ops) fn new(device: &'a Device<B>) -> Self {
        let dtype = if B::supports_dtype(device, DType::I64) { IntDType::I64 } else { IntDType::I32 };
        Self { device, dtype }
    }

    /// The words of the first `groups` times sixteen blocks of every pair, at counters with a `mark` in their last word: four
    /// tensors `[pairs, 16 · groups]`.
    pub(in crate::ops) fn blocks(
        &self,
        key: NoiseKey,
        mark: u32,
        pairs: PairRange,
        groups: usize,
    ) -> [IntTensor<B>; 4] {
        let lanes = BLOCKS;
        let shape = Shape::new([pairs.count as usize, groups * lanes]);
        let block = self.range(0, groups * lanes, [1, groups * lanes]);
        let pair = self.range(pairs.first, pairs.count as usize, [pairs.count as usize, 1]);
        let [_, _, c2, c3] = key.counter(0, 0);
        let constant = |word: u32| B::int_expand(self.range(word, 1, [1, 1]), shape.clone());
        let mut c = [
            B::int_expand(block, shape.clone()),
            B::int_expand(pair, shape.clone()),
            constant(c2),
            constant(c3 | mark),
        ];
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
