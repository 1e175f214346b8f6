//! AMX where rows fill its tiles, AVX-512 with VNNI for all else.

use super::loops::IntegerSimd;
use super::vnni::Vnni;
use crate::backend::cpu::integer::tile::{ROWS, Sums, TILES, Tile};
use crate::simd::amx;

/// AMX, next to VNNI.
#[derive(Clone, Copy)]
pub(super) struct Amx;

impl IntegerSimd for Amx {
    #[inline(always)]
    unsafe fn tile(x: *const u8, stride: usize, steps: usize, panel: *const i8, starts: &Sums, out: &mut Tile) {
        // SAFETY: by the trait's contract; a processor with AMX has VNNI.
        unsafe { Vnni::tile(x, stride, steps, panel, starts, out) };
    }

    #[inline(always)]
    unsafe fn begin_tiles() {
        // SAFETY: by the trait's contract.
        unsafe { amx::begin() };
    }

    #[inline(always)]
    unsafe fn end_tiles() {
        // SAFETY: by the trait's contract.
        unsafe { amx::end() };
    }

    #[inline(always)]
    unsafe fn tiles(x: *const u8, stride: usize, steps: usize, panel: *const i8, starts: &Sums, out: &mut [Tile]) {
        const { assert!(TILES * ROWS == amx::ROWS) };
        if out.len() != TILES || steps == 0 || !steps.is_multiple_of(amx::STEPS) {
            // SAFETY: by the trait's contract; a processor with AMX has VNNI.
            return unsafe { Vnni::tiles(x, stride, steps, panel, starts, out) };
        }
        let out = out.as_flattened_mut().as_flattened_mut().as_mut_ptr();
        // SAFETY: by the trait's contract; tiles have begun, rows and steps were checked.
        unsafe { amx::integers(x, stride, steps, panel, starts.as_ptr(), out) };
    }

    #[inline(always)]
    unsafe fn dot(x: *const u8, b: *const i8, len: usize) -> i32 {
        // SAFETY: by the trait's contract; a processor with AMX has VNNI.
        unsafe { Vnni::dot(x, b, len) }
    }

    #[inline(always)]
    unsafe fn exp2_sum(logits: &[i8]) -> u32 {
        // SAFETY: by the trait's contract; a processor with AMX has VNNI.
        unsafe { Vnni::exp2_sum(logits) }
    }
}
