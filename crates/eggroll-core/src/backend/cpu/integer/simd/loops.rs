//! The inner loops of integer products.

use crate::arithmetic::integer::transformer::{EXP2_DIGITS, STRETCHED, WEIGHTS, attention_weight, exp2_256ths, rotate};
use crate::arithmetic::integer::{NarrowDivisor, RoundedDivisor, shift_rounded};
use crate::backend::cpu::integer::tile::{Scale, Sums, Term, Terms, Tile, TileRow, activation, finish, round};

/// The inner loops of one instruction set.
///
/// # Safety
///
/// Every method requires that the processor has the instruction set, and pointers that hold what the method reads.
pub(crate) trait IntegerSimd: Copy {
    /// `out[r][c] = starts[c] + Σ_k x[r][k]·w[k][c]` (wrapping) for `steps` times four values of `k`: `x` is unsigned, its rows
    /// `stride` bytes apart; `panel` holds `[steps, COLUMNS, 4]`; `starts` are `−128·Σ_k w[k][c]`.
    unsafe fn tile(x: *const u8, stride: usize, steps: usize, panel: *const i8, starts: &Sums, out: &mut Tile);

    /// `clip(⌊(sums + ⌊t·A / 2^shift⌋) / divisor⌋)` of one row of a tile.
    #[inline(always)]
    unsafe fn finish(sums: &Sums, term: Option<Term>, scale: &Scale) -> TileRow {
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

    /// `round((sums + terms) / 2^shift)` of rows of a tile, in place.
    #[inline(always)]
    unsafe fn round(sums: &mut [Sums], terms: Option<Terms>, shift: u32) {
        for (r, sums) in sums.iter_mut().enumerate() {
            round(sums, terms.map(|terms| terms.row(r)), shift);
        }
    }

    /// `clip(sums + bias)` of as many rows, and GELU of it if asked for.
    #[inline(always)]
    unsafe fn activations(sums: &[Sums], bias: Option<&TileRow>, activate: bool, rows: &mut [TileRow]) {
        for (row, sums) in rows.iter_mut().zip(sums) {
            *row = activation(sums, bias, activate);
        }
    }

    /// `round(127·v / max |v|)` of values that are not below −256 or above 256.
    #[inline(always)]
    unsafe fn rescale(values: &[i16], y: &mut [i8]) {
        let mut largest = 0;
        for value in values {
            largest = largest.max(value.abs());
        }
        let divisor = NarrowDivisor::by(largest as usize);
        for (y, value) in y.iter_mut().zip(values) {
            *y = divisor.divide(STRETCHED as i16 * value) as i8;
        }
    }

    /// A head [turned](rotate) by the rotations of its position: its first half with its second.
    #[inline(always)]
    unsafe fn turn(head: &[i8], cos: &[i32], sin: &[i32], turned: &mut [i16]) {
        let (a, b) = head.split_at(cos.len());
        let (turned_a, turned_b) = turned.split_at_mut(cos.len());
        for j in 0..cos.len() {
            let [a, b] = rotate(i32::from(a[j]), i32::from(b[j]), cos[j], sin[j]);
            (turned_a[j], turned_b[j]) = (a as i16, b as i16);
        }
    }

    /// `y = round(sum / divisor)` of sums whose quotients int8 holds.
    #[inline(always)]
    unsafe fn divide(sums: &[i32], divisor: RoundedDivisor, y: &mut [i8]) {
        for (y, sum) in y.iter_mut().zip(sums) {
            *y = divisor.divide(*sum) as i8;
        }
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
