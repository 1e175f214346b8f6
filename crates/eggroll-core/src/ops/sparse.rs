//! Sparse noise: operations composed of gathers, sums of entries and products on the device; the host draws the positions.

use super::checks::{check_linear, check_rows};
use super::entry_sum::sum_entries;
use super::portable::sum_type;
use super::repeated;
use super::{InputRows, LinearBias, LinearMembers, LowRankNoise, NoiseSource, PairRange, low_rank_linear};
use crate::rng::key::NoiseKey;
use crate::rng::sparse::{count, places};
use crate::work::counters;
use crate::work::profile::{self, Component};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};

/// Noise of a few entries of a matrix, `σ·N(0, 1)` each, at the positions of [`crate::rng::sparse`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparseNoise {
    /// Address of the draw.
    pub key: NoiseKey,
    /// `σ`.
    pub scale: f32,
    /// Whether the operation's matrix is the transpose of the parameter; see [`transposed`](Self::transposed).
    pub transposed: bool,
}

impl SparseNoise {
    /// Entries of standard deviation `sigma`.
    pub fn new(key: NoiseKey, sigma: f64) -> Self {
        Self { key, scale: sigma as f32, transposed: false }
    }

    /// The same noise for a linear operation whose weight is the transpose of the parameter.
    pub fn transposed(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }
}

/// Entries of sparse noise for a run of pairs, without its scale. Entries of one pair at the same position add up.
#[derive(Clone, Debug)]
pub struct Entries {
    /// Row of every entry: `[pairs, entries]`.
    pub rows: Vec<i32>,
    /// Column of every entry: `[pairs, entries]`.
    pub columns: Vec<i32>,
    /// `[pairs, entries]`
    pub values: Tensor<2>,
}

impl Entries {
    /// `s·c·x·E` for members of both signs, in a matrix of `d_output` columns.
    ///
    /// # Shapes
    ///
    /// - x: `[members · rows, d_input]`, or `[rows, d_input]` if shared
    /// - output: `[members · rows, d_output]`
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit.
    pub fn product(self, x: Tensor<2>, scale: f32, d_output: usize, input: InputRows) -> Tensor<2> {
        let ([all, d_input], [pairs, entries]) = (x.dims(), self.values.dims());
        let (first, rows) = match input {
            InputRows::PerMember => (pairs, all / pairs),
            InputRows::Shared => (1, all),
        };
        let x = x.reshape([first, rows, d_input]).expand([pairs, rows, d_input]);
        let read = self.index(self.rows.clone()).expand([pairs, rows, entries]);
        let values = x.gather(2, read) * (self.values * scale).unsqueeze_dim::<3>(1); // [pairs, rows, entries]
        both_signs(sum_entries(values, &self.columns, d_output), input)
    }

    /// Rows `indices : [pairs, rows]` of `c·E`: `[pairs, rows, d_output]`.
    pub fn select(self, indices: Tensor<2, Int>, scale: f32, d_output: usize) -> Tensor<3> {
        let ([pairs, rows], [_, entries]) = (indices.dims(), self.values.dims());
        let of_rows = self.index(self.rows.clone()).cast(indices.dtype()).expand([pairs, rows, entries]);
        let met = of_rows.equal(indices.unsqueeze_dim::<3>(2).expand([pairs, rows, entries]));
        let values = met.float().cast(self.values.dtype()) * (self.values * scale).unsqueeze_dim::<3>(1);
        sum_entries(values, &self.columns, d_output)
    }

    /// `E` of every pair, row-major: `[pairs, d_input · d_output]`.
    pub fn matrices(self, [d_input, d_output]: [usize; 2]) -> Tensor<2> {
        let places = self.places([d_input, d_output]);
        sum_entries(self.values.unsqueeze_dim(1), &places, d_input * d_output).squeeze_dim(1)
    }

