//! Products: `clip(⌊(x·W + P) / divisor⌋)`, `clip(round((x·W + P) / 2^shift) + b)`, and the head's `x·Eᵀ`.

use super::noise::{NoiseSlice, VectorSlices, rows_of_member};
use super::product::{LowRank, Packed, offset};
use super::simd::{IntegerKernel, IntegerSimd, dispatch};
use super::tile::{COLUMNS, ROWS, Scale, Sums, Terms, Tile, load, write};
use crate::arithmetic::integer::Rounding;
use crate::arithmetic::integer::transformer::{LARGEST_LOGIT, head_shift, product_shift};
use crate::backend::cpu::scratch::reuse;
use rayon::prelude::*;
use std::cell::Cell;
use std::mem::MaybeUninit;

/// Rows of a task: as many as stay in a first-level cache.
const TASK_ROWS: usize = 16 * ROWS;

/// Operands of [`linear`].
pub(crate) struct LinearSlices<'a> {
    /// `[rows, d_input]`
    pub(crate) x: &'a [i8],
    /// `[d_input, d_output]`
    pub(crate) weight: &'a [i8],
    pub(crate) shape: [usize; 2],
    pub(crate) noise: Option<NoiseSlice<'a>>,
    /// `[d_output]`, with [`Rounding::Nearest`] alone.
    pub(crate) bias: Option<VectorSlices<'a>>,
    /// GELU at the end, with [`Rounding::Nearest`] alone.
    pub(crate) activate: bool,
    pub(crate) rounding: Rounding,
}

/// Writes every element of `y : [rows, d_output]`.
pub(crate) fn linear(op: &LinearSlices, y: &mut [MaybeUninit<i8>]) {
    let [d_input, d_output] = op.shape;
    assert!(d_input > 0 && op.x.len() / d_input * d_output == y.len(), "rows of {d_output} for all of {d_input}");
    if y.is_empty() {
        return;
    }
    let packed = Packed::new(d_input, d_output, |k| &op.weight[k * d_output..(k + 1) * d_output]);
    let product = IntegerProduct {
        x: op.x,
        depth: d_input,
        each: rows_of_member([op.noise, op.bias.and_then(|bias| bias.noise)], op.x.len() / d_input),
        packed,
        low_rank: op.noise.map(|noise| LowRank::new(noise, op.shape, op.rounding)),
        bias: op.bias,
    };
    let tasks = y.par_chunks_mut(TASK_ROWS * d_output).enumerate();
    match op.rounding {
        Rounding::Floor => {
            let scale = Scale::new(d_input);
            tasks.for_each(|(task, y)| product.run(task * TASK_ROWS, Floors { y, scale }));
        }
        Rounding::Nearest => {
            let (shift, activate) = (product_shift(d_input), op.activate);
            tasks.for_each(|(task, y)| product.run(task * TASK_ROWS, Activations { y, shift, activate }));
        }
    }
}

/// Writes every element of `y : [rows, vocab]`, for `embedding : [vocab, width]`.
pub(crate) fn head(
    x: &[i8],
    embedding: &[i8],
    shape @ [vocab, width]: [usize; 2],
    noise: Option<NoiseSlice>,
    y: &mut [MaybeUninit<i32>],
) {
    assert!(width > 0 && x.len() / width * vocab == y.len(), "rows of {vocab} for all of {width}");
    if y.is_empty() {
        return;
    }
    let transposed: Vec<i8> = (0..width).flat_map(|k| embedding.iter().skip(k).step_by(width).copied()).collect();
    let product = IntegerProduct {
        x,
        depth: width,
        each: rows_of_member([noise, None], x.len() / width),
        packed: Packed::new(width, vocab, |k| &transposed[k * vocab..(k + 1) * vocab]),
        low_rank: noise.map(|noise| LowRank::of_transpose(noise, shape, Rounding::Nearest)),
        bias: None,
    };
    y.par_chunks_mut(TASK_ROWS * vocab).enumerate().for_each(|(task, y)| {
        product.run(task * TASK_ROWS, Logits { y, shift: head_shift(width) });
    });
}

struct IntegerProduct<'a> {
    /// All rows of the call.
    x: &'a [i8],
    depth: usize,
    /// Rows of a member.
    each: usize,
    packed: Packed,
    low_rank: Option<LowRank<'a>>,
    bias: Option<VectorSlices<'a>>,
}

