//! Products rounded to nearest: `clip(round((x·W + P) / 2^shift) + b)`, and the head's `x·Eᵀ`.

use super::rows::VectorSlices;
use crate::arithmetic::integer::transformer::{LARGEST_LOGIT, head_shift, product_shift};
use crate::arithmetic::integer::{FIXED_POINT, shift_rounded};
use crate::backend::cpu::integer::noise::{NoiseSlice, sign};
use crate::backend::cpu::integer::product::{Packed, correction, offset};
use crate::backend::cpu::integer::simd::{IntegerKernel, IntegerSimd, dispatch};
use crate::backend::cpu::integer::tile::{COLUMNS, ROWS, RoundedTerms, Sums, Term, Tile, load, write};
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
    /// `[d_output]`
    pub(crate) bias: Option<VectorSlices<'a>>,
    /// GELU at the end.
    pub(crate) activate: bool,
}

/// Writes every element of `y : [rows, d_output]`.
pub(crate) fn linear(op: &LinearSlices, y: &mut [MaybeUninit<i8>]) {
    if y.is_empty() {
        return;
    }
    let [d_input, d_output] = op.shape;
    let packed = Packed::new(d_input, d_output, |k| &op.weight[k * d_output..(k + 1) * d_output]);
    let factors = op.noise.map(|noise| {
        let a = noise.members.rank * d_input;
        ProductFactors { noise, from: 0, to: a, depth: d_input, columns: d_output }
    });
    let noise = op.noise.or(op.bias.and_then(|bias| bias.noise));
    let each = rows_of_member(noise, op.x.len() / d_input);
    let product = Product { x: op.x, depth: d_input, each, packed, factors, shift: product_shift(d_input) };
    y.par_chunks_mut(TASK_ROWS * d_output).enumerate().for_each(|(task, y)| {
        product.run(task * TASK_ROWS, Activations { y, bias: op.bias, activate: op.activate });
    });
}

/// Writes every element of `y : [rows, vocab]`, for `embedding : [vocab, width]`.
pub(crate) fn head(
    x: &[i8],
    embedding: &[i8],
    [vocab, width]: [usize; 2],
    noise: Option<NoiseSlice>,
    y: &mut [MaybeUninit<i32>],
) {
    if y.is_empty() {
        return;
    }
    let transposed: Vec<i8> = (0..width).flat_map(|k| embedding.iter().skip(k).step_by(width).copied()).collect();
    let packed = Packed::new(width, vocab, |k| &transposed[k * vocab..(k + 1) * vocab]);
    let factors = noise.map(|noise| {
        let a = noise.members.rank * vocab;
        ProductFactors { noise, from: a, to: 0, depth: width, columns: vocab }
    });
    let each = rows_of_member(noise, x.len() / width);
    let product = Product { x, depth: width, each, packed, factors, shift: head_shift(width) };
    y.par_chunks_mut(TASK_ROWS * vocab).enumerate().for_each(|(task, y)| {
        product.run(task * TASK_ROWS, Logits { y });
    });
}

fn rows_of_member(noise: Option<NoiseSlice>, rows: usize) -> usize {
    noise.map_or(rows, |noise| rows / noise.members.pairs.members())
}

/// The factors of a product's noise: a row goes through `from`, and by `to` to the columns.
#[derive(Clone, Copy)]
struct ProductFactors<'a> {
    noise: NoiseSlice<'a>,
    /// Where the factors begin in a pair's noise.
    from: usize,
    to: usize,
    depth: usize,
    columns: usize,
}

struct Product<'a> {
    /// All rows of the call.
    x: &'a [i8],
    depth: usize,
    /// Rows of a member.
    each: usize,
    packed: Packed,
    factors: Option<ProductFactors<'a>>,
    shift: u32,
}

/// Columns of rows of an output, and the shift of their sums.
#[derive(Clone, Copy)]
struct OutputBlock {
    /// The first of them.
    row: usize,
    columns: usize,
    /// From this column on, as many as there are.
    first: usize,
    width: usize,
    shift: u32,
}

