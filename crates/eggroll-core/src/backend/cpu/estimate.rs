//! `Σ_q w_q·c·B_q·A_qᵀ` and `Σ_q w_q·σ·ε_q`, the noise drawn again in small batches of pairs.

use super::product::Product;
use super::scratch::with_scratch;
use super::source::SourceSlice;
use super::tile::{MAX_COLUMNS, Panels, Strided};
use crate::ops::{DenseNoise, LowRankNoise};
use crate::rng::fill_noise;
use crate::simd::dispatch;
use crate::work::profile::{self, Component};
use rayon::prelude::*;

/// Factor columns multiplied at a time; a constant, so that the order of summation is one.
const DEPTH: usize = 256;
/// Elements of factors drawn before they are multiplied. They are several times [`DEPTH`] columns of small matrices,
/// because every change between drawing and multiplying waits for all threads.
const ROUND_ELEMENTS: usize = 1 << 19;
/// Rows of the estimate that one task takes at most.
const TASK_ROWS: usize = 64;
/// Elements of a dense estimate that one task takes: a whole number of noise groups.
const TASK_ELEMENTS: usize = 4096;

/// Adds to `sum : [d_input, d_output]` the pairs from `first` on, weighted.
pub(crate) fn low_rank_estimate(
    weights: &[f32],
    noise: &LowRankNoise,
    source: SourceSlice,
    first: u32,
    [d_input, d_output]: [usize; 2],
    sum: &mut [f32],
) {
    if sum.is_empty() || weights.is_empty() {
        return;
    }
    let rank = noise.rank;
    let traced = profile::enabled();
    let batch = (DEPTH / rank).max(1).min(weights.len()); // pairs multiplied at a time
    let batches = ROUND_ELEMENTS / (batch * rank * (d_input + d_output));
    let round = batch * batches.clamp(1, weights.len().div_ceil(batch)); // pairs drawn at a time
    let padded = d_output.next_multiple_of(MAX_COLUMNS);
    let mut b = vec![0.0; round * rank * d_input]; // [round · rank, d_input]
    let mut a = vec![0.0; round * rank * d_output]; // [round · rank, d_output]
    let mut a_blocks = vec![0.0; round * rank * padded];
    let rows = task_rows(d_input);
    for (i, weights) in weights.chunks(round).enumerate() {
        let pairs = b.par_chunks_mut(rank * d_input).zip(a.par_chunks_mut(rank * d_output));
        let drawing = || Drawing::new(traced);
        pairs.zip(weights).enumerate().for_each_init(drawing, |drawing, (p, ((b, a), weight))| {
            let pair = first + (i * round + p) as u32;
            let mut take = |factors: &[f32]| {
                let (b_factor, a_factor) = factors.split_at(b.len());
                let scale = weight * noise.scale;
                if noise.signs {
                    b.iter_mut().zip(b_factor).for_each(|(b, factor)| *b = sign(*factor));
                    a.iter_mut().zip(a_factor).for_each(|(a, factor)| *a = scale * sign(*factor));
                } else {
                    b.copy_from_slice(b_factor);
                    a.iter_mut().zip(a_factor).for_each(|(a, factor)| *a = scale * factor);
                }
            };
            let elements = rank * (d_input + d_output);
            match source.held(noise.key, pair, elements) {
                Some(factors) => take(factors),
                None => with_scratch(elements, |factors| {
                    fill_noise(noise.key, pair, 0, factors);
                    drawing.bytes += 4 * elements;
                    take(factors);
                }),
            }
        });
        let columns = weights.len() * rank;
        let to = a_blocks.par_chunks_mut(batch * rank * padded);
        let from = a[..columns * d_output].par_chunks(batch * rank * d_output);
        from.zip(to).for_each(|(a, blocks)| pack_columns(a, d_output, blocks));
        let (a_blocks, b) = (&a_blocks, &b[..columns * d_input]);
        sum.par_chunks_mut(rows * d_output).enumerate().for_each(|(task, sum)| {
            let _span = profile::task(traced, Component::Estimate, 4 * sum.len());
            let batches = b.chunks(batch * rank * d_input).zip(a_blocks.chunks(batch * rank * padded));
            batches.for_each(|(b, a_blocks)| add_product(b, d_input, task * rows, a_blocks, d_output, sum));
        });
    }
}