/// Columns of rows of an output.
#[derive(Clone, Copy)]
struct OutputBlock {
    /// The first of the rows.
    row: usize,
    columns: usize,
    /// From this column on, as many as there are.
    first: usize,
    width: usize,
}

impl OutputBlock {
    /// The place of a row of the block.
    #[inline(always)]
    fn of<'y, T>(&self, y: &'y mut [MaybeUninit<T>], r: usize) -> &'y mut [MaybeUninit<T>] {
        &mut y[(self.row + r) * self.columns + self.first..][..self.width]
    }
}

/// Where a product's rows go.
trait Output {
    /// Rows that are there.
    fn rows(&self, columns: usize) -> usize;

    /// Takes the products of a member's rows at a place, and the bias of the columns.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set.
    unsafe fn take<S: IntegerSimd>(
        &mut self,
        at: OutputBlock,
        sums: &mut [Sums],
        terms: Option<Terms>,
        bias: Option<&[i8]>,
    );
}

/// Activations that are rounded down.
struct Floors<'a> {
    y: &'a mut [MaybeUninit<i8>],
    scale: Scale,
}

impl Output for Floors<'_> {
    fn rows(&self, columns: usize) -> usize {
        self.y.len() / columns
    }

    #[inline(always)]
    unsafe fn take<S: IntegerSimd>(
        &mut self,
        at: OutputBlock,
        sums: &mut [Sums],
        terms: Option<Terms>,
        _bias: Option<&[i8]>,
    ) {
        for (r, sums) in sums.iter().enumerate() {
            let term = terms.as_ref().map(|terms| terms.row(r).0);
            // SAFETY: by this function's contract.
            let finished = unsafe { S::finish(sums, term, &self.scale) };
            write(&finished, at.of(self.y, r));
        }
    }
}

/// Activations that are rounded to nearest.
struct Activations<'a> {
    y: &'a mut [MaybeUninit<i8>],
    shift: u32,
    activate: bool,
}

impl Output for Activations<'_> {
    fn rows(&self, columns: usize) -> usize {
        self.y.len() / columns
    }

    #[inline(always)]
    unsafe fn take<S: IntegerSimd>(
        &mut self,
        at: OutputBlock,
        sums: &mut [Sums],
        terms: Option<Terms>,
        bias: Option<&[i8]>,
    ) {
        let bias = bias.map(load);
        let mut rows = [[0; COLUMNS]; ROWS];
        // SAFETY: by this function's contract.
        unsafe {
            S::round(sums, terms, self.shift);
            S::activations(sums, bias.as_ref(), self.activate, &mut rows);
        }
        for (r, row) in rows.iter().enumerate().take(sums.len()) {
            write(row, at.of(self.y, r));
        }
    }
}

struct Logits<'a> {
    y: &'a mut [MaybeUninit<i32>],
    shift: u32,
}

impl Output for Logits<'_> {
    fn rows(&self, columns: usize) -> usize {
        self.y.len() / columns
    }

    #[inline(always)]
    unsafe fn take<S: IntegerSimd>(
        &mut self,
        at: OutputBlock,
        sums: &mut [Sums],
        terms: Option<Terms>,
        _bias: Option<&[i8]>,
    ) {
        // SAFETY: by this function's contract.
        unsafe { S::round(sums, terms, self.shift) };
        for (r, logits) in sums.iter_mut().enumerate() {
            for logit in &mut *logits {
                *logit = (*logit).clamp(-LARGEST_LOGIT, LARGEST_LOGIT);
            }
            write(logits, at.of(self.y, r));
        }
    }
}

/// What a task works on.
#[derive(Default)]
struct LinearScratch {
    /// Rows, unsigned, padded to whole tiles.
    unsigned: Vec<u8>,
    /// Offsets of one member's projections: `[rank]`.
    offsets: Vec<i32>,
    /// Rows projected: `[rows, rank]`.
    t: Vec<i32>,
    /// The bias as the members of the rows see it: `[members of the task, columns]`.
    biases: Vec<i8>,
}

thread_local! {
    static SCRATCH: Cell<LinearScratch> = Cell::default();
}

struct Multiply<'a, O> {
    product: &'a IntegerProduct<'a>,
    first: usize,
    output: O,
    scratch: &'a mut LinearScratch,
}