    /// `Σ_q w_q·c·E_q` for weights `[pairs]`: `[d_input, d_output]`.
    ///
    /// # Panics
    ///
    /// Panics if there are not as many weights as pairs.
    pub fn estimate(self, weights: Tensor<1>, scale: f32, [d_input, d_output]: [usize; 2]) -> Tensor<2> {
        let ([pairs, entries], places) = (self.values.dims(), self.places([d_input, d_output]));
        let values = self.values * (weights * scale).reshape([pairs, 1]);
        sum_entries(values.reshape([1, 1, pairs * entries]), &places, d_input * d_output).reshape([d_input, d_output])
    }

    /// Place of every entry in a row-major matrix.
    fn places(&self, [d_input, d_output]: [usize; 2]) -> Vec<i32> {
        assert!(
            d_input * d_output <= i32::MAX as usize,
            "a matrix [{d_input}, {d_output}] of 2³¹ elements or more is too large for sparse noise"
        );
        self.rows.iter().zip(&self.columns).map(|(row, column)| row * d_output as i32 + column).collect()
    }

    /// Indices `[pairs, entries]` on the device: `[pairs, 1, entries]`.
    fn index(&self, indices: Vec<i32>) -> Tensor<3, Int> {
        let [pairs, entries] = self.values.dims();
        Tensor::from_data(TensorData::new(indices, [pairs, 1, entries]), &self.values.device())
    }
}

/// The entries of the noise of `pairs` in the operation's matrix `[d_input, d_output]`.
///
/// # Panics
///
/// Panics if `source` does not hold the noise.
#[track_caller]
pub fn sparse_entries(
    noise: SparseNoise,
    source: &NoiseSource,
    pairs: PairRange,
    shape: [usize; 2],
    (device, dtype): (&Device, DType),
) -> Entries {
    let [d_input, d_output] = shape;
    let of_parameter = if noise.transposed { [d_output, d_input] } else { shape };
    let (entries, all) = (count(shape), pairs.count as usize * count(shape));
    let (mut rows, mut columns) = (Vec::with_capacity(all), Vec::with_capacity(all));
    for [row, column] in (0..pairs.count).flat_map(|pair| places(noise.key, pairs.first + pair, of_parameter)) {
        rows.push(row as i32);
        columns.push(column as i32);
    }
    let (rows, columns) = if noise.transposed { (columns, rows) } else { (rows, columns) };
    Entries { rows, columns, values: source.noise(noise.key, pairs, entries, (device, dtype)) }
}

/// Linear operation under the weights `W + s·E` of every member, none of which is formed:
///
/// `y = x·W + b + s·x·E`, `E` having `max(d_input, d_output)` entries `σ·N(0, 1)`, `s = ±1` for even and odd members.
///
/// # Shapes
///
/// As [`low_rank_linear`](super::low_rank_linear).
///
/// # Panics
///
/// Panics if shapes do not fit, the rows are not a multiple of the members, or `source` does not hold the noise, with both shapes.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::ops::{InputRows, LinearBias, LinearMembers, NoiseSource, PairRange, SparseNoise, sparse_linear};
/// use eggroll_core::NoiseKey;
///
/// let device = Device::flex();
/// let (x, weight) = (Tensor::<2>::ones([5, 3], &device), Tensor::<2>::ones([3, 2], &device));
/// let noise = SparseNoise::new(NoiseKey::new(0, 0, 0), 0.1);
/// let members = LinearMembers { pairs: PairRange::new(0, 4), input: InputRows::Shared };
/// let y = sparse_linear(x, weight, LinearBias::None, noise, NoiseSource::Drawn, members);
/// assert_eq!(y.dims(), [8 * 5, 2]);
/// ```
#[track_caller]
pub fn sparse_linear(
    x: Tensor<2>,
    weight: Tensor<2>,
    bias: LinearBias,
    noise: SparseNoise,
    source: NoiseSource,
    members: LinearMembers,
) -> Tensor<2> {
    check_linear(&x, &weight, &bias, &members);
    let (place, shape) = ((&x.device(), x.dtype()), weight.dims());
    let entries = sparse_entries(noise, &source, members.pairs, shape, place);
    let span = profile::span(Component::LowRankPart, 0);
    let delta = entries.product(x.clone(), noise.scale, shape[1], members.input);
    span.end(|| drop(delta.device().sync()));
    // Kernels make `x·W + b`, the same for any chunks: the low-rank operation with only baselines.
    let silent = LowRankNoise::new(noise.key.with_baselines(1), 1, 0.0);
    low_rank_linear(x, weight, bias, silent, NoiseSource::Drawn, members) + delta
}

