//! The inner loops of integer products.

use crate::backend::cpu::integer::tile::{Row, Scale, Sums, Term, Tile, finish};
use crate::integer::transformer::{EXP2_DIGITS, exp2_256ths};

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
}
