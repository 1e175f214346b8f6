//! The low-rank perturbed linear for rows that all members share: `x·W` is known, each member adds its own part to it.

use super::dots::{Out, Rows, dots};
use super::linear::{BiasSlice, SharedRows};
use super::low_rank_block::{Block, Prepared};
use super::product::{Product, load_some};
use super::tile::{Panels, Strided};
use crate::simd::{Kernel, Simd};
use crate::work::profile::{self, Component};
use std::mem::MaybeUninit;

/// One task.
pub(super) struct Shared<'a> {
    pub(super) block: Block<'a>,
    pub(super) shared: &'a SharedRows,
    pub(super) scratch: &'a mut [f32],
    pub(super) y: &'a mut [MaybeUninit<f32>],
}

impl Kernel for Shared<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Self { block, shared, scratch, y } = self;
        let (op, rank) = (block.op, block.noise.rank);
        let Prepared { t, factors, together, biases } = block.prepare(scratch);
        let _span = profile::task(block.traced, Component::LowRankPart, 4 * (t.len() + y.len()));
        // One call for all pairs where their vectors are evenly spaced, else one for each pair.
        let (calls, vectors, stride) = match (rank, together) {
            (1, Some(_)) => (1, block.pairs, block.factors),
            _ => (block.pairs, rank, op.d_input),
        };
        for (call, factors) in factors[..calls].iter().enumerate() {
            let b = match (rank, together) {
                (1, Some(together)) => &together[block.starts()[0]..],
                _ => block.parts(factors)[0],
            };
            let t = &mut t[call * vectors * op.rows..][..vectors * op.rows]; // [vectors, rows]
            // SAFETY: the processor has the instruction set by this function's contract.
            unsafe {
                match &shared.columns {
                    None => {
                        let x = Rows { values: op.x, stride: op.d_input, count: op.rows };
                        let b = Rows { values: b, stride, count: vectors };
                        dots::<S>(op.d_input, x, b, block.noise.scale, Out { values: t, row: 1, column: op.rows });
                    }
                    Some(columns) => {
                        let product = Product {
                            rows: vectors,
                            columns: op.rows,
                            depth: op.d_input,
                            x: Strided { values: b, row: stride, depth: 1 },
                            panels: Panels::of_rows(columns, op.rows),
                            target: &mut *t,
                            add: false,
                        };
                        product.run::<S>();
                        t.iter_mut().for_each(|t| *t *= block.noise.scale);
                    }
                }
            }
        }
        let half = op.rows * op.d_output;
        let base = &shared.product[..half];
        for (p, y) in y.chunks_exact_mut(2 * half).enumerate() {
            let (plus, minus) = y.split_at_mut(half);
            let a = block.parts(factors[p])[1];
            let t = &t[p * rank * op.rows..][..rank * op.rows];
            let bias = match op.bias {
                BiasSlice::None => None,
                _ => Some(&biases[2 * p * op.d_output..][..2 * op.d_output]),
            };
            // One member after the other: two streams a power of two apart would stall each other's stores.
            for (member, y) in [plus, minus].into_iter().enumerate() {
                for row in 0..op.rows {
                    let at = row * op.d_output;
                    // SAFETY: the processor has the instruction set by this function's contract; `base` and `y` were cut to `rows`
                    // rows, the bias to two, `a` to `rank` and `t` to `rank` of one element for each row.
                    unsafe {
                        let seen = SharedRow {
                            rank,
                            rows: op.rows,
                            d_output: op.d_output,
                            a: a.as_ptr(),
                            t: t.as_ptr().add(row),
                            sign: if member == 0 { 1.0 } else { -1.0 },
                            base: base.as_ptr().add(at),
                            bias: bias.map(|bias| bias.as_ptr().add(member * op.d_output)),
                        };
                        seen.write::<S>(y.as_mut_ptr().cast::<f32>().add(at));
                    }
                }
            }
        }
    }
}

/// One shared row as one member sees it.
struct SharedRow {
    rank: usize,
    rows: usize,
    d_output: usize,
    a: *const f32,
    t: *const f32,
    sign: f32,
    base: *const f32,
    bias: Option<*const f32>,
}

impl SharedRow {
    /// `y = base + s·Σ_k t_k·A_k + bias`.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set `S`; pointers must hold a row.
    #[inline(always)]
    unsafe fn write<S: Simd>(&self, y: *mut f32) {
        let whole = self.d_output / S::LANES * S::LANES;
        // SAFETY: by this function's contract; the last, short vector is loaded and stored by count.
        unsafe {
            let mut c = 0;
            while c < whole {
                S::store(y.add(c), self.vector::<S>(c, S::LANES));
                c += S::LANES;
            }
            let left = self.d_output - whole;
            if left > 0 {
                let last = self.vector::<S>(c, left);
                S::store_first(y.add(c), last, left);
            }
        }
    }

    /// # Safety
    ///
    /// As [`write`](Self::write).
    #[inline(always)]
    unsafe fn vector<S: Simd>(&self, c: usize, lanes: usize) -> S::F {
        // SAFETY: by this function's contract.
        unsafe {
            let mut sum = load_some::<S>(self.base.add(c), lanes);
            for k in 0..self.rank {
                let t = S::splat(self.sign * *self.t.add(k * self.rows));
                sum = S::fma(t, load_some::<S>(self.a.add(k * self.d_output + c), lanes), sum);
            }
            match self.bias {
                Some(bias) => S::add(sum, load_some::<S>(bias.add(c), lanes)),
                None => sum,
            }
        }
    }
}
