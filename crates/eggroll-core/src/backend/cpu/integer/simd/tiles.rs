//! Tiles one below the other, which AMX multiplies at once.

use super::loops::IntegerSimd;
#[cfg(target_arch = "x86_64")]
use super::vnni::Vnni;
#[cfg(target_arch = "x86_64")]
use crate::backend::cpu::integer::tile::TILES;
use crate::backend::cpu::integer::tile::{ROWS, Sums, Tile};
#[cfg(target_arch = "x86_64")]
use crate::simd::amx;

/// Products of several tiles of rows with a panel, on one instruction set: every [`IntegerSimd`], and [`Amx`].
///
/// # Safety
///
/// Every method requires that the processor has the instruction set, and pointers that hold what the method reads.
pub(crate) trait IntegerTiles: Copy {
    /// What multiplies where these tiles are not filled.
    type Rest: IntegerTiles;

    /// Whether products of so many rows and steps fill tiles.
    #[inline(always)]
    fn are_filled(_rows: usize, _steps: usize) -> bool {
        true
    }

    /// Before the first [`tiles`](Self::tiles). Until [`end`](Self::end) the thread runs no code of others.
    #[inline(always)]
    unsafe fn begin() {}

    /// After the last [`tiles`](Self::tiles).
    #[inline(always)]
    unsafe fn end() {}

    /// [`IntegerSimd::tile`] of tiles one below the other.
    unsafe fn tiles(x: *const u8, stride: usize, steps: usize, panel: *const i8, starts: &Sums, out: &mut [Tile]);
}

impl<S: IntegerSimd> IntegerTiles for S {
    type Rest = S;

    #[inline(always)]
    unsafe fn tiles(x: *const u8, stride: usize, steps: usize, panel: *const i8, starts: &Sums, out: &mut [Tile]) {
        for (index, out) in out.iter_mut().enumerate() {
            // SAFETY: by the trait's contract.
            unsafe { S::tile(x.add(index * ROWS * stride), stride, steps, panel, starts, out) };
        }
    }
}

/// AMX where rows and depth fill its tiles, AVX-512 with VNNI elsewhere.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Amx;

#[cfg(target_arch = "x86_64")]
impl IntegerTiles for Amx {
    type Rest = Vnni;

    #[inline(always)]
    fn are_filled(rows: usize, steps: usize) -> bool {
        rows > (TILES - 1) * ROWS && steps > 0 && steps.is_multiple_of(amx::STEPS)
    }

    #[inline(always)]
    unsafe fn begin() {
        // SAFETY: by the trait's contract.
        unsafe { amx::begin() };
    }

    #[inline(always)]
    unsafe fn end() {
        // SAFETY: by the trait's contract.
        unsafe { amx::end() };
    }

    #[inline(always)]
    unsafe fn tiles(x: *const u8, stride: usize, steps: usize, panel: *const i8, starts: &Sums, out: &mut [Tile]) {
        const { assert!(TILES * ROWS == amx::ROWS) };
        if !Self::are_filled(out.len() * ROWS, steps) {
            // SAFETY: by the trait's contract; a processor with AMX has VNNI.
            return unsafe { Vnni::tiles(x, stride, steps, panel, starts, out) };
        }
        let out = out.as_flattened_mut().as_flattened_mut().as_mut_ptr();
        // SAFETY: by the trait's contract; tiles have begun, rows and steps were checked.
        unsafe { amx::integers(x, stride, steps, panel, starts.as_ptr(), out) };
    }
}
