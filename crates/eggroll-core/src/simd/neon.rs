//! Advanced SIMD of 64-bit Arm: 4 floats per vector.

use super::vector::Simd;
use std::arch::aarch64::*;

/// Advanced SIMD.
#[derive(Clone, Copy)]
pub(crate) struct Neon;

// SAFETY of every block below: the trait's contract gives the instruction set and valid pointers.
#[expect(clippy::undocumented_unsafe_blocks, reason = "one contract for the whole implementation, stated above")]
impl Simd for Neon {
    const LANES: usize = 4;
    const ROWS: usize = 12;
    type F = float32x4_t;
    type U = uint32x4_t;
    type W = uint64x2_t;

    #[inline(always)]
    unsafe fn splat(value: f32) -> float32x4_t {
        unsafe { vdupq_n_f32(value) }
    }
    #[inline(always)]
    unsafe fn load(source: *const f32) -> float32x4_t {
        unsafe { vld1q_f32(source) }
    }
    #[inline(always)]
    unsafe fn store(target: *mut f32, value: float32x4_t) {
        unsafe { vst1q_f32(target, value) }
    }
    #[inline(always)]
    unsafe fn load_first(source: *const f32, count: usize) -> float32x4_t {
        let mut lanes = [0.0; 4];
        unsafe {
            std::ptr::copy_nonoverlapping(source, lanes.as_mut_ptr(), count);
            vld1q_f32(lanes.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn store_first(target: *mut f32, value: float32x4_t, count: usize) {
        let mut lanes = [0.0; 4];
        unsafe {
            vst1q_f32(lanes.as_mut_ptr(), value);
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), target, count);
        }
    }
    #[inline(always)]
    unsafe fn add(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        unsafe { vaddq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        unsafe { vsubq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        unsafe { vmulq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn div(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        unsafe { vdivq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn fma(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        unsafe { vfmaq_f32(c, a, b) }
    }
    #[inline(always)]
    unsafe fn sqrt(a: float32x4_t) -> float32x4_t {
        unsafe { vsqrtq_f32(a) }
    }
    #[inline(always)]
    unsafe fn max(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        unsafe { vbslq_f32(vcgtq_f32(a, b), a, b) }
    }
    #[inline(always)]
    unsafe fn sum(a: float32x4_t) -> f32 {
        unsafe {
            let two = vadd_f32(vget_low_f32(a), vget_high_f32(a));
            vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
        }
    }
    #[inline(always)]
    unsafe fn to_bits(a: float32x4_t) -> uint32x4_t {
        unsafe { vreinterpretq_u32_f32(a) }
    }
    #[inline(always)]
    unsafe fn from_bits(a: uint32x4_t) -> float32x4_t {
        unsafe { vreinterpretq_f32_u32(a) }
    }
    #[inline(always)]
    unsafe fn from_i32(a: uint32x4_t) -> float32x4_t {
        unsafe { vcvtq_f32_s32(vreinterpretq_s32_u32(a)) }
    }
    #[inline(always)]
    unsafe fn select_bit30(mask: uint32x4_t, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        unsafe { vbslq_f32(vtstq_u32(mask, vdupq_n_u32(1 << 30)), a, b) }
    }

    #[inline(always)]
    unsafe fn usplat(value: u32) -> uint32x4_t {
        unsafe { vdupq_n_u32(value) }
    }
    #[inline(always)]
    unsafe fn uadd(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        unsafe { vaddq_u32(a, b) }
    }
    #[inline(always)]
    unsafe fn usub(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        unsafe { vsubq_u32(a, b) }
    }
    #[inline(always)]
    unsafe fn uand(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        unsafe { vandq_u32(a, b) }
    }
    #[inline(always)]
    unsafe fn uor(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        unsafe { vorrq_u32(a, b) }
    }
    #[inline(always)]
    unsafe fn uxor(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        unsafe { veorq_u32(a, b) }
    }
    #[inline(always)]
    unsafe fn shl<const BITS: u32>(a: uint32x4_t) -> uint32x4_t {
        unsafe { vshlq_u32(a, vdupq_n_s32(BITS as i32)) }
    }
    #[inline(always)]
    unsafe fn shr<const BITS: u32>(a: uint32x4_t) -> uint32x4_t {
        unsafe { vshlq_u32(a, vdupq_n_s32(-(BITS as i32))) }
    }
    #[inline(always)]
    unsafe fn sar<const BITS: u32>(a: uint32x4_t) -> uint32x4_t {
        unsafe {
            let shifted = vshlq_s32(vreinterpretq_s32_u32(a), vdupq_n_s32(-(BITS as i32)));
            vreinterpretq_u32_s32(shifted)
        }
    }

    #[inline(always)]
    unsafe fn wsplat(value: u32) -> uint64x2_t {
        unsafe { vdupq_n_u64(value as u64) }
    }
    #[inline(always)]
    unsafe fn wcount(first: u32) -> uint64x2_t {
        unsafe { vcombine_u64(vcreate_u64(first as u64), vcreate_u64(first.wrapping_add(2) as u64)) }
    }
    #[inline(always)]
    unsafe fn wmul(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t {
        unsafe { vmull_u32(vmovn_u64(a), vmovn_u64(b)) }
    }
    #[inline(always)]
    unsafe fn whigh(a: uint64x2_t) -> uint64x2_t {
        unsafe { vshrq_n_u64::<32>(a) }
    }
    #[inline(always)]
    unsafe fn wxor3(a: uint64x2_t, b: uint64x2_t, c: uint64x2_t) -> uint64x2_t {
        unsafe { veorq_u64(veorq_u64(a, b), c) }
    }
    #[inline(always)]
    unsafe fn interleave(even: uint64x2_t, odd: uint64x2_t) -> uint32x4_t {
        unsafe { vtrn1q_u32(vreinterpretq_u32_u64(even), vreinterpretq_u32_u64(odd)) }
    }
}
