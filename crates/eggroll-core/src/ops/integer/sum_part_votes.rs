//! The votes of an integer parameter where every part of a score votes on its own row.

use super::traced;
use crate::arithmetic::integer::Votes;
use crate::ops::Input;
use crate::work::counters;
use crate::work::profile::Component;
use burn::tensor::{DType, IndexingUpdateOp, Int, Tensor, TensorData};

/// The largest vote of a pair for a part.
pub const MOST_PART_VOTE: i8 = 7;

/// What products of rows and noise are narrowed to.
const NARROW: f32 = 128.0;
/// What sums over pairs are narrowed to, before parts are weighed.
const WIDE: f32 = 32_768.0;
/// Terms of a product of int8 values by narrow ones: 127 · 128 · 1,024 is below 2²⁴.
const DEPTH: usize = 1024;
/// Terms of a product of votes, narrow values and int8 values: 7 · 128 · 127 · 128 is below 2²⁴.
const PAIRS: usize = 128;
/// The weight of a part whose row is as long as all are in the mean; none has more than [`MOST_SHARE`].
const SHARE: u64 = 16;
const MOST_SHARE: u64 = 127;

/// `Σ_t s_t·x_tᵀ·Σ_q v_tq·(x_t·b_q)·a_q`: the votes `v_tq` of pairs for part `t`, as an estimate projected onto the row `x_t` that the part gave the
/// weight; summed over columns for a higher rank. It replaces [`sum_votes`](super::sum_votes()), in which every part has the votes `Σ_t v_tq`.
///
/// Products become narrow before they are multiplied again: `x_t·b_q` to ±128 and the sum over pairs to ±32,768 and again to ±128, by powers of two that
/// the largest magnitude decides, halves rounded up. The share `s_t = 16·mean|x|²/|x_t|²`, from 1 to 127, stands for the `1/|x_t|²` of a projection; it is 0 for a row of zeros.
/// A row that is looked up has only the row of its index.
///
/// All factors have at most eleven bits, and all sums of at most 1,024 terms are below 2²⁴: float32 holds them exactly in any order, with TF32 and fused
/// multiply-adds. So all devices give the same bits.
///
/// # Shapes
///
/// - noise: `[pairs, rank · (d_input + d_output)]`, as [`sum_votes`](super::sum_votes()) takes it
/// - votes: `[rows, pairs]`, row-major, from −7 to 7
/// - input: rows of int8 values in float32
/// - output: `shape`, of type I32
///
/// # Panics
///
/// Panics if shapes do not fit, with the shapes; if a vote is above 7 or below −7; and for an input without rows.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use eggroll_core::integer::Votes;
/// use eggroll_core::ops::{Input, integer::sum_part_votes};
///
/// let device = Device::flex();
/// let noise = Tensor::<2, Int>::from_ints([[1, 2, 10, 20, 30]], &device); // B of two rows, A of three
/// let x = Tensor::<2>::from_floats([[3.0, 4.0]], &device); // one part
/// let votes = sum_part_votes(noise, &[1], &Input::Rows(x), 1, Votes::Values, [2, 3]);
/// // x·b = 11; 11·a = 110, 220, 330; times the share 16, and narrowed by 64: 28, 55, 83
/// assert_eq!(votes.into_data().try_to_vec::<i32>().unwrap(), [84, 165, 249, 112, 220, 332]);
/// ```
#[track_caller]
pub fn sum_part_votes(
    noise: Tensor<2, Int>,
    votes: &[i8],
    input: &Input,
    rank: usize,
    kind: Votes,
    shape: [usize; 2],
) -> Tensor<2, Int> {
    let ([pairs, elements], rows, [d_input, d_output]) = (noise.dims(), input.rows(), shape);
    assert!(
        rank > 0 && pairs > 0 && elements == rank * (d_input + d_output),
        "votes by part: the noise {:?} is not that of a matrix {shape:?} of rank {rank}",
        noise.dims()
    );
    assert!(
        rows > 0 && votes.len() == rows * pairs,
        "votes by part: {} votes of {pairs} pairs do not fit {rows} rows",
        votes.len()
    );
    if let Some(vote) = votes.iter().find(|vote| vote.unsigned_abs() > MOST_PART_VOTE.unsigned_abs()) {
        panic!("votes by part: a vote of {vote} is not within ±{MOST_PART_VOTE}");
    }
    counters::add_launch();
    traced(Component::Optimizer, || {
        let device = noise.device();
        let noise = noise.float().cast(DType::F32);
        let noise = if kind == Votes::Signs { noise.sign() } else { noise };
        let b = noise.clone().slice_dim(1, 0..rank * d_input).reshape([pairs * rank, d_input]);
        let a = noise.slice_dim(1, rank * d_input..elements).reshape([pairs * rank, d_output]);
        let (seen, other) = match input {
            Input::Rows(x) => (product(x.clone(), b.transpose(), DEPTH), a),
            Input::Transposed(x) => (product(x.clone(), a.transpose(), DEPTH), b),
            Input::Indices(indices) => (b.select(1, indices.clone()).transpose(), a),
            Input::Other => panic!("votes by part: an input without rows"),
        };
        let votes = Tensor::<2>::from_data(TensorData::new(votes.to_vec(), [rows, pairs]).convert::<f32>(), &device);
        let votes = votes.unsqueeze_dim::<3>(2).expand([rows, pairs, rank]).reshape([rows, pairs * rank]);
        let sums = product(narrowed(seen, NARROW) * votes, other, PAIRS); // [rows, width]
        let of_rows = |x: &Tensor<2>| {
            let parts = narrowed(narrowed(sums.clone(), WIDE) * shares(x), NARROW);
            product(x.clone().transpose(), parts, DEPTH)
        };
        let all = match input {
            Input::Rows(x) => of_rows(x),
            Input::Transposed(x) => of_rows(x).transpose(),
            Input::Indices(indices) => Tensor::zeros(shape, &device).select_assign(
                0,
                indices.clone(),
                narrowed(sums.clone(), NARROW),
                IndexingUpdateOp::Add,
            ),
            Input::Other => unreachable!("refused above"),
        };
        all.int().cast(DType::I32)
    })
}

