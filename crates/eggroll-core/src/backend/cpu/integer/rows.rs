//! What goes row by row without a product of activations: embedding, norm, addition.

use super::noise::{NoiseSlice, VectorSlices, rows_of_member, sign};
use super::simd::{IntegerKernel, IntegerSimd, dispatch};
use crate::arithmetic::integer::transformer::STRETCHED;
use crate::arithmetic::integer::{Divisor, NarrowDivisor, RoundedDivisor, Rounding, clip};
use crate::backend::cpu::scratch::reuse;
use rayon::prelude::*;
use std::cell::Cell;

/// Bytes of a task.
const TASK: usize = 32 * 1024;

/// What a task works on.
#[derive(Default)]
struct RowScratch {
    wide: Vec<i32>,
    narrow: Vec<i16>,
    gain: Vec<i8>,
    bias: Vec<i8>,
}

thread_local! {
    static SCRATCH: Cell<RowScratch> = Cell::default();
}

/// Rows of a kind, one after the other.
trait RowKernel: Sync {
    /// Values of a row.
    fn width(&self) -> usize;

    /// Rows of a member.
    fn each(&self) -> usize;

    /// Before the rows of a member.
    fn start(&self, member: usize, scratch: &mut RowScratch);

    /// Writes a row of a member.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set.
    unsafe fn row<S: IntegerSimd>(&self, row: usize, member: usize, scratch: &mut RowScratch, y: &mut [i8]);
}

struct RowTask<'a, R> {
    rows: &'a R,
    first: usize,
    scratch: &'a mut RowScratch,
    y: &'a mut [i8],
}

impl<R: RowKernel> IntegerKernel for RowTask<'_, R> {
    #[inline(always)]
    unsafe fn run<S: IntegerSimd>(self) {
        let Self { rows, first, scratch, y } = self;
        let mut member = usize::MAX;
        for (row, y) in y.chunks_exact_mut(rows.width()).enumerate() {
            let of = (first + row) / rows.each();
            if of != member {
                rows.start(of, scratch);
                member = of;
            }
            // SAFETY: the processor has the instruction set by this function's contract.
            unsafe { rows.row::<S>(first + row, of, scratch, y) };
        }
    }
}

/// Writes all rows of `y`.
fn run<R: RowKernel>(rows: R, y: &mut [i8]) {
    let count = (TASK / rows.width()).max(1);
    y.par_chunks_mut(count * rows.width()).enumerate().for_each(|(task, y)| {
        reuse(&SCRATCH, |scratch| dispatch(RowTask { rows: &rows, first: task * count, scratch, y }));
    });
}

/// Writes a vector as a member sees it to a buffer.
#[inline(always)]
fn vector_of(vector: &VectorSlices, member: usize, rounding: Rounding, out: &mut Vec<i8>) {
    out.resize(vector.values.len(), 0);
    vector.of(member, rounding, out);
}

/// `round(127·v / max |v|)`
#[inline(always)]
fn rescale(values: &[i32], y: &mut [i8]) {
    let mut largest = 0;
    for value in values {
        largest = largest.max(value.abs());
    }
    let divisor = RoundedDivisor::new(largest.max(1) as u32);
    for (y, value) in y.iter_mut().zip(values) {
        *y = divisor.divide(STRETCHED * value) as i8;
    }
}

/// Operands of [`embedding`].
pub(crate) struct EmbeddingSlices<'a> {
    /// Below the rows of the weight.
    pub(crate) tokens: &'a [usize],
    /// `[vocab, width]`
    pub(crate) weight: &'a [i8],
    pub(crate) width: usize,
    pub(crate) noise: Option<NoiseSlice<'a>>,
    /// `[width]`, with [`Rounding::Nearest`] alone.
    pub(crate) bias: Option<VectorSlices<'a>>,
    pub(crate) rounding: Rounding,
}

/// Writes `y : [tokens, width]`.
pub(crate) fn embedding(op: &EmbeddingSlices, y: &mut [i8]) {
    if !y.is_empty() {
        let each = rows_of_member([op.noise, op.bias.and_then(|bias| bias.noise)], op.tokens.len());
        run(EmbeddingRows { op, each }, y);
    }
}

