//! AVX2 with FMA: 8 floats per vector.

use super::vector::Simd;
use std::arch::x86_64::*;

/// AVX2 and FMA.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

/// Sum of 8 lanes by halves.
///
/// # Safety
///
/// The processor must have AVX.
#[inline(always)]
pub(super) unsafe fn sum8(a: __m256) -> f32 {
    // SAFETY: by this function's contract.
    unsafe {
        let four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
    }
}

/// All bits set in the first `count` lanes.
///
/// # Safety
///
/// The processor must have AVX2.
#[inline(always)]
unsafe fn first_lanes(count: usize) -> __m256i {
    // SAFETY: by this function's contract.
    unsafe {
        let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), lanes)
    }
}

// SAFETY of every block below: the trait's contract gives the instruction set and valid pointers.
#[expect(clippy::undocumented_unsafe_blocks, reason = "one contract for the whole implementation, stated above")]
impl Simd for Avx2 {
    const LANES: usize = 8;
    const ROWS: usize = 6;
    type F = __m256;
    type U = __m256i;
    type W = __m256i;

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m256 {
        unsafe { _mm256_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(source: *const f32) -> __m256 {
        unsafe { _mm256_loadu_ps(source) }
    }
    #[inline(always)]
    unsafe fn store(target: *mut f32, value: __m256) {
        unsafe { _mm256_storeu_ps(target, value) }
    }
    #[inline(always)]
    unsafe fn load_first(source: *const f32, count: usize) -> __m256 {
        unsafe { _mm256_maskload_ps(source, first_lanes(count)) }
    }
    #[inline(always)]
    unsafe fn store_first(target: *mut f32, value: __m256, count: usize) {
        unsafe { _mm256_maskstore_ps(target, first_lanes(count), value) }
    }
    #[inline(always)]
    unsafe fn add(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_add_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_sub_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_mul_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn div(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_div_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn fma(a: __m256, b: __m256, c: __m256) -> __m256 {
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn sqrt(a: __m256) -> __m256 {
        unsafe { _mm256_sqrt_ps(a) }
    }
    #[inline(always)]
    unsafe fn max(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_max_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn sum(a: __m256) -> f32 {
        unsafe { sum8(a) }
    }
    #[inline(always)]
    unsafe fn to_bits(a: __m256) -> __m256i {
        unsafe { _mm256_castps_si256(a) }
    }
    #[inline(always)]
    unsafe fn from_bits(a: __m256i) -> __m256 {
        unsafe { _mm256_castsi256_ps(a) }
    }
    #[inline(always)]
    unsafe fn from_i32(a: __m256i) -> __m256 {
        unsafe { _mm256_cvtepi32_ps(a) }
    }
    #[inline(always)]
    unsafe fn select_bit30(mask: __m256i, a: __m256, b: __m256) -> __m256 {
        // The blend looks at each lane's sign bit: move bit 30 there.
        unsafe { _mm256_blendv_ps(b, a, _mm256_castsi256_ps(_mm256_slli_epi32::<1>(mask))) }
    }

    #[inline(always)]
    unsafe fn usplat(value: u32) -> __m256i {
        unsafe { _mm256_set1_epi32(value as i32) }
    }
    #[inline(always)]
    unsafe fn uadd(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_add_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn usub(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_sub_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn uand(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_and_si256(a, b) }
    }
    #[inline(always)]
    unsafe fn uor(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_or_si256(a, b) }
    }
    #[inline(always)]
    unsafe fn uxor(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_xor_si256(a, b) }
    }
    #[inline(always)]
    unsafe fn shl<const BITS: u32>(a: __m256i) -> __m256i {
        unsafe { _mm256_sll_epi32(a, _mm_cvtsi32_si128(BITS as i32)) }
    }
    #[inline(always)]
    unsafe fn shr<const BITS: u32>(a: __m256i) -> __m256i {
        unsafe { _mm256_srl_epi32(a, _mm_cvtsi32_si128(BITS as i32)) }
    }
    #[inline(always)]
    unsafe fn sar<const BITS: u32>(a: __m256i) -> __m256i {
        unsafe { _mm256_sra_epi32(a, _mm_cvtsi32_si128(BITS as i32)) }
    }

    #[inline(always)]
    unsafe fn wsplat(value: u32) -> __m256i {
        unsafe { _mm256_set1_epi64x(value as i64) }
    }
    #[inline(always)]
    unsafe fn wcount(first: u32) -> __m256i {
        unsafe {
            let steps = _mm256_set_epi64x(6, 4, 2, 0);
            _mm256_add_epi32(_mm256_set1_epi64x(first as i64), steps)
        }
    }
    #[inline(always)]
    unsafe fn wmul(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_mul_epu32(a, b) }
    }
    #[inline(always)]
    unsafe fn whigh(a: __m256i) -> __m256i {
        unsafe { _mm256_shuffle_epi32::<0b11_11_01_01>(a) }
    }
    #[inline(always)]
    unsafe fn wxor3(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
        unsafe { _mm256_xor_si256(_mm256_xor_si256(a, b), c) }
    }
    #[inline(always)]
    unsafe fn interleave(even: __m256i, odd: __m256i) -> __m256i {
        unsafe { _mm256_blend_epi32::<0b1010_1010>(even, _mm256_shuffle_epi32::<0b10_10_00_00>(odd)) }
    }
}
