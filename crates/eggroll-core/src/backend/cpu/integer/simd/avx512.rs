//! Vectors of AVX-512: the parts that loops of [`super::vnni`] are made of.

use crate::backend::cpu::integer::tile::{COLUMNS, Term};
use std::arch::x86_64::*;

/// `2^((logits + 128) / 16)`, by its mantissas.
///
/// # Safety
///
/// The processor must have AVX-512.
#[inline(always)]
pub(super) unsafe fn exp2_of_logits(logits: __m128i, mantissas: __m512i) -> __m512i {
    // SAFETY: by this function's contract.
    unsafe {
        let q = _mm512_add_epi32(_mm512_cvtepi8_epi32(logits), _mm512_set1_epi32(128));
        let mantissa = _mm512_permutexvar_epi32(q, mantissas);
        _mm512_srlv_epi32(mantissa, _mm512_sub_epi32(_mm512_set1_epi32(15), _mm512_srli_epi32::<4>(q)))
    }
}

/// A bit for each of the first `count` of 16 lanes.
#[inline(always)]
pub(super) fn first_lanes(count: usize) -> u16 {
    if count >= 16 { u16::MAX } else { (1 << count) - 1 }
}

/// A bit for each of the first `count` of 32 lanes.
#[inline(always)]
pub(super) fn first_words(count: usize) -> u32 {
    if count >= 32 { u32::MAX } else { (1 << count) - 1 }
}

/// The largest of 32 unsigned values.
///
/// # Safety
///
/// The processor must have AVX-512.
#[inline(always)]
pub(super) unsafe fn largest_word(values: __m512i) -> usize {
    // SAFETY: by this function's contract.
    unsafe {
        let values = _mm256_max_epu16(_mm512_castsi512_si256(values), _mm512_extracti64x4_epi64::<1>(values));
        let values = _mm_max_epu16(_mm256_castsi256_si128(values), _mm256_extracti128_si256::<1>(values));
        // There is an instruction for the smallest.
        let below = _mm_minpos_epu16(_mm_xor_si128(values, _mm_set1_epi16(-1)));
        usize::from(!(_mm_cvtsi128_si32(below) as u16))
    }
}

/// `values / 2^bits` to nearest, of values that are not negative.
///
/// # Safety
///
/// The processor must have AVX-512.
#[inline(always)]
pub(super) unsafe fn shift_each(values: __m512i, bits: __m512i) -> __m512i {
    // SAFETY: by this function's contract.
    unsafe {
        let half = _mm512_srli_epi32::<1>(_mm512_sllv_epi32(_mm512_set1_epi32(1), bits));
        _mm512_srlv_epi32(_mm512_add_epi32(values, half), bits)
    }
}

/// `values / 2^bits` to nearest, halves away from zero.
///
/// # Safety
///
/// The processor must have AVX-512.
#[inline(always)]
pub(super) unsafe fn shift_rounded(values: __m512i, bits: u32) -> __m512i {
    // SAFETY: by this function's contract.
    unsafe {
        let half = _mm512_set1_epi32((1 << bits) >> 1);
        // Below zero a half is rounded down; a shift by nothing has no half.
        let down = _mm512_and_si512(_mm512_srai_epi32::<31>(values), _mm512_set1_epi32(-i32::from(bits > 0)));
        _mm512_sra_epi32(_mm512_add_epi32(_mm512_add_epi32(values, half), down), _mm_cvtsi32_si128(bits as i32))
    }
}

/// The first row of a term's `A`.
///
/// # Safety
///
/// The processor must have AVX-512.
#[inline(always)]
pub(super) unsafe fn first_factor(term: &Term) -> [__m512i; 2] {
    let (_, a, _) = term.parts();
    // SAFETY: by this function's contract; every row of `A` has as many columns as the mask has bits.
    unsafe { widened(_mm256_maskz_loadu_epi8(u32::MAX >> (COLUMNS - term.width()), a)) }
}

/// 32 values of a byte as two vectors.
///
/// # Safety
///
/// The processor must have AVX-512.
#[inline(always)]
pub(super) unsafe fn widened(bytes: __m256i) -> [__m512i; 2] {
    // SAFETY: by this function's contract.
    unsafe {
        [
            _mm512_cvtepi8_epi32(_mm256_castsi256_si128(bytes)),
            _mm512_cvtepi8_epi32(_mm256_extracti128_si256::<1>(bytes)),
        ]
    }
}

/// `s·t·Aᵀ`, by the first row of `A`.
///
/// # Safety
///
/// The processor must have AVX-512.
#[inline(always)]
pub(super) unsafe fn products(term: &Term, first: [__m512i; 2], sign: i32) -> [__m512i; 2] {
    // SAFETY: by this function's contract; every row of `A` has as many columns as the mask has bits.
    unsafe {
        let (t, a, stride) = term.parts();
        let mask = u32::MAX >> (COLUMNS - term.width());
        let of_first = _mm512_set1_epi32(sign * t[0]);
        let mut sums = [_mm512_mullo_epi32(of_first, first[0]), _mm512_mullo_epi32(of_first, first[1])];
        for (k, t) in t.iter().enumerate().skip(1) {
            let a = widened(_mm256_maskz_loadu_epi8(mask, a.add(k * stride)));
            let t = _mm512_set1_epi32(sign * t);
            sums[0] = _mm512_add_epi32(sums[0], _mm512_mullo_epi32(t, a[0]));
            sums[1] = _mm512_add_epi32(sums[1], _mm512_mullo_epi32(t, a[1]));
        }
        sums
    }
}