/// `a·b`, in runs of so many terms, each of which float32 holds exactly.
fn product(a: Tensor<2>, b: Tensor<2>, terms: usize) -> Tensor<2> {
    let [_, depth] = a.dims();
    if depth <= terms {
        return a.matmul(b);
    }
    let run = |first: usize| {
        let run = first..depth.min(first + terms);
        a.clone().slice_dim(1, run.clone()).matmul(b.clone().slice_dim(0, run))
    };
    (0..depth).step_by(terms).map(run).reduce(|sum, next| sum + next).expect("there are terms")
}

/// Divided by the least power of two that leaves nothing above `most`, halves rounded up.
fn narrowed(x: Tensor<2>, most: f32) -> Tensor<2> {
    counters::add_host_read();
    let largest: f32 = x.clone().abs().max().into_scalar();
    let mut scale = 1.0;
    while largest * scale > most {
        scale *= 0.5;
    }
    if scale == 1.0 { x } else { (x * scale + 0.5).floor() }
}

/// What every row counts: `[rows, 1]`.
fn shares(x: &Tensor<2>) -> Tensor<2> {
    let [rows, width] = x.dims();
    let square = |first: usize| x.clone().slice_dim(1, first..width.min(first + DEPTH)).square().sum_dim(1);
    let squares = (0..width).step_by(DEPTH).map(square).reduce(|sum, next| sum + next).expect("rows have values");
    counters::add_host_read();
    let squares: Vec<u64> = squares.into_data().iter::<f32>().map(|square| square as u64).collect();
    let lengths = squares.iter().filter(|square| **square > 0);
    let mean = lengths.clone().sum::<u64>() / lengths.count().max(1) as u64;
    let share = |square: &u64| match square {
        0 => 0.0,
        _ => ((SHARE * mean + square / 2) / square).clamp(1, MOST_SHARE) as f32,
    };
    Tensor::from_data(TensorData::new(squares.iter().map(share).collect(), [rows, 1]), (&x.device(), DType::F32))
}