/// −1, 0 or 1: `signum` knows no 0.
fn sign(value: f32) -> f32 {
    f32::from(i8::from(value > 0.0) - i8::from(value < 0.0))
}

/// Adds `B·Aᵀ` to some rows of the estimate, from `first` on; `b : [depth, d_input]`, the columns of `a` in blocks.
fn add_product(b: &[f32], d_input: usize, first: usize, a_blocks: &[f32], d_output: usize, sum: &mut [f32]) {
    let (depth, rows) = (b.len() / d_input, sum.len() / d_output);
    with_scratch(depth * rows, |b_block| {
        // The rows of one step next to each other: in `b` itself a row of the estimate's length is between them.
        for (b, to) in b.chunks_exact(d_input).zip(b_block.chunks_exact_mut(rows)) {
            to.copy_from_slice(&b[first..first + rows]);
        }
        dispatch(Product {
            rows,
            columns: d_output,
            depth,
            x: Strided { values: b_block, row: 1, depth: rows },
            panels: Panels::of_blocks(a_blocks, depth),
            target: sum,
            add: true,
        });
    });
}

/// Rows of the estimate that one task takes: as many tasks for every thread.
fn task_rows(d_input: usize) -> usize {
    let tasks = d_input.div_ceil(TASK_ROWS).next_multiple_of(rayon::current_num_threads());
    d_input.div_ceil(tasks)
}

/// The span of the pairs that a thread draws in a row: one for each pair would cost as much as drawing.
struct Drawing {
    span: profile::Span,
    bytes: usize,
}

impl Drawing {
    fn new(traced: bool) -> Self {
        Self { span: profile::task(traced, Component::Noise, 0), bytes: 0 }
    }
}

impl Drop for Drawing {
    fn drop(&mut self) {
        self.span.set_bytes(self.bytes);
    }
}

/// Rearranges `[depth, columns]` into blocks of [`MAX_COLUMNS`] columns, each `[depth, MAX_COLUMNS]`; what is behind the last
/// column stays as it was.
fn pack_columns(matrix: &[f32], columns: usize, blocks: &mut [f32]) {
    let depth = matrix.len() / columns;
    blocks.par_chunks_mut(depth * MAX_COLUMNS).enumerate().take(columns.div_ceil(MAX_COLUMNS)).for_each(
        |(i, block)| {
            let first = i * MAX_COLUMNS;
            let width = MAX_COLUMNS.min(columns - first);
            for (row, to) in matrix.chunks_exact(columns).zip(block.chunks_exact_mut(MAX_COLUMNS)) {
                to[..width].copy_from_slice(&row[first..first + width]);
            }
        },
    );
}

/// Adds to `sum` (any shape, flat) the pairs from `first` on, weighted.
pub(crate) fn dense_estimate(weights: &[f32], noise: &DenseNoise, source: SourceSlice, first: u32, sum: &mut [f32]) {
    let elements = sum.len();
    let traced = profile::enabled();
    sum.par_chunks_mut(TASK_ELEMENTS).enumerate().for_each(|(task, sum)| {
        let _span = profile::task(traced, Component::Estimate, 4 * sum.len());
        with_scratch(sum.len(), |drawn| {
            for (q, weight) in weights.iter().enumerate() {
                if *weight == 0.0 {
                    continue;
                }
                let span = profile::fine(traced, Component::Noise, 4 * drawn.len());
                source.fill(noise.key, first + q as u32, elements, task * TASK_ELEMENTS, drawn);
                drop(span);
                let scale = weight * noise.scale;
                for (sum, drawn) in sum.iter_mut().zip(drawn.iter()) {
                    *sum += scale * drawn;
                }
            }
        });
    });
}
