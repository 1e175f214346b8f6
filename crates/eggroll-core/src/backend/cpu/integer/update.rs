//! Votes, and the step that they may lead to: `Z = Σ_q f_q·B_q·A_qᵀ` as one product over all pairs.

use super::product::Packed;
use super::simd::{IntegerKernel, IntegerSimd, dispatch};
use super::tile::{COLUMNS, OFFSET, ROWS, Sums, Tile, load, store};
use crate::arithmetic::integer::{Votes, clip};
use crate::backend::cpu::scratch::reuse;
use rayon::prelude::*;
use std::borrow::Cow;
use std::cell::Cell;

/// The votes of all pairs.
#[derive(Clone, Copy)]
pub(crate) struct VoteSlices<'a> {
    /// `[pairs, elements]`
    pub(crate) noise: &'a [i8],
    /// `[pairs]`, small
    pub(crate) scores: &'a [i8],
    /// 0 for a vector.
    pub(crate) rank: usize,
    pub(crate) votes: Votes,
}

/// What sums of votes do to their elements of the output, at most a panel's columns.
trait VoteEffect: Copy + Sync {
    type Element: Send;

    fn apply(self, elements: &mut [Self::Element], votes: &Sums);
}

/// The sum itself.
#[derive(Clone, Copy)]
struct Sum;

impl VoteEffect for Sum {
    type Element = i32;

    #[inline(always)]
    fn apply(self, elements: &mut [i32], votes: &Sums) {
        elements.copy_from_slice(&votes[..elements.len()]);
    }
}

/// A step of the weight, if the vote is strong enough.
#[derive(Clone, Copy)]
struct VoteStep {
    limit: i32,
}

impl VoteEffect for VoteStep {
    type Element = i8;

    #[inline(always)]
    fn apply(self, weights: &mut [i8], votes: &Sums) {
        let mut row = load(weights);
        for c in 0..COLUMNS {
            let stays = votes[c].unsigned_abs() < self.limit as u32;
            let moved = clip(i32::from(row[c]) + if votes[c] > 0 { 1 } else { -1 });
            row[c] = if stays { row[c] } else { moved };
        }
        store(&row, weights);
    }
}

impl VoteSlices<'_> {
    fn value(&self, noise: i8) -> i8 {
        match self.votes {
            Votes::Values => noise,
            Votes::Signs => noise.signum(),
        }
    }
}

/// Moves `parameter : [d_input, d_output]`; a vector has one row.
pub(crate) fn update(op: &VoteSlices, limit: i32, shape: [usize; 2], parameter: &mut [i8]) {
    count(op, VoteStep { limit }, shape, parameter);
}

/// Writes `sums : [d_input, d_output]`; a vector has one row.
pub(crate) fn sum_votes(op: &VoteSlices, shape: [usize; 2], sums: &mut [i32]) {
    count(op, Sum, shape, sums);
}

fn count<O: VoteEffect>(op: &VoteSlices, outcome: O, shape: [usize; 2], output: &mut [O::Element]) {
    if output.is_empty() {
        return;
    }
    match op.rank {
        0 => vector(op, outcome, output),
        _ => matrix(op, outcome, shape, output),
    }
}

fn vector<O: VoteEffect>(op: &VoteSlices, outcome: O, output: &mut [O::Element]) {
    let n = output.len();
    let mut sums = vec![0i32; n];
    for (noise, score) in op.noise.chunks_exact(2 * n).zip(op.scores).filter(|(_, score)| **score != 0) {
        let (n0, n1) = noise.split_at(n);
        for ((sum, n0), n1) in sums.iter_mut().zip(n0).zip(n1) {
            let vote = i32::from(op.value(*n0)) * i32::from(op.value(*n1));
            *sum = sum.wrapping_add(i32::from(*score) * vote);
        }
    }
    for (elements, votes) in output.chunks_mut(COLUMNS).zip(sums.chunks(COLUMNS)) {
        let mut row = [0; COLUMNS];
        row[..votes.len()].copy_from_slice(votes);
        outcome.apply(elements, &row);
    }
}

fn matrix<O: VoteEffect>(op: &VoteSlices, outcome: O, [d_input, d_output]: [usize; 2], output: &mut [O::Element]) {
    let (rank, each) = (op.rank, op.rank * (d_input + d_output));
    let noise: Cow<[i8]> = match op.votes {
        Votes::Values => op.noise.into(),
        Votes::Signs => op.noise.iter().map(|value| value.signum()).collect(),
    };
    // Room for all at once: a population of any size takes as many allocations.
    let count: usize = op.scores.iter().map(|score| usize::from(score.unsigned_abs())).sum();
    let mut votes: Vec<(i8, &[i8], &[i8])> = Vec::with_capacity(rank * count);
    // Columns of the factors of every pair that votes: one of score 0 adds nothing.
    for (noise, score) in noise.chunks_exact(each).zip(op.scores).filter(|(_, score)| **score != 0) {
        let (b, a) = noise.split_at(rank * d_input);
        for (b, a) in b.chunks_exact(d_input).zip(a.chunks_exact(d_output)) {
            // A vote of two is two votes: its product with noise would not fit int8.
            for _ in 0..score.unsigned_abs() {
                votes.push((score.signum(), b, a));
            }
        }
    }
    let packed = Packed::new(votes.len(), d_output, |j| votes[j].2);
    output.par_chunks_mut(TASK_ROWS * d_output).enumerate().for_each(|(task, output)| {
        let first = task * TASK_ROWS;
        let (votes, packed) = (&votes, &packed);
        // The scratch outside: closures inside would not be compiled for the instruction set.
        reuse(&UNSIGNED, |unsigned| dispatch(VoteTask { votes, packed, first, outcome, unsigned, output }));
    });
}

/// Rows of a parameter that a task takes.
const TASK_ROWS: usize = 2 * ROWS;

struct VoteTask<'a, O: VoteEffect> {
    /// Sign and both columns.
    votes: &'a [(i8, &'a [i8], &'a [i8])],
    packed: &'a Packed,
    /// The task's first row.
    first: usize,
    outcome: O,
    /// `f·B` of the task's rows, unsigned: `[TASK_ROWS, row bytes]`.
    unsigned: &'a mut Vec<u8>,
    output: &'a mut [O::Element],
}

thread_local! {
    static UNSIGNED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl<O: VoteEffect> IntegerKernel for VoteTask<'_, O> {
    #[inline(always)]
    unsafe fn run<S: IntegerSimd>(self) {
        let (d_output, bytes) = (self.packed.columns, self.packed.row_bytes());
        let rows = self.output.len() / d_output;
        let unsigned = self.unsigned;
        unsigned.resize(TASK_ROWS * bytes, 0);
        for (j, (score, b, _)) in self.votes.iter().enumerate() {
            for (r, b) in b[self.first..self.first + rows].iter().enumerate() {
                unsigned[r * bytes + j] = (score * b) as u8 ^ OFFSET;
            }
        }
        let mut sums: Tile = [[0; COLUMNS]; ROWS];
        for panel in 0..self.packed.panels() {
            let (first, width) = (panel * COLUMNS, self.packed.width(panel));
            for tile in (0..rows).step_by(ROWS) {
                // SAFETY: the processor has the instruction set by this function's contract.
                unsafe { self.packed.tile::<S>(&unsigned[tile * bytes..], panel, &mut sums) };
                for (r, sums) in sums.iter().enumerate().take(rows - tile) {
                    self.outcome.apply(&mut self.output[(tile + r) * d_output + first..][..width], sums);
                }
            }
        }
    }
}
