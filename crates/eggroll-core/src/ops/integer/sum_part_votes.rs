//! The votes of an integer parameter if every part of a score votes on its own row.

use super::traced;
use crate::arithmetic::integer::Votes;
use crate::ops::Input;
use crate::ops::part_estimate::factors;
use crate::work::counters;
use crate::work::profile::Component;
use burn::tensor::{DType, IndexingUpdateOp, Int, Tensor, TensorData};

/// The largest vote of a pair for a part.
pub const MOST_PART_VOTE: i8 = 7;

/// Bound of products of rows and noise after narrowing.
const NARROW: f32 = 128.0;
/// Bound of sums over pairs after narrowing, before parts are weighed.
const WIDE: f32 = 32_768.0;
/// Terms of a product of int8 values by narrow ones: 127 · 128 · 1,024 is below 2²⁴.
const DEPTH: usize = 1024;
/// Terms of a product of votes, narrow values and int8 values: 7 · 128 · 127 · 128 is below 2²⁴.
const PAIRS: usize = 128;
/// The weight of a part whose row has the mean length; at most [`MOST_SHARE`].
const SHARE: u64 = 16;
const MOST_SHARE: u64 = 127;

/// `Σ_t x_tᵀ/|x_t|²·Σ_q v_tq·(x_t·b_q)·a_q`: the votes `v_tq` of pairs for part `t`, as an estimate projected onto the row `x_t` that the part gave the
/// weight. For a higher rank it is summed over columns, and for a weight with several uses over the uses. It replaces [`sum_votes`](super::sum_votes()),
/// in which every part has the votes `Σ_t v_tq`. A lookup votes only on the row of its index.
///
/// Products are narrowed before they are multiplied again: `x_t·b_q` to ±128, the sum over pairs to ±32,768 and again to ±128. The largest magnitude
/// decides the power of two of each division; halves are rounded up. The share `16·mean|x|²/|x_t|²`, from 1 to 127, replaces `1/|x_t|²`; it is 0 for a row
/// of zeros. The sum of a use is multiplied by its powers of two again, and divided by the power of two below `16·mean|x|²`.
///
/// All factors have at most eleven bits, and all sums of at most 1,024 terms are below 2²⁴. So float32 holds them exactly in any order, with TF32 and
/// fused multiply-adds. Longer sums add up runs of 1,024 terms in order. So all devices give the same bits.
///
/// # Shapes
///
/// - noise: `[pairs, rank · (d_input + d_output)]`, as in [`sum_votes`](super::sum_votes())
/// - votes: `[rows, pairs]`, row-major, from −7 to 7
/// - uses: rows of int8 values in float32
/// - output: `shape`, in float32
///
/// # Panics
///
/// Panics, with the shapes, if they do not fit. Also if a vote is above 7 or below −7, without uses, and for a use without
/// rows.
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
/// let votes = sum_part_votes(noise, &[1], &[Input::Rows(x)], 1, Votes::Values, [2, 3]);
/// // x·b = 11; 11·a = 110, 220, 330; times the share 16 and narrowed by 64: 28, 55, 83; times x, 64, and 1/256, the power of two below 16·25
/// assert_eq!(votes.into_data().try_to_vec::<f32>().unwrap(), [21.0, 41.25, 62.25, 28.0, 55.0, 83.0]);
/// ```
#[track_caller]
pub fn sum_part_votes(
    noise: Tensor<2, Int>,
    votes: &[i8],
    uses: &[Input],
    rank: usize,
    kind: Votes,
    shape: [usize; 2],
) -> Tensor<2> {
    let ([pairs, elements], [d_input, d_output]) = (noise.dims(), shape);
    assert!(
        rank > 0 && pairs > 0 && elements == rank * (d_input + d_output),
        "votes by part: the noise {:?} is not that of a matrix {shape:?} of rank {rank}",
        noise.dims()
    );
    for rows in uses.iter().map(Input::rows) {
        assert!(
            rows > 0 && votes.len() == rows * pairs,
            "votes by part: {} votes of {pairs} pairs do not fit {rows} rows",
            votes.len()
        );
    }
    if let Some(vote) = votes.iter().find(|vote| vote.unsigned_abs() > MOST_PART_VOTE.unsigned_abs()) {
        panic!("votes by part: a vote of {vote} is not within ±{MOST_PART_VOTE}");
    }
    counters::add_launch();
    traced(Component::Optimizer, || {
        let device = noise.device();
        let noise = noise.float().cast(DType::F32);
        let noise = if kind == Votes::Signs { noise.sign() } else { noise };
        let [b, a] = factors(noise, rank, shape);
        let rows = votes.len() / pairs;
        let votes = Tensor::<2>::from_data(TensorData::new(votes.to_vec(), [rows, pairs]).convert::<f32>(), &device);
        let votes = votes.unsqueeze_dim::<3>(2).expand([rows, pairs, rank]).reshape([rows, pairs * rank]);
        let of_use = |used: &Input| match used {
            Input::Rows(x) => of_rows(x, &votes, b.clone(), a.clone()),
            Input::Transposed(x) => of_rows(x, &votes, a.clone(), b.clone()).transpose(),
            Input::Indices(indices) => {
                let (seen, unit) = narrowed(b.clone().select(1, indices.clone()).transpose(), NARROW);
                let (sums, more) = narrowed(product(seen * votes.clone(), a.clone(), PAIRS), NARROW);
                let zeros = Tensor::zeros(shape, &device);
                zeros.select_assign(0, indices.clone(), sums, IndexingUpdateOp::Add) * (unit * more)
            }
            Input::Other => panic!("votes by part: an input without rows"),
        };
        uses.iter().map(of_use).reduce(|sum, next| sum + next).expect("votes by part: no use")
    })
}