impl<O: Output> IntegerKernel for Multiply<'_, O> {
    #[inline(always)]
    unsafe fn run<S: IntegerSimd>(self) {
        let Self { product, first, output, scratch } = self;
        // SAFETY: the processor has the instruction set by this function's contract.
        unsafe { product.multiply::<S, O>(first, output, scratch) };
    }
}

impl IntegerProduct<'_> {
    /// Computes an output's rows, of which the first is row `first` of the call.
    fn run<O: Output>(&self, first: usize, output: O) {
        // The scratch outside: closures inside would not be compiled for the instruction set.
        reuse(&SCRATCH, |scratch| dispatch(Multiply { product: self, first, output, scratch }));
    }

    /// # Safety
    ///
    /// The processor must have the instruction set.
    #[inline(always)]
    unsafe fn multiply<S: IntegerSimd, O: Output>(&self, begin: usize, mut output: O, scratch: &mut LinearScratch) {
        let LinearScratch { unsigned, offsets, t, biases } = scratch;
        let (columns, bytes, depth, each) = (self.packed.columns, self.packed.row_bytes(), self.depth, self.each);
        let rows = output.rows(columns);
        unsigned.resize(TASK_ROWS * bytes, 0);
        for (x, unsigned) in
            self.x[begin * depth..(begin + rows) * depth].chunks_exact(depth).zip(unsigned.chunks_exact_mut(bytes))
        {
            offset(x, unsigned);
        }
        // Of all rows' members, one after the other: panels go through all rows.
        let first_member = begin / each;
        if let Some(bias) = &self.bias {
            biases.resize(((begin + rows - 1) / each + 1 - first_member) * columns, 0);
            for (m, member) in biases.chunks_exact_mut(columns).enumerate() {
                bias.of(first_member + m, Rounding::Nearest, member);
            }
        }
        let rank = self.low_rank.map_or(0, |low_rank| low_rank.rank());
        if let Some(low_rank) = &self.low_rank {
            offsets.resize(rank, 0);
            t.resize(rows * rank, 0);
            // SAFETY: by this function's contract.
            unsafe { self.project::<S>(low_rank, begin, unsigned, offsets, t) };
        }
        let mut sums: Tile = [[0; COLUMNS]; ROWS];
        for panel in 0..self.packed.panels() {
            let (first, width) = (panel * COLUMNS, self.packed.width(panel));
            // The member of the row, and where its rows end: without a division for every row.
            let (mut member, mut end) = (first_member, (first_member + 1) * each - begin);
            for tile in (0..rows).step_by(ROWS) {
                // SAFETY: by this function's contract.
                unsafe { self.packed.tile::<S>(&unsigned[tile * bytes..], panel, &mut sums) };
                let (mut row, tile_end) = (tile, rows.min(tile + ROWS));
                while row < tile_end {
                    if row == end {
                        (member, end) = (member + 1, end + each);
                    }
                    let stop = tile_end.min(end);
                    let t = &t[row * rank..stop * rank];
                    let terms = self.low_rank.as_ref().map(|low_rank| low_rank.terms(member, t, first, width));
                    let bias = self.bias.map(|_| &biases[(member - first_member) * columns + first..][..width]);
                    let at = OutputBlock { row, columns, first, width };
                    // SAFETY: by this function's contract.
                    unsafe { output.take::<S>(at, &mut sums[row - tile..stop - tile], terms, bias) };
                    row = stop;
                }
            }
        }
    }

    /// Writes `t : [rows, rank]` for rows from `begin` of the call on.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set.
    #[inline(always)]
    unsafe fn project<S: IntegerSimd>(
        &self,
        low_rank: &LowRank,
        begin: usize,
        unsigned: &[u8],
        offsets: &mut [i32],
        t: &mut [i32],
    ) {
        let mut member = usize::MAX;
        let rows = unsigned.chunks_exact(self.packed.row_bytes());
        for (row, (t, x)) in t.chunks_exact_mut(low_rank.rank()).zip(rows).enumerate() {
            let of = (begin + row) / self.each;
            if of != member {
                low_rank.projection_offsets(of, offsets);
                member = of;
            }
            // SAFETY: the processor has the instruction set by this function's contract.
            unsafe { low_rank.project::<S>(of, x, offsets, t) };
        }
    }
}