/// Where a product's rows go.
trait Output {
    /// Rows that are there.
    fn rows(&self, columns: usize) -> usize;

    /// The bias of a member.
    fn vector(&self, member: usize, vector: &mut Vec<i8>);

    /// Takes the products of a member's rows at a place.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set.
    unsafe fn take<S: IntegerSimd>(
        &mut self,
        at: OutputBlock,
        sums: &mut [Sums],
        terms: Option<RoundedTerms>,
        vector: &[i8],
    );
}

struct Activations<'a> {
    y: &'a mut [MaybeUninit<i8>],
    bias: Option<VectorSlices<'a>>,
    activate: bool,
}

impl Output for Activations<'_> {
    fn rows(&self, columns: usize) -> usize {
        self.y.len() / columns
    }

    #[inline(always)]
    fn vector(&self, member: usize, vector: &mut Vec<i8>) {
        if let Some(bias) = self.bias {
            bias.of(member, vector);
        }
    }

    #[inline(always)]
    unsafe fn take<S: IntegerSimd>(
        &mut self,
        at: OutputBlock,
        sums: &mut [Sums],
        terms: Option<RoundedTerms>,
        vector: &[i8],
    ) {
        let bias = self.bias.is_some().then(|| load(&vector[at.first..at.first + at.width]));
        let mut rows = [[0; COLUMNS]; ROWS];
        // SAFETY: by this function's contract.
        unsafe {
            S::round(sums, terms, at.shift);
            S::activations(sums, bias.as_ref(), self.activate, &mut rows);
        }
        for (r, row) in rows.iter().enumerate().take(sums.len()) {
            write(row, &mut self.y[(at.row + r) * at.columns + at.first..][..at.width]);
        }
    }
}

struct Logits<'a> {
    y: &'a mut [MaybeUninit<i32>],
}

impl Output for Logits<'_> {
    fn rows(&self, columns: usize) -> usize {
        self.y.len() / columns
    }

    fn vector(&self, _member: usize, _vector: &mut Vec<i8>) {}

    #[inline(always)]
    unsafe fn take<S: IntegerSimd>(
        &mut self,
        at: OutputBlock,
        sums: &mut [Sums],
        terms: Option<RoundedTerms>,
        _vector: &[i8],
    ) {
        // SAFETY: by this function's contract.
        unsafe { S::round(sums, terms, at.shift) };
        for (r, logits) in sums.iter_mut().enumerate() {
            for logit in &mut *logits {
                *logit = (*logit).clamp(-LARGEST_LOGIT, LARGEST_LOGIT);
            }
            write(logits, &mut self.y[(at.row + r) * at.columns + at.first..][..at.width]);
        }
    }
}

/// What a task works on.
#[derive(Default)]
struct Scratch {
    /// Rows, unsigned, padded to whole tiles.
    unsigned: Vec<u8>,
    /// `128·Σ F_k` of one member: what the offset of the rows adds to its projections.
    offsets: Vec<i32>,
    /// `round(x·F / 16)`: `[rows, rank]`
    t: Vec<i32>,
    /// Vectors as the members of the rows see them: `[members of the task, columns]`.
    vectors: Vec<i8>,
    /// One of them.
    vector: Vec<i8>,
}

thread_local! {
    static SCRATCH: Cell<Scratch> = Cell::default();
}

struct Multiply<'a, O> {
    product: &'a Product<'a>,
    first: usize,
    output: O,
    scratch: &'a mut Scratch,
}

impl<O: Output> IntegerKernel for Multiply<'_, O> {
    #[inline(always)]
    unsafe fn run<S: IntegerSimd>(self) {
        let Self { product, first, output, scratch } = self;
        // SAFETY: the processor has the instruction set by this function's contract.
        unsafe { product.multiply::<S, O>(first, output, scratch) };
    }
}