struct EmbeddingRows<'a> {
    op: &'a EmbeddingSlices<'a>,
    each: usize,
}

impl RowKernel for EmbeddingRows<'_> {
    fn width(&self) -> usize {
        self.op.width
    }

    fn each(&self) -> usize {
        self.each
    }

    #[inline(always)]
    fn start(&self, member: usize, scratch: &mut RowScratch) {
        if let Some(bias) = &self.op.bias {
            vector_of(bias, member, Rounding::Nearest, &mut scratch.bias);
        }
    }

    #[inline(always)]
    unsafe fn row<S: IntegerSimd>(&self, row: usize, member: usize, scratch: &mut RowScratch, y: &mut [i8]) {
        let EmbeddingSlices { tokens, weight, width, noise, bias, rounding } = *self.op;
        let (token, RowScratch { wide, bias: values, .. }) = (tokens[row], scratch);
        let plain = &weight[token * width..(token + 1) * width];
        if rounding == Rounding::Floor && noise.is_none() {
            y.copy_from_slice(plain);
            return;
        }
        wide.clear();
        wide.resize(width, 0);
        let (mut sign_of, mut shift) = (1, 0);
        if let Some(noise) = noise {
            let (rank, vocab) = (noise.members.rank, weight.len() / width);
            let (b, a) = noise.of(member).split_at(rank * vocab);
            for k in 0..rank {
                let b = i32::from(b[k * vocab + token]);
                for (wide, a) in wide.iter_mut().zip(&a[k * width..(k + 1) * width]) {
                    *wide = wide.wrapping_add(b * i32::from(*a));
                }
            }
            (sign_of, shift) = (sign(member), noise.members.shift);
        }
        match rounding {
            Rounding::Floor => {
                for ((y, wide), plain) in y.iter_mut().zip(wide.iter()).zip(plain) {
                    *y = clip(i32::from(*plain) + Rounding::Floor.noise(*wide, sign_of, shift));
                }
            }
            Rounding::Nearest => {
                for (wide, plain) in wide.iter_mut().zip(plain) {
                    *wide = i32::from(*plain) + Rounding::Nearest.noise(*wide, sign_of, shift);
                }
                if bias.is_some() {
                    for (wide, bias) in wide.iter_mut().zip(values.iter()) {
                        *wide += i32::from(*bias);
                    }
                }
                rescale(wide, y);
            }
        }
    }
}

/// Writes `y : [rows, n]`; a bias with [`Rounding::Nearest`] alone.
pub(crate) fn norm(x: &[i8], gain: VectorSlices, bias: Option<VectorSlices>, rounding: Rounding, y: &mut [i8]) {
    if !y.is_empty() {
        let noises = [gain.noise, bias.and_then(|bias| bias.noise)];
        let each = rows_of_member(noises, x.len() / gain.values.len());
        run(Norm { x, gain, bias, rounding, each }, y);
    }
}

struct Norm<'a> {
    x: &'a [i8],
    gain: VectorSlices<'a>,
    bias: Option<VectorSlices<'a>>,
    rounding: Rounding,
    each: usize,
}

impl RowKernel for Norm<'_> {
    fn width(&self) -> usize {
        self.gain.values.len()
    }

    fn each(&self) -> usize {
        self.each
    }

    #[inline(always)]
    fn start(&self, member: usize, scratch: &mut RowScratch) {
        vector_of(&self.gain, member, self.rounding, &mut scratch.gain);
        match &self.bias {
            Some(bias) => vector_of(bias, member, self.rounding, &mut scratch.bias),
            // The buffer may hold the bias of an earlier call.
            None => {
                scratch.bias.clear();
                scratch.bias.resize(self.width(), 0);
            }
        }
    }

    #[inline(always)]
    unsafe fn row<S: IntegerSimd>(&self, row: usize, _member: usize, scratch: &mut RowScratch, y: &mut [i8]) {
        let n = self.width();
        let x = &self.x[row * n..(row + 1) * n];
        let gain = &scratch.gain[..n];
        let mut magnitude = 0;
        for x in x {
            magnitude += u32::from(x.unsigned_abs());
        }
        let magnitude = magnitude as usize;
        match self.rounding {
            Rounding::Floor => divide_by_mean(x, gain, magnitude.max(1) / n, y),
            Rounding::Nearest => {
                let bias = &scratch.bias[..n];
                let divisor = NarrowDivisor::by((magnitude + n / 2) / n);
                for (((y, x), gain), bias) in y.iter_mut().zip(x).zip(gain).zip(bias) {
                    let value = divisor.divide(i16::from(*x) * i16::from(*gain)) + i16::from(*bias);
                    *y = value.clamp(-127, 127) as i8;
                }
            }
        }
    }
}

