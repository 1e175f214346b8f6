//! `y = clip(⌊(x·W + ⌊s·(x·B)·Aᵀ / 2^shift⌋) / divisor⌋)`

use super::noise::NoiseSlice;
use super::product::{LowRank, Packed, offset};
use super::simd::{IntegerKernel, IntegerSimd, dispatch};
use super::tile::{COLUMNS, ROWS, Scale, Tile, write};
use crate::backend::cpu::scratch::reuse;
use rayon::prelude::*;
use std::cell::Cell;
use std::mem::MaybeUninit;

/// Rows of a task: as many as stay in a first-level cache.
const TASK_ROWS: usize = 16 * ROWS;

/// Writes every element of `y : [rows, d_output]`.
pub(crate) fn linear(
    x: &[i8],
    weight: &[i8],
    [d_input, d_output]: [usize; 2],
    noise: Option<NoiseSlice>,
    y: &mut [MaybeUninit<i8>],
) {
    assert!(d_input > 0 && x.len() / d_input * d_output == y.len(), "rows of {d_output} for all of {d_input}");
    if y.is_empty() {
        return;
    }
    let packed = Packed::new(d_input, d_output, |k| &weight[k * d_output..(k + 1) * d_output]);
    let rows = x.len() / d_input;
    let low_rank = noise.map(|noise| LowRank::new(noise, d_input, d_output));
    let each = noise.map_or(rows, |noise| rows / noise.members.pairs.members());
    let scale = Scale::new(d_input);
    y.par_chunks_mut(TASK_ROWS * d_output).enumerate().for_each(|(task, y)| {
        let x = &x[task * TASK_ROWS * d_input..];
        let x = &x[..(y.len() / d_output) * d_input];
        let task = LinearTask { x, first: task * TASK_ROWS, each, d_input, packed: &packed, low_rank, scale, y };
        // The scratch outside: closures inside would not be compiled for the instruction set.
        reuse(&SCRATCH, |scratch| dispatch(Multiply { task, scratch }));
    });
}

struct LinearTask<'a> {
    x: &'a [i8],
    /// Index of the first row in the call.
    first: usize,
    /// Rows of a member.
    each: usize,
    d_input: usize,
    packed: &'a Packed,
    low_rank: Option<LowRank<'a>>,
    scale: Scale,
    y: &'a mut [MaybeUninit<i8>],
}

/// What a task works on.
#[derive(Default)]
struct Scratch {
    /// Rows, unsigned, padded to whole tiles.
    unsigned: Vec<u8>,
    /// Offsets of one member's projections: `[rank]`.
    offsets: Vec<i32>,
    /// `s·x·B`: `[rows, rank]`
    t: Vec<i32>,
}

thread_local! {
    static SCRATCH: Cell<Scratch> = Cell::default();
}

struct Multiply<'a> {
    task: LinearTask<'a>,
    scratch: &'a mut Scratch,
}

impl IntegerKernel for Multiply<'_> {
    #[inline(always)]
    unsafe fn run<S: IntegerSimd>(self) {
        let Self { task, scratch: Scratch { unsigned, offsets, t } } = self;
        let (rows, bytes) = (task.x.len() / task.d_input, task.packed.row_bytes());
        unsigned.resize(TASK_ROWS * bytes, 0);
        for (x, unsigned) in task.x.chunks_exact(task.d_input).zip(unsigned.chunks_exact_mut(bytes)) {
            offset(x, unsigned);
        }
        if let Some(low_rank) = task.low_rank {
            offsets.resize(low_rank.rank(), 0);
            t.resize(rows * low_rank.rank(), 0);
            // SAFETY: the processor has the instruction set by this function's contract.
            unsafe { task.project::<S>(low_rank, unsigned, offsets, t) };
        }
        // SAFETY: the same.
        unsafe { task.multiply::<S>(unsigned, t) };
    }
}

impl LinearTask<'_> {
    /// Writes `t : [rows, rank]`.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set.
    #[inline(always)]
    unsafe fn project<S: IntegerSimd>(&self, low_rank: LowRank, unsigned: &[u8], offsets: &mut [i32], t: &mut [i32]) {
        let mut member = usize::MAX;
        let rows = unsigned.chunks_exact(self.packed.row_bytes());
        for (row, (t, x)) in t.chunks_exact_mut(low_rank.rank()).zip(rows).enumerate() {
            let of = (self.first + row) / self.each;
            if of != member {
                low_rank.projection_offsets(of, offsets);
                member = of;
            }
            // SAFETY: the processor has the instruction set by this function's contract.
            unsafe { low_rank.project::<S>(of, x, offsets, t) };
        }
    }

    /// Writes `y`.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set.
    #[inline(always)]
    unsafe fn multiply<S: IntegerSimd>(self, unsigned: &[u8], t: &[i32]) {
        let (d_output, bytes) = (self.packed.columns, self.packed.row_bytes());
        let rows = self.x.len() / self.d_input;
        let mut sums: Tile = [[0; COLUMNS]; ROWS];
        for panel in 0..self.packed.panels() {
            let (first, width) = (panel * COLUMNS, self.packed.width(panel));
            // The member of the row, and where its rows end: without a division for every row.
            let mut member = self.first / self.each;
            let mut end = (member + 1) * self.each - self.first;
            for tile in (0..rows).step_by(ROWS) {
                // SAFETY: the processor has the instruction set by this function's contract.
                unsafe { self.packed.tile::<S>(&unsigned[tile * bytes..], panel, &mut sums) };
                for (r, sums) in sums.iter().enumerate().take(rows - tile) {
                    let row = tile + r;
                    if row == end {
                        (member, end) = (member + 1, end + self.each);
                    }
                    let term = self.low_rank.as_ref().map(|low_rank| {
                        let rank = low_rank.rank();
                        let t = &t[row * rank..(row + 1) * rank];
                        low_rank.term(member, t, first, width)
                    });
                    // SAFETY: the processor has the instruction set by this function's contract.
                    let finished = unsafe { S::finish(sums, term, &self.scale) };
                    write(&finished, &mut self.y[row * d_output + first..][..width]);
                }
            }
        }
    }
}
