//! The inner loops of integer products.

use crate::backend::cpu::integer::tile::{RoundedTerm, Row, Scale, Sums, Term, Tile, activation, finish, round};
use crate::integer::shift_rounded;
use crate::integer::transformer::{EXP2_DIGITS, WEIGHTS, attention_weight, exp2_256ths};

/// The inner loops of one instruction set.
///
/// # Safety
///
/// Every method requires that the processor has the instruction set, and pointers that hold what the method reads.
pub(crate) trait IntegerSimd: Copy {
    /// `out[r][c] = Σ_k x[r][k]·w[k][c] − corrections[c]` (wrapping) for `steps` times four values of `k`: `x` is unsigned, its rows
    /// `stride` bytes apart; `panel` holds `[steps, COLUMNS, 4]`.
    unsafe fn tile(x: *const u8, stride: usize, steps: usize, panel: *const i8, corrections: &Sums, out: &mut Tile);

    /// `clip(⌊(sums + ⌊t·A / 2^shift⌋) / divisor⌋)` of one row of a tile.
    #[inline(always)]
    unsafe fn finish(sums: &Sums, term: Option<Term>, scale: &Scale) -> Row {
        finish(sums, term, scale)
    }

    /// `Σ x·b` over `len` values.
    unsafe fn dot(x: *const u8, b: *const i8, len: usize) -> i32;

    /// `Σ exp2_sixteenths(logit + 128)`
    unsafe fn exp2_sum(logits: &[i8]) -> u32;

    /// `Σ exp2_256ths(largest − logit)`; no logit is above `largest`.
    #[inline(always)]
    unsafe fn exp2_256ths_sum(logits: &[i32], largest: i32) -> i32 {
        let digits = &*EXP2_DIGITS;
        logits.iter().map(|logit| exp2_256ths(largest - logit, digits)).sum()
    }

    /// `round((sums + term) / 2^shift)` of one row of a tile.
    #[inline(always)]
    unsafe fn round(sums: &Sums, term: Option<RoundedTerm>, shift: u32) -> Sums {
        round(sums, term, shift)
    }

    /// `clip(round((sums + term) / 2^shift) + bias)` of one row of a tile, and GELU of it if asked for.
    #[inline(always)]
    unsafe fn round_activation(
        sums: &Sums,
        term: Option<RoundedTerm>,
        shift: u32,
        bias: Option<&Row>,
        activate: bool,
    ) -> Row {
        activation(&round(sums, term, shift), bias, activate)
    }

    /// Attention's weights of the first `visible` scores, 0 for the others, and their sum. There are as many weights as scores, a multiple
    /// of [`COLUMNS`].
    #[inline(always)]
    unsafe fn attention_weights(scores: &[i32], visible: usize, shift: u32, weights: &mut [i16]) -> i32 {
        let (table, scores) = (&*WEIGHTS, &scores[..visible]);
        let mut largest = i32::MIN;
        for score in scores {
            largest = largest.max(*score);
        }
        weights.fill(0);
        let mut total = 0;
        for (weight, score) in weights.iter_mut().zip(scores) {
            let value = attention_weight(shift_rounded(largest - score, shift), table);
            *weight = value as i16;
            total += value;
        }
        total
    }

    /// `Σ_j w_j·v_j` by column, for `values : [pairs of positions, sums, 2]` and as many weights as positions.
    #[inline(always)]
    unsafe fn weighted(weights: &[i16], values: &[i16], sums: &mut [i32]) {
        sums.fill(0);
        for (weights, values) in weights.chunks_exact(2).zip(values.chunks_exact(2 * sums.len())) {
            let (first, second) = (i32::from(weights[0]), i32::from(weights[1]));
            for (sum, values) in sums.iter_mut().zip(values.chunks_exact(2)) {
                *sum += first * i32::from(values[0]) + second * i32::from(values[1]);
            }
        }
    }
}
