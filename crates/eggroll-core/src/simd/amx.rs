//! AMX: products of tiles, 16 rows of 64 bytes each, in registers that the system has to lend.
//!
//! Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18. Rust has no stable functions for it: this is assembly.

use std::arch::asm;
use std::arch::x86_64::__cpuid_count;
use std::sync::OnceLock;

/// Steps of 4 bytes along the depth of one tile.
pub(crate) const STEPS: usize = 16;
/// Rows of a product: two tiles.
pub(crate) const ROWS: usize = 32;
/// Bytes of a step of 32 columns.
const LINE: usize = 128;

/// Whether the processor has AMX for int8, and the system lends it to this process.
pub(super) fn is_usable() -> bool {
    static USABLE: OnceLock<bool> = OnceLock::new();
    *USABLE.get_or_init(|| {
        const TILE_INT8: u32 = 1 << 24 | 1 << 25;
        __cpuid_count(0, 0).eax >= 7 && __cpuid_count(7, 0).edx & TILE_INT8 == TILE_INT8 && is_permitted()
    })
}

/// Asks Linux for the registers of all threads: `arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)`.
#[cfg(target_os = "linux")]
fn is_permitted() -> bool {
    const ARCH_PRCTL: usize = 158;
    const ARCH_REQ_XCOMP_PERM: usize = 0x1023;
    const XFEATURE_XTILEDATA: usize = 18;
    let result: isize;
    // SAFETY: the call changes no memory; it changes the two registers that every call changes.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => result,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") XFEATURE_XTILEDATA,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    result == 0
}

#[cfg(not(target_os = "linux"))]
fn is_permitted() -> bool {
    false
}

/// Shapes of tiles: palette 1, and bytes of a row and rows of each.
#[repr(C, align(64))]
struct Shapes {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// All eight tiles are whole.
static SHAPES: Shapes = {
    let (mut row_bytes, mut rows) = ([0; 16], [0; 16]);
    let mut tile = 0;
    while tile < 8 {
        (row_bytes[tile], rows[tile]) = (64, 16);
        tile += 1;
    }
    Shapes { palette: 1, start_row: 0, reserved: [0; 14], row_bytes, rows }
};

/// Gives this thread its tiles.
///
/// # Safety
///
/// AMX must be [usable](is_usable). Until [`end`] no other code with tiles may run on this thread.
#[inline(always)]
pub(crate) unsafe fn begin() {
    // SAFETY: by this function's contract; the shapes are those of palette 1.
    unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const SHAPES, options(nostack, readonly)) };
}

/// Gives the tiles back.
///
/// # Safety
///
/// AMX must be [usable](is_usable).
#[inline(always)]
pub(crate) unsafe fn end() {
    // SAFETY: by this function's contract.
    unsafe { asm!("tilerelease", options(nostack, nomem)) };
}

/// `first + Σ x·w` of unsigned bytes with signed ones, in int32 (wrapping), for [`ROWS`] rows and 32 columns.
///
/// # Shapes
///
/// - x: `[ROWS, 4 · steps]`, rows `stride` bytes apart; panel: `[steps, 32, 4]`
/// - first: `[32]`, what all rows begin with; out: `[ROWS, 32]`
///
/// # Safety
///
/// [`begin`] must have come before. `steps` must be a multiple of [`STEPS`], above 0, and the pointers must hold what is named above.
#[inline(always)]
pub(crate) unsafe fn integers(
    x: *const u8,
    stride: usize,
    steps: usize,
    panel: *const i8,
    first: *const i32,
    out: *mut i32,
) {
    // SAFETY: by this function's contract. A row of 0 bytes repeats `first` in all rows of a tile.
    unsafe {
        asm!(
            "tileloadd tmm0, [{first} + {zero}*1]",
            "tileloadd tmm1, [{first} + {zero}*1 + 64]",
            "tileloadd tmm2, [{first} + {zero}*1]",
            "tileloadd tmm3, [{first} + {zero}*1 + 64]",
            "2:",
            "tileloadd tmm6, [{panel} + {line}*1]",
            "tileloadd tmm4, [{x} + {stride}*1]",
            "tdpbusd tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{panel} + {line}*1 + 64]",
            "tdpbusd tmm1, tmm4, tmm7",
            "tileloadd tmm5, [{lower} + {stride}*1]",
            "tdpbusd tmm2, tmm5, tmm6",
            "tdpbusd tmm3, tmm5, tmm7",
            "add {x}, 64",
            "add {lower}, 64",
            "add {panel}, 2048",
            "dec {tiles}",
            "jnz 2b",
            "tilestored [{out} + {line}*1], tmm0",
            "tilestored [{out} + {line}*1 + 64], tmm1",
            "tilestored [{out} + {line}*1 + 2048], tmm2",
            "tilestored [{out} + {line}*1 + 2112], tmm3",
            x = inout(reg) x => _,
            lower = inout(reg) x.add(ROWS / 2 * stride) => _,
            panel = inout(reg) panel => _,
            tiles = inout(reg) steps / STEPS => _,
            stride = in(reg) stride,
            line = in(reg) LINE,
            zero = in(reg) 0usize,
            first = in(reg) first,
            out = in(reg) out,
            out("tmm0") _,
            out("tmm1") _,
            out("tmm2") _,
            out("tmm3") _,
            out("tmm4") _,
            out("tmm5") _,
            out("tmm6") _,
            out("tmm7") _,
            options(nostack),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the manual's loops say, with the smallest and largest bytes, sums that wrap, and rows that lie apart.
    #[test]
    fn equals_a_loop() {
        if !is_usable() {
            return;
        }
        for (steps, gap) in [(16, 0), (16, 36), (48, 0), (80, 4)] {
            let stride = 4 * steps + gap;
            let byte = |at: usize| [0, 255, 1, 254, 128, (at * 37 + at / 7) as u8][at % 6];
            let x: Vec<u8> = (0..ROWS * stride).map(byte).collect();
            let panel: Vec<i8> = (0..steps * LINE).map(|at| byte(at + at / 5) as i8).collect();
            let first: Vec<i32> = (0..LINE / 4).map(|c| i32::MAX - 1_000 * c as i32).collect();
            let mut found = vec![-1; ROWS * LINE / 4];
            // SAFETY: AMX is usable; the vectors have what the function reads and writes.
            unsafe {
                begin();
                integers(x.as_ptr(), stride, steps, panel.as_ptr(), first.as_ptr(), found.as_mut_ptr());
                end();
            }
            for (at, found) in found.into_iter().enumerate() {
                let (row, column) = (at / (LINE / 4), at % (LINE / 4));
                let products = (0..4 * steps).map(|k| {
                    let w = panel[k / 4 * LINE + 4 * column + k % 4];
                    i32::from(x[row * stride + k]) * i32::from(w)
                });
                assert_eq!(found, products.fold(first[column], i32::wrapping_add), "{steps} steps, {row}, {column}");
            }
        }
    }
}
