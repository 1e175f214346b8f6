//! Weighted sums of noise with separate weights and a separate input for every part of a score.

use super::{LowRankNoise, NoiseSource, PairRange};
use crate::work::counters;
use crate::work::device::is_on_host;
use crate::work::profile::{self, Component};
use burn::tensor::{DType, Device, IndexingUpdateOp, Int, Tensor};

/// Largest number of elements held at a time, of noise or of its products with the rows.
const MOST_ELEMENTS: usize = 1 << 24;

/// The input of one use of a weight `W: [d_input, d_output]`.
#[derive(Clone, Debug)]
pub enum Input {
    /// `x` of `x·W`: `[rows, d_input]`.
    Rows(Tensor<2>),
    /// `x` of `x·Wᵀ`, as in an output layer tied to an embedding: `[rows, d_output]`.
    Transposed(Tensor<2>),
    /// Rows of `W` that are looked up: `[rows]`.
    Indices(Tensor<1, Int>),
    /// An input that no estimate can be projected onto.
    Other,
}

impl Input {
    /// Its rows; 0 of [`Other`](Self::Other).
    pub fn rows(&self) -> usize {
        match self {
            Self::Rows(x) | Self::Transposed(x) => x.dims()[0],
            Self::Indices(indices) => indices.dims()[0],
            Self::Other => 0,
        }
    }

    /// Where it is.
    ///
    /// # Panics
    ///
    /// Panics for [`Other`](Self::Other).
    fn device(&self) -> Device {
        match self {
            Self::Rows(x) | Self::Transposed(x) => x.device(),
            Self::Indices(indices) => indices.device(),
            Self::Other => panic!("an input without rows is nowhere"),
        }
    }

    /// Whether two uses have the same input. Reads both to the host.
    pub fn is_same(&self, other: &Self) -> bool {
        self.rows() == other.rows()
            && match (self, other) {
                (Self::Rows(a), Self::Rows(b)) | (Self::Transposed(a), Self::Transposed(b)) => {
                    a.to_data() == b.to_data()
                }
                (Self::Indices(a), Self::Indices(b)) => a.to_data() == b.to_data(),
                (Self::Other, Self::Other) => true,
                _ => false,
            }
    }
}

/// The effect of low-rank noise of pairs on the rows of one use: `(x_t·b_qk)·a_qk`, in separate factors.
///
/// With signs in place of values if the noise says so.
#[derive(Clone, Debug)]
pub(crate) struct LowRankRows {
    /// `x_t·b_qk` `[rows, pairs · rank]` and `a_qk` `[pairs · rank, width]`, for runs of pairs.
    runs: Vec<(PairRange, Tensor<2>, Tensor<2>)>,
    noise: LowRankNoise,
}

impl LowRankRows {
    /// For pairs from 0 on, in float32. Holds 2²⁴ elements of factors at a time, and keeps the products.
    ///
    /// # Panics
    ///
    /// Panics if the shapes do not fit, the rank is 0, the noise is for a transpose, or `source` does not hold the noise.
    #[track_caller]
    pub fn new(
        input: &Input,
        noise: LowRankNoise,
        source: &NoiseSource,
        [d_input, d_output]: [usize; 2],
        pairs: usize,
        dtype: DType,
    ) -> Self {
        assert!(noise.rank > 0, "estimate by part: rank 0");
        assert!(!noise.transposed, "estimate by part: of a parameter, not of its transpose");
        let _span = profile::span(Component::Estimate, 0);
        counters::add_launch();
        let (rank, device) = (noise.rank, input.device());
        let elements = rank * (d_input + d_output);
        let of_run = |run: PairRange| {
            let drawn = source.noise(noise.key, run, elements, (&device, dtype)).cast(DType::F32);
            let drawn = if noise.signs { drawn.sign() } else { drawn };
            let [b, a] = factors(drawn, rank, [d_input, d_output]);
            let (seen, other) = match input {
                Input::Rows(x) => (x.clone().cast(DType::F32).matmul(b.transpose()), a),
                Input::Transposed(x) => (x.clone().cast(DType::F32).matmul(a.transpose()), b),
                Input::Indices(indices) => (b.select(1, indices.clone()).transpose(), a),
                Input::Other => unreachable!("it is nowhere"),
            };
            (run, seen, other)
        };
        Self { runs: runs(pairs, elements.max(input.rows() * rank)).map(of_run).collect(), noise }
    }