/// `a·b`, in runs of `terms` terms, each of which float32 holds exactly.
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

/// `Σ_t x_tᵀ/|x_t|²·Σ_k v_tk·(x_t·from_k)·to_k` of the rows `x` `[rows, from]` and columns `k` of the noise: `[from, to]`.
fn of_rows(x: &Tensor<2>, votes: &Tensor<2>, from: Tensor<2>, to: Tensor<2>) -> Tensor<2> {
    let (seen, unit) = narrowed(product(x.clone(), from.transpose(), DEPTH), NARROW);
    let (sums, wide) = narrowed(product(seen * votes.clone(), to, PAIRS), WIDE); // [rows, to]
    let (shares, mean) = shares(x);
    let (parts, narrow) = narrowed(sums * shares, NARROW);
    product(x.clone().transpose(), parts, DEPTH) * (unit * wide * narrow / mean)
}

/// The values divided by the least power of two that leaves none above `most`, halves rounded up; and that power.
fn narrowed(x: Tensor<2>, most: f32) -> (Tensor<2>, f32) {
    counters::add_host_read();
    let largest: f32 = x.clone().abs().max().into_scalar();
    let mut power = 1.0;
    while largest > most * power {
        power *= 2.0;
    }
    (if power == 1.0 { x } else { (x / power + 0.5).floor() }, power)
}

/// The share of every row, `[rows, 1]`, and the greatest power of two that is not above `16·mean|x|²`.
fn shares(x: &Tensor<2>) -> (Tensor<2>, f32) {
    let [rows, width] = x.dims();
    let square = |first: usize| x.clone().slice_dim(1, first..width.min(first + DEPTH)).square().sum_dim(1);
    let squares = (0..width).step_by(DEPTH).map(square).reduce(|sum, next| sum + next).expect("rows have values");
    counters::add_host_read();
    let squares: Vec<u64> = squares.into_data().iter::<f32>().map(|square| square as u64).collect();
    let lengths = squares.iter().filter(|square| **square > 0);
    let mean = SHARE * (lengths.clone().sum::<u64>() / lengths.count().max(1) as u64);
    let share = |square: &u64| match square {
        0 => 0.0,
        _ => ((mean + square / 2) / square).clamp(1, MOST_SHARE) as f32,
    };
    let data = TensorData::new(squares.iter().map(share).collect(), [rows, 1]);
    (Tensor::from_data(data, (&x.device(), DType::F32)), (1_u64 << mean.max(1).ilog2()) as f32)
}
