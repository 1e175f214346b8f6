//! AVX-512: 16 floats per vector.

use super::vector::Simd;
use std::arch::x86_64::*;

/// AVX-512 F, DQ, VL and BW.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

// SAFETY of every block below: the trait's contract gives the instruction set and valid pointers.
#[expect(clippy::undocumented_unsafe_blocks, reason = "one contract for the whole implementation, stated above")]
impl Simd for Avx512 {
    const LANES: usize = 16;
    const ROWS: usize = 14;
    type F = __m512;
    type U = __m512i;
    type W = __m512i;

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m512 {
        unsafe { _mm512_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(source: *const f32) -> __m512 {
        unsafe { _mm512_loadu_ps(source) }
    }
    #[inline(always)]
    unsafe fn store(target: *mut f32, value: __m512) {
        unsafe { _mm512_storeu_ps(target, value) }
    }
    #[inline(always)]
    unsafe fn load_first(source: *const f32, count: usize) -> __m512 {
        unsafe { _mm512_maskz_loadu_ps((1 << count) - 1, source) }
    }
    #[inline(always)]
    unsafe fn store_first(target: *mut f32, value: __m512, count: usize) {
        unsafe { _mm512_mask_storeu_ps(target, (1 << count) - 1, value) }
    }
    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn div(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_div_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn sqrt(a: __m512) -> __m512 {
        unsafe { _mm512_sqrt_ps(a) }
    }
    #[inline(always)]
    unsafe fn max(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_max_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn sum(a: __m512) -> f32 {
        unsafe {
            let high = _mm512_extractf32x8_ps::<1>(a);
            super::avx2::sum8(_mm256_add_ps(_mm512_castps512_ps256(a), high))
        }
    }
    #[inline(always)]
    unsafe fn to_bits(a: __m512) -> __m512i {
        unsafe { _mm512_castps_si512(a) }
    }
    #[inline(always)]
    unsafe fn from_bits(a: __m512i) -> __m512 {
        unsafe { _mm512_castsi512_ps(a) }
    }
    #[inline(always)]
    unsafe fn from_i32(a: __m512i) -> __m512 {
        unsafe { _mm512_cvtepi32_ps(a) }
    }
    #[inline(always)]
    unsafe fn select_bit30(mask: __m512i, a: __m512, b: __m512) -> __m512 {
        unsafe {
            let mask = _mm512_test_epi32_mask(mask, _mm512_set1_epi32(1 << 30));
            _mm512_mask_blend_ps(mask, b, a)
        }
    }

    #[inline(always)]
    unsafe fn usplat(value: u32) -> __m512i {
        unsafe { _mm512_set1_epi32(value as i32) }
    }
    #[inline(always)]
    unsafe fn uadd(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_add_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn usub(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_sub_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn uand(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_and_si512(a, b) }
    }
    #[inline(always)]
    unsafe fn uor(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_or_si512(a, b) }
    }
    #[inline(always)]
    unsafe fn uxor(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_xor_si512(a, b) }
    }
    #[inline(always)]
    unsafe fn shl<const BITS: u32>(a: __m512i) -> __m512i {
        unsafe { _mm512_slli_epi32::<BITS>(a) }
    }
    #[inline(always)]
    unsafe fn shr<const BITS: u32>(a: __m512i) -> __m512i {
        unsafe { _mm512_srli_epi32::<BITS>(a) }
    }
    #[inline(always)]
    unsafe fn sar<const BITS: u32>(a: __m512i) -> __m512i {
        unsafe { _mm512_srai_epi32::<BITS>(a) }
    }

    #[inline(always)]
    unsafe fn wsplat(value: u32) -> __m512i {
        unsafe { _mm512_set1_epi64(value as i64) }
    }
    #[inline(always)]
    unsafe fn wcount(first: u32) -> __m512i {
        unsafe {
            let steps = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0);
            _mm512_add_epi32(_mm512_set1_epi64(first as i64), steps)
        }
    }
    #[inline(always)]
    unsafe fn wmul(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_mul_epu32(a, b) }
    }
    #[inline(always)]
    unsafe fn whigh(a: __m512i) -> __m512i {
        // A shuffle, not a shift: it runs on the port that the multiplications leave free.
        unsafe { _mm512_shuffle_epi32::<0b11_11_01_01>(a) }
    }
    #[inline(always)]
    unsafe fn wxor3(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
        unsafe { _mm512_ternarylogic_epi64::<0x96>(a, b, c) }
    }
    #[inline(always)]
    unsafe fn interleave(even: __m512i, odd: __m512i) -> __m512i {
        unsafe { _mm512_mask_shuffle_epi32::<0b10_10_00_00>(even, 0xaaaa, odd) }
    }
}