impl Product<'_> {
    /// Computes an output's rows, of which the first is row `first` of the call.
    fn run<O: Output>(&self, first: usize, output: O) {
        // The scratch outside: closures inside would not be compiled for the instruction set.
        reuse(&SCRATCH, |scratch| dispatch(Multiply { product: self, first, output, scratch }));
    }

    /// # Safety
    ///
    /// The processor must have the instruction set.
    #[inline(always)]
    unsafe fn multiply<S: IntegerSimd, O: Output>(&self, begin: usize, mut output: O, scratch: &mut Scratch) {
        let Scratch { unsigned, offsets, t, vectors, vector } = scratch;
        let (columns, bytes, depth) = (self.packed.columns, self.packed.row_bytes(), self.depth);
        let rows = output.rows(columns);
        unsigned.resize(TASK_ROWS * bytes, 0);
        for (x, unsigned) in
            self.x[begin * depth..(begin + rows) * depth].chunks_exact(depth).zip(unsigned.chunks_exact_mut(bytes))
        {
            offset(x, unsigned);
        }
        // Vectors of all rows' members, one after the other: panels go through all rows.
        vectors.clear();
        vector.clear();
        vector.resize(columns, 0);
        let (rank, each) = (self.factors.map_or(0, |factors| factors.noise.members.rank), self.each);
        let first_member = begin / each;
        for member in first_member..=(begin + rows - 1) / each {
            output.vector(member, vector);
            vectors.extend_from_slice(vector);
        }
        if let Some(factors) = &self.factors {
            t.resize(rows * rank, 0);
            // SAFETY: by this function's contract.
            unsafe { factors.project::<S>(begin, each, unsigned, bytes, offsets, t) };
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
                    let terms = self.factors.as_ref().map(|factors| factors.terms(member, t, first, width));
                    let vector = &vectors[(member - first_member) * columns..][..columns];
                    let at = OutputBlock { row, columns, first, width, shift: self.shift };
                    // SAFETY: by this function's contract.
                    unsafe { output.take::<S>(at, &mut sums[row - tile..stop - tile], terms, vector) };
                    row = stop;
                }
            }
        }
    }
}

impl<'a> ProductFactors<'a> {
    /// Writes `t : [rows, rank]` for rows from `begin` of the call on.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set.
    #[inline(always)]
    unsafe fn project<S: IntegerSimd>(
        &self,
        begin: usize,
        each: usize,
        unsigned: &[u8],
        bytes: usize,
        offsets: &mut Vec<i32>,
        t: &mut [i32],
    ) {
        let rank = self.noise.members.rank;
        let mut member = usize::MAX;
        offsets.resize(rank, 0);
        for (row, (t, x)) in t.chunks_exact_mut(rank).zip(unsigned.chunks_exact(bytes)).enumerate() {
            let of = (begin + row) / each;
            let factors = self.noise.of(of)[self.from..][..rank * self.depth].chunks_exact(self.depth);
            if of != member {
                for (offset, factor) in offsets.iter_mut().zip(factors.clone()) {
                    *offset = correction(factor);
                }
                member = of;
            }
            for ((t, factor), offset) in t.iter_mut().zip(factors).zip(offsets.iter()) {
                // SAFETY: the processor has the instruction set by this function's contract; both have `depth` values.
                let dot = unsafe { S::dot(x[..self.depth].as_ptr(), factor.as_ptr(), self.depth) };
                *t = shift_rounded(dot - offset, FIXED_POINT);
            }
        }
    }

    /// What a member's noise adds to rows of sums, from column `first` on, for `t : [rows, rank]`.
    #[inline(always)]
    fn terms<'t>(&self, member: usize, t: &'t [i32], first: usize, width: usize) -> RoundedTerms<'t>
    where
        'a: 't,
    {
        let to = &self.noise.of(member)[self.to + first..];
        let shift = self.noise.members.shift - FIXED_POINT;
        let first = Term::new(&t[..self.noise.members.rank], to, self.columns, width, shift);
        RoundedTerms::new(t, first, sign(member))
    }
}
