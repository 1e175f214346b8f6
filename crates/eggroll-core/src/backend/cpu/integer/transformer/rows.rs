//! What goes row by row without a product of activations: vectors as members see them, embedding, norm and residual connections.

use crate::arithmetic::integer::transformer::{STRETCHED, perturbed};
use crate::arithmetic::integer::{NarrowDivisor, RoundedDivisor, shift_rounded};
use crate::backend::cpu::integer::noise::{NoiseSlice, sign};
use crate::backend::cpu::integer::simd::{IntegerKernel, IntegerSimd, dispatch};
use crate::backend::cpu::scratch::reuse;
use rayon::prelude::*;
use std::cell::Cell;

/// Bytes of a task.
const TASK: usize = 32 * 1024;

/// A vector parameter.
#[derive(Clone, Copy)]
pub(crate) struct VectorSlices<'a> {
    /// `[n]`
    pub(crate) values: &'a [i8],
    pub(crate) noise: Option<NoiseSlice<'a>>,
}

impl VectorSlices<'_> {
    /// The vector as a member sees it.
    #[inline(always)]
    pub(super) fn of(&self, member: usize, out: &mut Vec<i8>) {
        out.clear();
        out.extend_from_slice(self.values);
        if let Some(noise) = &self.noise {
            let (n0, n1) = noise.of(member).split_at(self.values.len());
            let (sign, shift) = (sign(member), noise.members.shift);
            for ((out, n0), n1) in out.iter_mut().zip(n0).zip(n1) {
                *out = perturbed(*out, [*n0, *n1], sign, shift);
            }
        }
    }

    /// Rows of a member, or all.
    fn each(&self, rows: usize) -> usize {
        self.noise.map_or(rows, |noise| rows / noise.members.pairs.members())
    }
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

/// What a task works on.
#[derive(Default)]
struct Scratch {
    wide: Vec<i32>,
    narrow: Vec<i16>,
    gain: Vec<i8>,
    bias: Vec<i8>,
}

thread_local! {
    static SCRATCH: Cell<Scratch> = Cell::default();
}

/// Rows of a kind, one after the other.
trait RowKernel: Sync {
    /// Values of a row.
    fn width(&self) -> usize;

    /// Rows of a member.
    fn each(&self) -> usize;

    /// Before the rows of a member.
    fn start(&self, member: usize, scratch: &mut Scratch);

    /// Writes a row of a member.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set.
    unsafe fn row<S: IntegerSimd>(&self, row: usize, member: usize, scratch: &mut Scratch, y: &mut [i8]);
}

struct RowTask<'a, R> {
    rows: &'a R,
    first: usize,
    scratch: &'a mut Scratch,
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

/// Writes `y : [tokens, width]`. Tokens must be below the rows of `weight`.
pub(crate) fn embedding(tokens: &[usize], weight: &[i8], noise: Option<NoiseSlice>, bias: VectorSlices, y: &mut [i8]) {
    if !y.is_empty() {
        let of_bias = bias.each(tokens.len());
        let each = noise.map_or(of_bias, |noise| tokens.len() / noise.members.pairs.members());
        run(Embedding { tokens, weight, noise, bias, each }, y);
    }
}

struct Embedding<'a> {
    tokens: &'a [usize],
    weight: &'a [i8],
    noise: Option<NoiseSlice<'a>>,
    bias: VectorSlices<'a>,
    each: usize,
}

impl RowKernel for Embedding<'_> {
    fn width(&self) -> usize {
        self.bias.values.len()
    }

    fn each(&self) -> usize {
        self.each
    }

    #[inline(always)]
    fn start(&self, member: usize, scratch: &mut Scratch) {
        self.bias.of(member, &mut scratch.bias);
    }

    #[inline(always)]
    unsafe fn row<S: IntegerSimd>(&self, row: usize, member: usize, scratch: &mut Scratch, y: &mut [i8]) {
        let (token, width) = (self.tokens[row], self.width());
        let Scratch { wide, bias, .. } = scratch;
        wide.clear();
        wide.resize(width, 0);
        if let Some(noise) = self.noise {
            let (rank, vocab) = (noise.members.rank, self.weight.len() / width);
            let (b, a) = noise.of(member).split_at(rank * vocab);
            for k in 0..rank {
                let b = i32::from(b[k * vocab + token]);
                for (wide, a) in wide.iter_mut().zip(&a[k * width..(k + 1) * width]) {
                    *wide += b * i32::from(*a);
                }
            }
            let (sign, shift) = (sign(member), noise.members.shift);
            for wide in wide.iter_mut() {
                *wide = sign * shift_rounded(*wide, shift);
            }
        }
        let plain = &self.weight[token * width..(token + 1) * width];
        for ((wide, plain), bias) in wide.iter_mut().zip(plain).zip(bias.iter()) {
            *wide += i32::from(*plain) + i32::from(*bias);
        }
        rescale(wide, y);
    }
}

/// Writes `y : [rows, n]`.
pub(crate) fn norm(x: &[i8], gain: VectorSlices, bias: VectorSlices, y: &mut [i8]) {
    if !y.is_empty() {
        let rows = x.len() / gain.values.len();
        let each = gain.each(rows).min(bias.each(rows));
        run(Norm { x, gain, bias, each }, y);
    }
}

struct Norm<'a> {
    x: &'a [i8],
    gain: VectorSlices<'a>,
    bias: VectorSlices<'a>,
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
    fn start(&self, member: usize, scratch: &mut Scratch) {
        self.gain.of(member, &mut scratch.gain);
        self.bias.of(member, &mut scratch.bias);
    }

    #[inline(always)]
    unsafe fn row<S: IntegerSimd>(&self, row: usize, _member: usize, scratch: &mut Scratch, y: &mut [i8]) {
        let n = self.width();
        let x = &self.x[row * n..(row + 1) * n];
        let mut magnitude = 0;
        for x in x {
            magnitude += usize::from(x.unsigned_abs());
        }
        let divisor = NarrowDivisor::by((magnitude + n / 2) / n);
        let (gain, bias) = (&scratch.gain[..n], &scratch.bias[..n]);
        for (((y, x), gain), bias) in y.iter_mut().zip(x).zip(gain).zip(bias) {
            let value = divisor.divide(i16::from(*x) * i16::from(*gain)) + i16::from(*bias);
            *y = value.clamp(-127, 127) as i8;
        }
    }
}

/// Writes `y = rescale(a + b)` for rows of `n`.
pub(crate) fn add(a: &[i8], b: &[i8], n: usize, y: &mut [i8]) {
    if !y.is_empty() {
        run(Add { a, b, n }, y);
    }
}

struct Add<'a> {
    a: &'a [i8],
    b: &'a [i8],
    n: usize,
}

impl RowKernel for Add<'_> {
    fn width(&self) -> usize {
        self.n
    }

    fn each(&self) -> usize {
        usize::MAX
    }

    fn start(&self, _member: usize, scratch: &mut Scratch) {
        scratch.narrow.resize(self.n, 0);
    }

    #[inline(always)]
    unsafe fn row<S: IntegerSimd>(&self, row: usize, _member: usize, scratch: &mut Scratch, y: &mut [i8]) {
        let part = row * self.n..(row + 1) * self.n;
        for ((sum, a), b) in scratch.narrow.iter_mut().zip(&self.a[part.clone()]).zip(&self.b[part]) {
            *sum = i16::from(*a) + i16::from(*b);
        }
        // SAFETY: by this function's contract.
        unsafe { S::rescale(&scratch.narrow, y) };
    }
}
