//! The low-rank perturbed linear for rows that all members share: `x·W` is known, each member adds its own part to it.

use super::dots::{DotRows, Out, dots};
use super::epilogue::LowRankEpilogue;
use super::linear::{BiasSlice, SharedRows};
use super::low_rank_block::{PairBlock, Prepared};
use super::product::{Product, for_vectors, load_some};
use super::tile::{Panels, Strided};
use crate::simd::{Kernel, Simd};
use crate::work::profile::{self, Component};
use std::mem::MaybeUninit;

/// One task.
pub(super) struct Shared<'a> {
    pub(super) block: PairBlock<'a>,
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
                        let x = DotRows { values: op.x, stride: op.d_input, count: op.rows };
                        let b = DotRows { values: b, stride, count: vectors };
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
            let t = &mut t[p * rank * op.rows..][..rank * op.rows];
            let bias = match op.bias {
                BiasSlice::None => None,
                _ => Some(&biases[2 * p * op.d_output..][..2 * op.d_output]),
            };
            // One member after the other: two streams a power of two apart would stall each other's stores.
            for (member, y) in [plus, minus].into_iter().enumerate() {
                if member == 1 {
                    t.iter_mut().for_each(|t| *t = -*t);
                }
                for row in 0..op.rows {
                    let at = row * op.d_output;
                    // SAFETY: the processor has the instruction set by this function's contract; `base` and `y` were cut to `rows`
                    // rows, the bias to two, `a` to `rank` and `t` to `rank` of one element for each row.
                    unsafe {
                        let end = LowRankEpilogue {
                            rank,
                            t: t.as_ptr().add(row),
                            step: op.rows,
                            a: a.as_ptr(),
                            d_output: op.d_output,
                            bias: bias.map(|bias| bias.as_ptr().add(member * op.d_output)),
                        };
                        let base = base.as_ptr().add(at);
                        let y = y.as_mut_ptr().cast::<f32>().add(at);
                        for_vectors!(S, op.d_output, y, |c, lanes| {
                            end.add_to::<S>(load_some::<S>(base.add(c), lanes), c, lanes)
                        });
                    }
                }
            }
        }
    }
}