    /// `Σ_q w_tq·x_t·E_q` of every row `t`, `E_q = c·B_q·A_qᵀ` with `c = σ/√r`: `[rows, width]` of weights `[rows, pairs]`.
    pub fn products(&self, weights: &Tensor<2>) -> Tensor<2> {
        let (rows, rank) = (weights.dims()[0], self.noise.rank);
        let of_run = |(run, seen, other): &(PairRange, Tensor<2>, Tensor<2>)| {
            let (first, count) = (run.first as usize, run.count as usize);
            let weights = weights.clone().slice_dim(1, first..first + count).unsqueeze_dim::<3>(2); // [rows, count, 1]
            let weights = weights.expand([rows, count, rank]).reshape([rows, count * rank]);
            (seen.clone() * weights).matmul(other.clone())
        };
        let sums = self.runs.iter().map(of_run).reduce(|sum, next| sum + next).expect("there are pairs");
        sums.mul_scalar(self.noise.scale)
    }

    /// How far every pair moves the weight's outputs of every part, squared and relative to its mean over noise:
    /// `1/r·Σ_k (x_t·b_qk)²/|x_t|²·|a_qk|²/width`, `[parts, pairs]`. A part of several rows has the mean over them, weighted by their squares; a part of zeros
    /// has 0.
    pub fn power(&self, input: &Input, parts: usize) -> Tensor<2> {
        let (rank, rows) = (self.noise.rank, input.rows() / parts);
        let squares = match input {
            Input::Rows(x) | Input::Transposed(x) => x.clone().cast(DType::F32).square().sum_dim(1),
            _ => Tensor::ones([input.rows(), 1], &input.device()),
        };
        let inverse = inverse_of(squares.reshape([parts, rows]).sum_dim(1)); // [parts, 1]
        let of_run = |(run, seen, other): &(PairRange, Tensor<2>, Tensor<2>)| {
            let count = run.count as usize;
            let lengths = other.clone().square().mean_dim(1).transpose(); // [1, count · rank]
            let moved = seen.clone().square() * lengths;
            let moved = if rows * rank == 1 {
                moved
            } else {
                moved.reshape([parts, rows, count, rank]).sum_dim(1).mean_dim(3).reshape([parts, count])
            };
            moved * inverse.clone()
        };
        let mut powers: Vec<_> = self.runs.iter().map(of_run).collect();
        if powers.len() == 1 { powers.remove(0) } else { Tensor::cat(powers, 1) }
    }
}

/// The columns of both factors of every pair, `[pairs · rank, d_input]` and `[pairs · rank, d_output]`, of their noise.
pub(crate) fn factors(noise: Tensor<2>, rank: usize, [d_input, d_output]: [usize; 2]) -> [Tensor<2>; 2] {
    let [pairs, elements] = noise.dims();
    let columns = |part: Tensor<2>, width: usize| match rank {
        // In place: a reshape would copy it. Burn multiplies a single column otherwise unless it is contiguous.
        1 if width > 1 => part,
        _ => part.reshape([pairs * rank, width]),
    };
    let b = columns(noise.clone().slice_dim(1, 0..rank * d_input), d_input);
    [b, columns(noise.slice_dim(1, rank * d_input..elements), d_output)]
}

/// The sum over runs of pairs, for pairs of `elements` elements.
pub(crate) fn in_runs<T: std::ops::Add<Output = T>>(
    pairs: usize,
    elements: usize,
    of_run: impl Fn(PairRange) -> T,
) -> T {
    runs(pairs, elements).map(of_run).reduce(|sum, next| sum + next).expect("estimate by part: no pairs")
}

fn runs(pairs: usize, elements: usize) -> impl Iterator<Item = PairRange> {
    let most = (MOST_ELEMENTS / elements.max(1)).max(1);
    (0..pairs).step_by(most).map(move |first| PairRange::new(first as u32, most.min(pairs - first) as u32))
}