/// Division by every mean magnitude but 0.
static DIVISORS: [Divisor; Divisor::LIMIT - 1] = {
    let mut divisors = [Divisor::new(1, 0); Divisor::LIMIT - 1];
    let mut d = 1;
    while d < Divisor::LIMIT {
        divisors[d - 1] = Divisor::new(d, 0);
        d += 1;
    }
    divisors
};

/// `clip(⌊x·gain / mean⌋)`
#[inline(always)]
fn divide_by_mean(x: &[i8], gain: &[i8], mean: usize, y: &mut [i8]) {
    let divisor = mean.checked_sub(1).map(|at| DIVISORS.get(at));
    // A loop each: closures would not be compiled for the instruction set.
    let products = y.iter_mut().zip(x).zip(gain);
    match divisor {
        None => {
            for ((y, x), w) in products {
                *y = if *x == 0 || *w == 0 { -1 } else { -2 };
            }
        }
        Some(Some(divisor)) => {
            for ((y, x), w) in products {
                *y = divisor.divide_product(i16::from(*x) * i16::from(*w));
            }
        }
        // Only for values beyond ±127: −128 is one.
        Some(None) => {
            for ((y, x), w) in products {
                *y = crate::arithmetic::integer::divide_plainly(i32::from(*x) * i32::from(*w), mean as i32);
            }
        }
    }
}

/// Writes `y`, the sum for rows of `n`.
pub(crate) fn add(a: &[i8], b: &[i8], n: usize, rounding: Rounding, y: &mut [i8]) {
    match rounding {
        Rounding::Floor => {
            y.par_chunks_mut(TASK).zip(a.par_chunks(TASK)).zip(b.par_chunks(TASK)).for_each(|((y, a), b)| {
                dispatch(SaturatingAdd { a, b, y });
            })
        }
        Rounding::Nearest if y.is_empty() => {}
        Rounding::Nearest => run(StretchedAdd { a, b, n }, y),
    }
}

struct SaturatingAdd<'a> {
    a: &'a [i8],
    b: &'a [i8],
    y: &'a mut [i8],
}

impl IntegerKernel for SaturatingAdd<'_> {
    #[inline(always)]
    unsafe fn run<S: IntegerSimd>(self) {
        for ((y, a), b) in self.y.iter_mut().zip(self.a).zip(self.b) {
            *y = a.saturating_add(*b).max(-127);
        }
    }
}

struct StretchedAdd<'a> {
    a: &'a [i8],
    b: &'a [i8],
    n: usize,
}

impl RowKernel for StretchedAdd<'_> {
    fn width(&self) -> usize {
        self.n
    }

    fn each(&self) -> usize {
        usize::MAX
    }

    fn start(&self, _member: usize, scratch: &mut RowScratch) {
        scratch.narrow.resize(self.n, 0);
    }

    #[inline(always)]
    unsafe fn row<S: IntegerSimd>(&self, row: usize, _member: usize, scratch: &mut RowScratch, y: &mut [i8]) {
        let part = row * self.n..(row + 1) * self.n;
        for ((sum, a), b) in scratch.narrow.iter_mut().zip(&self.a[part.clone()]).zip(&self.b[part]) {
            *sum = i16::from(*a) + i16::from(*b);
        }
        // SAFETY: by this function's contract.
        unsafe { S::rescale(&scratch.narrow, y) };
    }
}
