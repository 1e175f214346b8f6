//! Causal attention: a task is a head of a sequence, whose keys and values stay in cache.

use crate::arithmetic::integer::RoundedDivisor;
use crate::arithmetic::integer::transformer::attention_shift;
use crate::backend::cpu::integer::product::{correction, offset};
use crate::backend::cpu::integer::simd::{IntegerKernel, IntegerSimd, dispatch};
use crate::backend::cpu::integer::tile::{COLUMNS, LINE, ROWS, Sums, Tile};
use crate::backend::cpu::scratch::reuse;
use rayon::prelude::*;
use std::cell::Cell;

/// Sizes of a call.
#[derive(Clone, Copy)]
pub(crate) struct AttentionSizes {
    pub(crate) steps: usize,
    pub(crate) context: usize,
    pub(crate) heads: usize,
    pub(crate) d: usize,
}

/// Writes `y : [sequences · steps, heads · d]` from queries of that shape, keys and values `[sequences, context, heads · d]`.
pub(crate) fn attention(query: &[i8], keys: &[i8], values: &[i8], sizes: AttentionSizes, y: &mut [i8]) {
    let width = sizes.heads * sizes.d;
    let (rows, held) = (sizes.steps * width, sizes.context * width);
    let sequences = y.par_chunks_mut(rows).zip(query.par_chunks(rows));
    let sequences = sequences.zip(keys.par_chunks(held).zip(values.par_chunks(held)));
    sequences.for_each(|((y, query), (keys, values))| {
        reuse(&SCRATCH, |scratch| dispatch(AttentionSequence { query, keys, values, sizes, scratch, y }));
    });
}

/// What a head works on; contexts are padded to whole panels, and queries to whole tiles.
#[derive(Default)]
struct AttentionScratch {
    /// Keys of a head as panels of a product: `[panels, d / 4, COLUMNS, 4]`
    keys: Vec<i8>,
    /// `−128·Σ k`: scores begin with what the offset of the queries will add: `[panels]`
    starts: Vec<Sums>,
    /// Values of a head: `[pairs of positions, d, 2]`
    values: Vec<i16>,
    /// Queries of a tile, unsigned.
    queries: Vec<u8>,
    /// Scores of a tile: `[ROWS, context]`
    scores: Vec<i32>,
    /// Weights of a row: `[context]`
    weights: Vec<i16>,
    /// Sums of weighted values.
    sums: Vec<i32>,
}

thread_local! {
    static SCRATCH: Cell<AttentionScratch> = Cell::default();
}

struct AttentionSequence<'a> {
    query: &'a [i8],
    keys: &'a [i8],
    values: &'a [i8],
    sizes: AttentionSizes,
    scratch: &'a mut AttentionScratch,
    y: &'a mut [i8],
}

impl IntegerKernel for AttentionSequence<'_> {
    #[inline(always)]
    unsafe fn run<S: IntegerSimd>(mut self) {
        let AttentionSizes { context, heads, d, .. } = self.sizes;
        self.scratch.prepare(context.div_ceil(COLUMNS), d.div_ceil(4), d);
        for head in 0..heads {
            // SAFETY: by this function's contract.
            unsafe { self.head::<S>(head, d) };
        }
    }
}

impl AttentionSequence<'_> {
    /// Attends with a head of `d` values.
    ///
    /// # Safety
    ///
    /// The processor must have the instruction set.
    #[inline(always)]
    unsafe fn head<S: IntegerSimd>(&mut self, head: usize, d: usize) {
        let AttentionSizes { steps, context, heads, .. } = self.sizes;
        let (width, at, shift) = (heads * d, head * d, attention_shift(d));
        self.scratch.pack(self.keys, self.values, width, at, d);
        let AttentionScratch { keys, starts, values, queries, scores, weights, sums } = &mut *self.scratch;
        let (bytes, padded, sums) = (d.next_multiple_of(4), context.next_multiple_of(COLUMNS), &mut sums[..d]);
        for first in (0..steps).step_by(ROWS) {
            let rows = ROWS.min(steps - first);
            for (r, queries) in queries.chunks_exact_mut(bytes).enumerate().take(rows) {
                offset(&self.query[(first + r) * width + at..][..d], &mut queries[..d]);
            }
            let visible = context - steps + first + rows;
            for panel in 0..visible.div_ceil(COLUMNS) {
                let mut tile: Tile = [[0; COLUMNS]; ROWS];
                let lines = &keys[panel * bytes / 4 * LINE..][..bytes / 4 * LINE];
                let queries = &queries[..ROWS * bytes];
                // SAFETY: the processor has the instruction set by this function's contract; there are whole tiles and panels.
                unsafe {
                    S::tile(queries.as_ptr(), bytes, bytes / 4, lines.as_ptr(), &starts[panel], &mut tile);
                }
                for (r, sums) in tile.iter().enumerate().take(rows) {
                    scores[r * padded + panel * COLUMNS..][..COLUMNS].copy_from_slice(sums);
                }
            }
            for r in 0..rows {
                let visible = context - steps + first + r + 1;
                let reach = visible.next_multiple_of(COLUMNS);
                let weights = &mut weights[..reach];
                // SAFETY: the processor has the instruction set by this function's contract.
                let total = unsafe { S::attention_weights(&scores[r * padded..][..reach], visible, shift, weights) };
                let seen = &weights[..visible.next_multiple_of(2)];
                // SAFETY: the same.
                unsafe { S::weighted(seen, values, sums) };
                let divisor = RoundedDivisor::new(total as u32);
                // SAFETY: the same.
                unsafe { S::divide(sums, divisor, &mut self.y[(first + r) * width + at..][..d]) };
            }
        }
    }
}

impl AttentionScratch {
    fn prepare(&mut self, panels: usize, steps4: usize, d: usize) {
        let padded = panels * COLUMNS;
        // Zeros where nothing is written.
        self.keys.clear();
        self.keys.resize(panels * steps4 * LINE, 0);
        self.starts.resize(panels, [0; COLUMNS]);
        self.values.clear();
        self.values.resize(padded * d, 0);
        self.queries.clear();
        self.queries.resize(ROWS * 4 * steps4, 0);
        self.scores.resize(ROWS * padded, 0);
        self.weights.resize(padded, 0);
        self.sums.resize(d, 0);
    }

    /// Takes the keys and values of a head, from column `at` on.
    #[inline(always)]
    fn pack(&mut self, keys: &[i8], values: &[i8], width: usize, at: usize, d: usize) {
        let panel_bytes = d.div_ceil(4) * LINE;
        for (j, key) in keys.chunks_exact(width).enumerate() {
            let (panel, column) = (j / COLUMNS, j % COLUMNS);
            let key = &key[at..at + d];
            let lines = &mut self.keys[panel * panel_bytes..][..panel_bytes];
            for (four, line) in key.chunks(4).zip(lines.chunks_exact_mut(LINE)) {
                line[4 * column..][..four.len()].copy_from_slice(four);
            }
            self.starts[panel][column] = -correction(key);
        }
        for (to, pair) in self.values.chunks_exact_mut(2 * d).zip(values.chunks(2 * width)) {
            let (first, second) = (&pair[at..at + d], pair.get(width + at..width + at + d));
            match second {
                Some(second) => {
                    for ((to, first), second) in to.chunks_exact_mut(2).zip(first).zip(second) {
                        (to[0], to[1]) = (i16::from(*first), i16::from(*second));
                    }
                }
                // The last of an odd number.
                None => {
                    for (to, first) in to.chunks_exact_mut(2).zip(first) {
                        (to[0], to[1]) = (i16::from(*first), 0);
                    }
                }
            }
        }
    }
}