/// The noise of pairs, for members of both signs: `[pairs, 2 · rows, columns]` of their own rows, or `[pairs, rows, columns]` of shared
/// rows, to `[members · rows, columns]`.
fn both_signs(delta: Tensor<3>, input: InputRows) -> Tensor<2> {
    let [pairs, rows, columns] = delta.dims();
    let (of_pair, each) = match input {
        InputRows::PerMember => ([pairs, 2, rows / 2, columns], rows / 2),
        InputRows::Shared => ([pairs, 1, rows, columns], rows),
    };
    let place = (&delta.device(), delta.dtype());
    let signs = Tensor::<4>::from_data(TensorData::new(vec![1.0f32, -1.0], [1, 2, 1, 1]), place);
    (delta.reshape(of_pair) * signs).reshape([2 * pairs * each, columns])
}

/// Rows of the weights `W + s·E` of every member, none of which is formed: `y = W[k] + s·E[k]` for every index `k`.
///
/// # Shapes
///
/// As [`perturbed_embedding`](super::perturbed_embedding).
///
/// # Panics
///
/// Panics if the indices are not a multiple of the members, there are none, or `source` does not hold the noise.
#[track_caller]
pub fn sparse_embedding(
    weight: Tensor<2>,
    indices: Tensor<1, Int>,
    noise: SparseNoise,
    source: NoiseSource,
    members: LinearMembers,
) -> Tensor<2> {
    let ([rows], [_, d_model], count) = (indices.dims(), weight.dims(), members.pairs.members());
    check_rows("sparse embedding", rows, d_model, &members);
    assert!(!noise.transposed, "sparse embedding: rows are of the weight {:?} itself", weight.dims());
    counters::add_launch();
    let indices = match members.input {
        InputRows::PerMember => indices,
        InputRows::Shared => repeated(indices, count),
    };
    let (pairs, each) = (members.pairs.count as usize, members.rows_per_member(rows));
    let place = (&weight.device(), weight.dtype());
    let entries = sparse_entries(noise, &source, members.pairs, weight.dims(), place);
    let delta = entries.select(indices.clone().reshape([pairs, 2 * each]), noise.scale, d_model);
    weight.select(0, indices) + both_signs(delta, InputRows::PerMember)
}

/// `Σ_q w_q·E_q` over the pairs `first_pair, first_pair + 1, …`, with noise and sum of type `dtype`. Sums and weights are float32, or
/// float64 if `dtype` is.
///
/// # Shapes
///
/// - weights: `[pairs]`
/// - output: `shape = [d_input, d_output]`
///
/// # Panics
///
/// Panics if the noise is for a transpose or `source` does not hold the noise.
#[track_caller]
pub fn sparse_estimate(
    weights: Tensor<1>,
    noise: SparseNoise,
    source: NoiseSource,
    first_pair: u32,
    shape: [usize; 2],
    dtype: DType,
) -> Tensor<2> {
    assert!(!noise.transposed, "sparse estimate: of a parameter {shape:?}, not of its transpose");
    counters::add_launch();
    let span = profile::span(Component::Estimate, 0);
    let pairs = PairRange::new(first_pair, weights.dims()[0] as u32);
    let (entries, wide) = (sparse_entries(noise, &source, pairs, shape, (&weights.device(), dtype)), sum_type(dtype));
    let entries = Entries { values: entries.values.cast(wide), ..entries };
    let sum = entries.estimate(weights.cast(wide), noise.scale, shape).cast(dtype);
    span.end_waiting(|| drop(sum.device().sync()));
    sum
}
