//! What goes row by row without a product: embedding, layer norm, saturating addition.

use super::noise::{NoiseSlice, sign};
use super::simd::{IntegerKernel, IntegerSimd, dispatch};
use crate::arithmetic::integer::{Divisor, clip};
use crate::backend::cpu::scratch::reuse;
use rayon::prelude::*;
use std::cell::Cell;

/// Bytes of a task.
const TASK: usize = 32 * 1024;

/// Writes `y : [tokens, width]`. Tokens must be below the rows of `weight`.
pub(crate) fn embedding(tokens: &[usize], weight: &[i8], width: usize, noise: Option<NoiseSlice>, y: &mut [i8]) {
    if y.is_empty() {
        return;
    }
    let each = noise.map_or(tokens.len(), |noise| tokens.len() / noise.members.pairs.members());
    let rows = (TASK / width).max(1);
    y.par_chunks_mut(rows * width).enumerate().for_each(|(task, y)| {
        let first = task * rows;
        dispatch(Embedding { tokens: &tokens[first..], first, each, weight, width, noise, y });
    });
}

struct Embedding<'a> {
    tokens: &'a [usize],
    first: usize,
    /// Rows of a member.
    each: usize,
    weight: &'a [i8],
    width: usize,
    noise: Option<NoiseSlice<'a>>,
    y: &'a mut [i8],
}

impl IntegerKernel for Embedding<'_> {
    #[inline(always)]
    unsafe fn run<S: IntegerSimd>(self) {
        let (width, vocab) = (self.width, self.weight.len() / self.width);
        for (row, (y, token)) in self.y.chunks_exact_mut(width).zip(self.tokens).enumerate() {
            let plain = &self.weight[token * width..(token + 1) * width];
            let Some(noise) = self.noise else {
                y.copy_from_slice(plain);
                continue;
            };
            let member = (self.first + row) / self.each;
            let (rank, shift) = (noise.members.rank, noise.members.shift);
            let (b, a) = noise.of(member).split_at(rank * vocab);
            if rank == 1 {
                let b = sign(member) * i32::from(b[*token]);
                for ((y, plain), a) in y.iter_mut().zip(plain).zip(a) {
                    *y = clip(i32::from(*plain) + ((b * i32::from(*a)) >> shift));
                }
                continue;
            }
            for (c, (y, plain)) in y.iter_mut().zip(plain).enumerate() {
                let product = (0..rank).fold(0i32, |sum, k| {
                    sum.wrapping_add(i32::from(b[k * vocab + token]) * i32::from(a[k * width + c]))
                });
                *y = clip(i32::from(*plain) + ((sign(member) * product) >> shift));
            }
        }
    }
}

/// Writes `y : [rows, n]`.
pub(crate) fn layer_norm(x: &[i8], weight: &[i8], noise: Option<NoiseSlice>, y: &mut [i8]) {
    let n = weight.len();
    if y.is_empty() {
        return;
    }
    let each = noise.map_or(x.len() / n, |noise| x.len() / n / noise.members.pairs.members());
    let rows = (TASK / n).max(1);
    y.par_chunks_mut(rows * n).enumerate().for_each(|(task, y)| {
        let first = task * rows;
        let x = &x[first * n..first * n + y.len()];
        reuse(&WEIGHT, |member_weight| dispatch(LayerNorm { x, first, each, weight, noise, member_weight, y }));
    });
}

thread_local! {
    /// The weight as one member sees it.
    static WEIGHT: Cell<Vec<i8>> = const { Cell::new(Vec::new()) };
}

struct LayerNorm<'a> {
    x: &'a [i8],
    first: usize,
    /// Rows of a member.
    each: usize,
    weight: &'a [i8],
    noise: Option<NoiseSlice<'a>>,
    member_weight: &'a mut Vec<i8>,
    y: &'a mut [i8],
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

impl IntegerKernel for LayerNorm<'_> {
    #[inline(always)]
    unsafe fn run<S: IntegerSimd>(self) {
        let n = self.weight.len();
        let mut member = usize::MAX;
        self.member_weight.clear();
        self.member_weight.extend_from_slice(self.weight);
        for (row, (y, x)) in self.y.chunks_exact_mut(n).zip(self.x.chunks_exact(n)).enumerate() {
            let of = (self.first + row) / self.each;
            if let Some(noise) = self.noise
                && of != member
            {
                noise.vector(of, self.weight, self.member_weight);
                member = of;
            }
            normalize(x, self.member_weight, y);
        }
    }
}

#[inline(always)]
fn normalize(x: &[i8], weight: &[i8], y: &mut [i8]) {
    let mut magnitude = 0;
    for x in x {
        magnitude += i32::from(x.unsigned_abs());
    }
    let mean = magnitude.max(1) as usize / x.len();
    let divisor = mean.checked_sub(1).map(|at| DIVISORS.get(at));
    // A loop each: closures would not be compiled for the instruction set.
    let products = y.iter_mut().zip(x).zip(weight);
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

/// Writes `y = clip(a + b)`.
pub(crate) fn add(a: &[i8], b: &[i8], y: &mut [i8]) {
    y.par_chunks_mut(TASK).zip(a.par_chunks(TASK)).zip(b.par_chunks(TASK)).for_each(|((y, a), b)| {
        dispatch(Add { a, b, y });
    });
}

struct Add<'a> {
    a: &'a [i8],
    b: &'a [i8],
    y: &'a mut [i8],
}

impl IntegerKernel for Add<'_> {
    #[inline(always)]
    unsafe fn run<S: IntegerSimd>(self) {
        for ((y, a), b) in self.y.iter_mut().zip(self.a).zip(self.b) {
            *y = a.saturating_add(*b).max(-127);
        }
    }
}
