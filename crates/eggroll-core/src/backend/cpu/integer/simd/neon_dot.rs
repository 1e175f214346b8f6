//! Advanced SIMD with dot products: four products of signed bytes and their sum in one instruction.

use super::loops::IntegerSimd;
use super::portable::Portable;
use crate::backend::cpu::integer::tile::{COLUMNS, LINE, OFFSET, ROWS, Sums, Tile};
use std::arch::aarch64::*;
use std::arch::asm;

/// Advanced SIMD with dot products.
#[derive(Clone, Copy)]
pub(super) struct NeonDot;

/// `sums + Σ a·b` over the four bytes of every lane. The standard library has no stable function for it.
///
/// # Safety
///
/// The processor must have dot products.
#[inline(always)]
unsafe fn dot_bytes(mut sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: an instruction between registers, which the processor has by this function's contract.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {a:v}.16b, {b:v}.16b",
            sums = inout(vreg) sums,
            a = in(vreg) a,
            b = in(vreg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

impl IntegerSimd for NeonDot {
    #[inline(always)]
    unsafe fn tile(x: *const u8, stride: usize, steps: usize, panel: *const i8, _starts: &Sums, out: &mut Tile) {
        /// Lanes of a vector of sums.
        const LANES: usize = 4;
        /// Rows and vectors that fit into registers.
        const BLOCK: [usize; 2] = [4, 4];
        // SAFETY: by the trait's contract. Rows become signed again, so that there is nothing to correct.
        unsafe {
            let offset = vdupq_n_u8(OFFSET);
            for row in (0..ROWS).step_by(BLOCK[0]) {
                for vector in (0..COLUMNS / LANES).step_by(BLOCK[1]) {
                    let mut sums = [[vdupq_n_s32(0); BLOCK[1]]; BLOCK[0]];
                    for step in 0..steps {
                        let w = panel.add(step * LINE + 4 * LANES * vector);
                        let w: [int8x16_t; BLOCK[1]] = std::array::from_fn(|v| vld1q_s8(w.add(4 * LANES * v)));
                        for (r, sums) in sums.iter_mut().enumerate() {
                            let four = x.add((row + r) * stride + 4 * step).cast::<u32>().read_unaligned();
                            let x = vreinterpretq_u8_u32(vdupq_n_u32(four));
                            let x = vreinterpretq_s8_u8(veorq_u8(x, offset));
                            for (sum, w) in sums.iter_mut().zip(w) {
                                *sum = dot_bytes(*sum, x, w);
                            }
                        }
                    }
                    for (r, sums) in sums.iter().enumerate() {
                        for (v, sum) in sums.iter().enumerate() {
                            vst1q_s32(out[row + r].as_mut_ptr().add(LANES * (vector + v)), *sum);
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn dot(x: *const u8, b: *const i8, len: usize) -> i32 {
        let whole = len / 16 * 16;
        // SAFETY: by the trait's contract; whole vectors lie inside both.
        unsafe {
            let offset = vdupq_n_u8(OFFSET);
            // `x = s + 128`, and 128 is no signed byte: `Σ x·b = Σ s·b − Σ −128·b`.
            let (mut sums, mut offsets) = (vdupq_n_s32(0), vdupq_n_s32(0));
            for at in (0..whole).step_by(16) {
                let b = vld1q_s8(b.add(at));
                sums = dot_bytes(sums, vreinterpretq_s8_u8(veorq_u8(vld1q_u8(x.add(at)), offset)), b);
                offsets = dot_bytes(offsets, vdupq_n_s8(i8::MIN), b);
            }
            let sum = vaddvq_s32(vsubq_s32(sums, offsets));
            sum.wrapping_add(Portable::dot(x.add(whole), b.add(whole), len - whole))
        }
    }

    #[inline(always)]
    unsafe fn exp2_sum(logits: &[i8]) -> u32 {
        // SAFETY: plain Rust.
        unsafe { Portable::exp2_sum(logits) }
    }
}
