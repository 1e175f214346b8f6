//! AVX-512 with VNNI: four products and their sum in one instruction.

use super::loops::IntegerSimd;
use crate::backend::cpu::integer::tile::{COLUMNS, LINE, ROWS, Row, Scale, Sums, Term, Tile, finish};
use crate::integer::EXP2_MANTISSA;
use std::arch::x86_64::*;

/// AVX-512 with VNNI.
#[derive(Clone, Copy)]
pub(super) struct Vnni;

impl IntegerSimd for Vnni {
    #[inline(always)]
    unsafe fn finish(sums: &Sums, term: Option<Term>, scale: &Scale) -> Row {
        let Scale::Fast(divisor) = scale else {
            return finish(sums, term, scale);
        };
        // SAFETY: the processor has the instruction set by the trait's contract; the arrays hold two vectors, every row of the term's
        // `A` as many columns as the mask has bits.
        unsafe {
            let mut low = _mm512_loadu_si512(sums.as_ptr().cast());
            let mut high = _mm512_loadu_si512(sums.as_ptr().add(16).cast());
            if let Some(term) = term {
                let (t, a, stride) = term.parts();
                let mask = u32::MAX >> (COLUMNS - term.width());
                let shift = _mm_cvtsi32_si128(term.shift() as i32);
                let (mut products_low, mut products_high) = (_mm512_setzero_si512(), _mm512_setzero_si512());
                for (k, t) in t.iter().enumerate() {
                    let a = _mm256_maskz_loadu_epi8(mask, a.add(k * stride));
                    let t = _mm512_set1_epi32(*t);
                    let a_low = _mm512_cvtepi8_epi32(_mm256_castsi256_si128(a));
                    let a_high = _mm512_cvtepi8_epi32(_mm256_extracti128_si256::<1>(a));
                    products_low = _mm512_add_epi32(products_low, _mm512_mullo_epi32(t, a_low));
                    products_high = _mm512_add_epi32(products_high, _mm512_mullo_epi32(t, a_high));
                }
                low = _mm512_add_epi32(low, _mm512_sra_epi32(products_low, shift));
                high = _mm512_add_epi32(high, _mm512_sra_epi32(products_high, shift));
            }
            let shift = _mm_cvtsi32_si128(divisor.shift as i32);
            let lowest = _mm512_set1_epi32(divisor.lowest);
            let low = _mm512_add_epi32(_mm512_sra_epi32(low, shift), lowest);
            let high = _mm512_add_epi32(_mm512_sra_epi32(high, shift), lowest);
            // Packing clamps at 0, and mixes the quarters of both.
            let u = _mm512_min_epu16(_mm512_packus_epi32(low, high), _mm512_set1_epi16(divisor.span as i16));
            let u = _mm512_add_epi16(u, u);
            let quotient = _mm512_mulhi_epu16(u, _mm512_set1_epi16(divisor.multiplier as i16));
            let quotient = _mm512_srl_epi16(quotient, _mm_cvtsi32_si128(i32::from(divisor.post)));
            let value = _mm512_sub_epi16(quotient, _mm512_set1_epi16(128));
            let value = _mm512_max_epi16(value, _mm512_set1_epi16(-127));
            let order = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
            let mut row = [0; COLUMNS];
            let bytes = _mm512_cvtepi16_epi8(_mm512_permutexvar_epi64(order, value));
            _mm256_storeu_si256(row.as_mut_ptr().cast(), bytes);
            row
        }
    }

    #[inline(always)]
    unsafe fn tile(x: *const u8, stride: usize, steps: usize, panel: *const i8, corrections: &Sums, out: &mut Tile) {
        // SAFETY: by the trait's contract.
        unsafe {
            let first = corrections.as_ptr().cast::<__m512i>();
            let negative = |v| _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_loadu_si512(first.add(v)));
            let mut sums = [[negative(0), negative(1)]; ROWS];
            for step in 0..steps {
                let w = panel.add(step * LINE).cast::<__m512i>();
                let w = [_mm512_loadu_si512(w), _mm512_loadu_si512(w.add(1))];
                for (r, sums) in sums.iter_mut().enumerate() {
                    let x = _mm512_set1_epi32(x.add(r * stride + 4 * step).cast::<i32>().read_unaligned());
                    sums[0] = _mm512_dpbusd_epi32(sums[0], x, w[0]);
                    sums[1] = _mm512_dpbusd_epi32(sums[1], x, w[1]);
                }
            }
            for (out, sums) in out.iter_mut().zip(sums) {
                _mm512_storeu_si512(out.as_mut_ptr().cast(), sums[0]);
                _mm512_storeu_si512(out.as_mut_ptr().add(16).cast(), sums[1]);
            }
        }
    }

    #[inline(always)]
    unsafe fn dot(x: *const u8, b: *const i8, len: usize) -> i32 {
        // SAFETY: by the trait's contract; the last load is masked.
        unsafe {
            let mut sum = _mm512_setzero_si512();
            let mut at = 0;
            while at + 64 <= len {
                let x = _mm512_loadu_si512(x.add(at).cast());
                sum = _mm512_dpbusd_epi32(sum, x, _mm512_loadu_si512(b.add(at).cast()));
                at += 64;
            }
            if at < len {
                let mask = (1u64 << (len - at)) - 1;
                let x = _mm512_maskz_loadu_epi8(mask, x.add(at).cast());
                sum = _mm512_dpbusd_epi32(sum, x, _mm512_maskz_loadu_epi8(mask, b.add(at)));
            }
            _mm512_reduce_add_epi32(sum)
        }
    }

    #[inline(always)]
    unsafe fn exp2_sum(logits: &[i8]) -> u32 {
        // SAFETY: by the trait's contract; the last load is masked, and what it does not load adds nothing.
        unsafe {
            let mantissas = _mm512_loadu_si512(EXP2_MANTISSA.as_ptr().cast());
            let term = |logits: __m128i| {
                let q = _mm512_add_epi32(_mm512_cvtepi8_epi32(logits), _mm512_set1_epi32(128));
                let mantissa = _mm512_permutexvar_epi32(q, mantissas);
                _mm512_srlv_epi32(mantissa, _mm512_sub_epi32(_mm512_set1_epi32(15), _mm512_srli_epi32::<4>(q)))
            };
            let mut sum = _mm512_setzero_si512();
            let mut chunks = logits.chunks_exact(16);
            for logits in &mut chunks {
                sum = _mm512_add_epi32(sum, term(_mm_loadu_si128(logits.as_ptr().cast())));
            }
            let rest = chunks.remainder();
            if !rest.is_empty() {
                let mask = (1u16 << rest.len()) - 1;
                let logits = _mm_maskz_loadu_epi8(mask, rest.as_ptr());
                sum = _mm512_add_epi32(sum, _mm512_maskz_mov_epi32(mask, term(logits)));
            }
            _mm512_reduce_add_epi32(sum) as u32
        }
    }
}