/// The gradient `[d_input, d_output]` that maps the input of each part `t` to `y_t` and is 0 outside its span. That is
/// `Σ_t x_tᵀ·y_t / |x_t|²`, its transpose, or `y_t` in the row that was looked up. A row of zeros adds nothing.
pub(crate) fn spread(y: Tensor<2>, input: &Input, shape: [usize; 2]) -> Tensor<2> {
    match input {
        Input::Rows(x) => on_rows(y, x.clone().cast(DType::F32)),
        Input::Transposed(x) => on_rows(y, x.clone().cast(DType::F32)).transpose(),
        Input::Indices(indices) => {
            Tensor::zeros(shape, &y.device()).select_assign(0, indices.clone(), y, IndexingUpdateOp::Add)
        }
        Input::Other => unreachable!("checked by the caller"),
    }
}

/// `Σ_t x_tᵀ·y_t / |x_t|²`.
fn on_rows(y: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
    let inverse = inverse_squares(&x);
    x.transpose().matmul(y * inverse)
}

/// `1/|x_t|²`, 0 for a row of zeros: `[parts, 1]`.
fn inverse_squares(x: &Tensor<2>) -> Tensor<2> {
    inverse_of(x.clone().square().sum_dim(1))
}

/// `1/x`, 0 of 0.
fn inverse_of(squares: Tensor<2>) -> Tensor<2> {
    let inverse = squares.clone().clamp_min(f32::MIN_POSITIVE).recip();
    inverse.mask_fill(squares.equal_elem(0.0), 0.0)
}

/// `y_t` without its component along `x_t`, both `[parts, width]`.
pub(crate) fn apart_from(y: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
    let x = x.cast(DType::F32);
    let along = (y.clone() * x.clone()).sum_dim(1) * inverse_squares(&x); // [parts, 1]
    y - x * along
}

/// An orthonormal basis of the rows of every part, in their order; a row in the span of earlier rows becomes zeros. Gram–Schmidt, twice for
/// stability.
///
/// # Shapes
///
/// - x, output: `[parts, rows, width]`
pub fn orthonormal_rows(x: Tensor<3>) -> Tensor<3> {
    let ([_, rows, _], x) = (x.dims(), x.cast(DType::F32));
    let exact = !is_on_host(&x.device());
    let mut basis: Vec<Tensor<3>> = Vec::with_capacity(rows);
    for row in 0..rows {
        let row = x.clone().slice_dim(1, row..row + 1); // [parts, 1, width]
        let norm = row.clone().square().sum_dim(2);
        let mut rest = row;
        if !basis.is_empty() {
            let before = Tensor::cat(basis.clone(), 1);
            for _ in 0..2 {
                rest = rest.clone() - along(rest, before.clone(), exact);
            }
        }
        let left = rest.clone().square().sum_dim(2); // [parts, 1, 1]
        let spans = left.clone().greater(norm * super::DEPENDENT).bool_not();
        basis.push(
            (rest * left.clamp_min(f32::MIN_POSITIVE).sqrt().recip())
                .mask_fill(spans.expand(x.clone().slice_dim(1, 0..1).dims()), 0.0),
        );
    }
    Tensor::cat(basis, 1)
}

/// The components `[parts, 1, width]` of `rest` along the rows of `before`. Products on devices may round their factors to TF32, after which a
/// dependent row seems to have a new direction: `exact` uses sums instead.
fn along(rest: Tensor<3>, before: Tensor<3>, exact: bool) -> Tensor<3> {
    if exact {
        let overlap = (rest * before.clone()).sum_dim(2); // [parts, rows before, 1]
        (overlap * before).sum_dim(1)
    } else {
        rest.matmul(before.clone().transpose()).matmul(before)
    }
}

/// Panics if there is not one row of input for each part.
#[track_caller]
pub(crate) fn check(weights: &Tensor<2>, input: &Input) {
    assert!(
        weights.dims()[0] == input.rows(),
        "estimate by part: weights {:?} do not fit an input of {} rows: every part has one",
        weights.dims(),
        input.rows()
    );
}
