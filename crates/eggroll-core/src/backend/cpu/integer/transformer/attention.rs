//! Causal attention: a task is a head of a sequence, whose keys and values stay in cache.

use crate::backend::cpu::integer::simd::{IntegerKernel, IntegerSimd, dispatch};
use crate::backend::cpu::scratch::reuse;
use crate::integer::transformer::{WEIGHTS, attention_shift, attention_weight};
use crate::integer::{RoundedDivisor, shift_rounded};
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

/// What a head works on.
#[derive(Default)]
struct Scratch {
    /// Keys of a head, transposed: `[d, context]`
    keys: Vec<i16>,
    /// Scores of a row, and then its weights.
    scores: Vec<i32>,
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
        let Scratch { keys: transposed, scores, sums } = scratch;
        let (width, shift, table) = (heads * d, attention_shift(d), &*WEIGHTS);
        transposed.resize(d * context, 0);
        scores.resize(context, 0);
        sums.resize(d, 0);
        for head in 0..heads {
            let at = head * d;
            for (j, key) in keys.chunks_exact(width).enumerate() {
                for (k, value) in key[at..at + d].iter().enumerate() {
                    transposed[k * context + j] = i16::from(*value);
                }
            }
            for step in 0..steps {
                let visible = context - steps + step + 1;
                let query = &query[step * width + at..][..d];
                let scores = &mut scores[..visible];
                scores.fill(0);
                for (q, keys) in query.iter().zip(transposed.chunks_exact(context)) {
                    let q = i16::from(*q);
                    for (score, key) in scores.iter_mut().zip(keys) {
                        // At most 127²: the product stays in 16 bits.
                        *score += i32::from(q.wrapping_mul(*key));
                    }
                }
                let mut largest = i32::MIN;
                for score in scores.iter() {
                    largest = largest.max(*score);
                }
                let mut total = 0;
                for score in scores.iter_mut() {
                    *score = attention_weight(shift_rounded(largest - *score, shift), table);
                    total += *score;
                }
                sums.fill(0);
                for (weight, value) in scores.iter().zip(values.chunks_exact(width)) {
                    for (sum, value) in sums.iter_mut().zip(&value[at..at + d]) {
                        *sum += weight * i32::from(*value);
                    }
                }
                let divisor = RoundedDivisor::new(total as u32);
                for (y, sum) in y[step * width + at..][..d].iter_mut().zip(sums.iter()) {
                    *y = divisor.divide(*sum) as i8;
                }
            }
        }
    }
}
