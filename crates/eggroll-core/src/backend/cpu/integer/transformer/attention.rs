//! Causal attention: a task is a head of a sequence, whose keys and values stay in cache.

use crate::backend::cpu::integer::product::offset;
use crate::backend::cpu::integer::simd::{IntegerKernel, IntegerSimd, dispatch};
use crate::backend::cpu::integer::tile::{COLUMNS, LINE, ROWS, Sums, Tile};
use crate::backend::cpu::scratch::reuse;
use crate::integer::RoundedDivisor;
use crate::integer::transformer::attention_shift;
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
        reuse(&SCRATCH, |scratch| dispatch(Sequence { query, keys, values, sizes, scratch, y }));
    });
}

/// What a head works on; contexts are padded to whole panels, and queries to whole tiles.
#[derive(Default)]
struct Scratch {
    /// Keys of a head as panels of a product: `[panels, d / 4, COLUMNS, 4]`
    keys: Vec<i8>,
    /// `128·Σ k`, what the offset of the queries adds to scores: `[panels]`
    corrections: Vec<Sums>,
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
    static SCRATCH: Cell<Scratch> = Cell::default();
}

struct Sequence<'a> {
    query: &'a [i8],
    keys: &'a [i8],
    values: &'a [i8],
    sizes: AttentionSizes,
    scratch: &'a mut Scratch,
    y: &'a mut [i8],
}

impl IntegerKernel for Sequence<'_> {
    #[inline(always)]
    unsafe fn run<S: IntegerSimd>(self) {
        let Self { query, keys, values, sizes, scratch, y } = self;
        let AttentionSizes { steps, context, heads, d } = sizes;
        let (width, shift, steps4, panels) = (heads * d, attention_shift(d), d.div_ceil(4), context.div_ceil(COLUMNS));
        let (bytes, padded) = (4 * steps4, panels * COLUMNS);
        scratch.prepare(panels, steps4, d);
        for head in 0..heads {
            let at = head * d;
            scratch.pack(keys, values, width, at, d);
            let Scratch { keys, corrections, values, queries, scores, weights, sums } = &mut *scratch;
            for first in (0..steps).step_by(ROWS) {
                let rows = ROWS.min(steps - first);
                for (r, queries) in queries.chunks_exact_mut(bytes).enumerate().take(rows) {
                    offset(&query[(first + r) * width + at..][..d], &mut queries[..d]);
                }
                let visible = context - steps + first + rows;
                for panel in 0..visible.div_ceil(COLUMNS) {
                    let mut tile: Tile = [[0; COLUMNS]; ROWS];
                    let lines = &keys[panel * steps4 * LINE..][..steps4 * LINE];
                    let queries = &queries[..ROWS * bytes];
                    // SAFETY: the processor has the instruction set by this function's contract; there are whole tiles and panels.
                    unsafe {
                        let (x, lines) = (queries.as_ptr(), lines.as_ptr());
                        S::tile(x, bytes, steps4, lines, &corrections[panel], &mut tile);
                    }
                    for (r, sums) in tile.iter().enumerate().take(rows) {
                        scores[r * padded + panel * COLUMNS..][..COLUMNS].copy_from_slice(sums);
                    }
                }
                for r in 0..rows {
                    let visible = context - steps + first + r + 1;
                    let reach = visible.next_multiple_of(COLUMNS);
                    let weights = &mut weights[..reach];
                    let scores = &scores[r * padded..][..reach];
                    // SAFETY: the processor has the instruction set by this function's contract.
                    let total = unsafe { S::attention_weights(scores, visible, shift, weights) };
                    let seen = &weights[..visible.next_multiple_of(2)];
                    // SAFETY: the same.
                    unsafe { S::weighted(seen, values, sums) };
                    let divisor = RoundedDivisor::new(total as u32);
                    for (y, sum) in y[(first + r) * width + at..][..d].iter_mut().zip(sums.iter()) {
                        *y = divisor.divide(*sum) as i8;
                    }
                }
            }
        }
    }
}

impl Scratch {
    fn prepare(&mut self, panels: usize, steps4: usize, d: usize) {
        let padded = panels * COLUMNS;
        self.keys.resize(panels * steps4 * LINE, 0);
        self.corrections.resize(panels, [0; COLUMNS]);
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
        self.keys.fill(0);
        for (j, key) in keys.chunks_exact(width).enumerate() {
            let (panel, column) = (j / COLUMNS, j % COLUMNS);
            let key = &key[at..at + d];
            let lines = &mut self.keys[panel * panel_bytes..][..panel_bytes];
            for (four, line) in key.chunks(4).zip(lines.chunks_exact_mut(LINE)) {
                line[4 * column..][..four.len()].copy_from_slice(four);
            }
            self.corrections[panel][column] = 128 * key.iter().map(|value| i32::from(*value)).sum::<i32>();
        }
        self.values.fill(0);
        for (j, value) in values.chunks_exact(width).enumerate() {
            let pair = &mut self.values[j / 2 * 2 * d..][..2 * d];
            for (to, value) in pair.chunks_exact_mut(2).zip(&value[at..at + d]) {
                to[j % 2] = i16::from(*value);
            }
        }
    }
}
