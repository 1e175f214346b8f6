//! AVX-512 with VNNI: four products and their sum in one instruction.

use super::avx512::{
    exp2_of_logits, first_factor, first_lanes, first_words, largest_word, products, shift_each, shift_rounded, widened,
};
use super::loops::IntegerSimd;
use crate::arithmetic::integer::transformer::{
    EXP2_DIGITS, GELU_DOWN, GELU_UP, ROTARY_BITS, STRETCHED, WEIGHT_END, WEIGHTS,
};
use crate::arithmetic::integer::{EXP2_MANTISSA, NarrowDivisor, RoundedDivisor};
use crate::backend::cpu::integer::tile::{COLUMNS, LINE, ROWS, Scale, Sums, Term, Terms, Tile, TileRow, finish};
use std::arch::x86_64::*;

/// AVX-512 with VNNI.
#[derive(Clone, Copy)]
pub(super) struct Vnni;

impl IntegerSimd for Vnni {
    #[inline(always)]
    unsafe fn finish(sums: &Sums, term: Option<Term>, scale: &Scale) -> TileRow {
        let Scale::Fast(divisor) = scale else {
            return finish(sums, term, scale);
        };
        // SAFETY: the processor has the instruction set by the trait's contract; the arrays hold two vectors, every row of the term's
        // `A` as many columns as the mask has bits.
        unsafe {
            let mut low = _mm512_loadu_si512(sums.as_ptr().cast());
            let mut high = _mm512_loadu_si512(sums.as_ptr().add(16).cast());
            if let Some(term) = term {
                let shift = _mm_cvtsi32_si128(term.shift() as i32);
                let [products_low, products_high] = products(&term, first_factor(&term), 1);
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
    unsafe fn tile(x: *const u8, stride: usize, steps: usize, panel: *const i8, starts: &Sums, out: &mut Tile) {
        // SAFETY: by the trait's contract.
        unsafe {
            let first = starts.as_ptr().cast::<__m512i>();
            let mut sums = [[_mm512_loadu_si512(first), _mm512_loadu_si512(first.add(1))]; ROWS];
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
            let mut sum = _mm512_setzero_si512();
            let mut at = 0;
            while at < logits.len() {
                let mask = first_lanes(logits.len() - at);
                let term = exp2_of_logits(_mm_maskz_loadu_epi8(mask, logits.as_ptr().add(at)), mantissas);
                sum = _mm512_mask_add_epi32(sum, mask, sum, term);
                at += 16;
            }
            _mm512_reduce_add_epi32(sum) as u32
        }
    }

    #[inline(always)]
    unsafe fn round(sums: &mut [Sums], terms: Option<Terms>, shift: u32) {
        // SAFETY: the processor has the instruction set by the trait's contract; sums are two vectors.
        unsafe {
            // `A` stays in registers: stores could change it, for all that the compiler knows.
            let first = match terms {
                Some(terms) => first_factor(&terms.row(0).0),
                None => [_mm512_setzero_si512(); 2],
            };
            for (r, sums) in sums.iter_mut().enumerate() {
                let at = sums.as_mut_ptr().cast::<__m512i>();
                let mut sums = [_mm512_loadu_si512(at), _mm512_loadu_si512(at.add(1))];
                if let Some(terms) = terms {
                    let (term, sign) = terms.row(r);
                    // Rounding commutes with the sign.
                    let products = products(&term, first, sign);
                    sums[0] = _mm512_add_epi32(sums[0], shift_rounded(products[0], term.shift()));
                    sums[1] = _mm512_add_epi32(sums[1], shift_rounded(products[1], term.shift()));
                }
                _mm512_storeu_si512(at, shift_rounded(sums[0], shift));
                _mm512_storeu_si512(at.add(1), shift_rounded(sums[1], shift));
            }
        }
    }

    #[inline(always)]
    unsafe fn activations(sums: &[Sums], bias: Option<&TileRow>, activate: bool, rows: &mut [TileRow]) {
        let zeros = [0; COLUMNS];
        let bias = bias.unwrap_or(&zeros);
        // SAFETY: the processor has the instruction set by the trait's contract; sums are two vectors, rows one of bytes.
        unsafe {
            let bias = _mm256_loadu_si256(bias.as_ptr().cast());
            let bias = widened(bias);
            for (row, sums) in rows.iter_mut().zip(sums) {
                let at = sums.as_ptr().cast::<__m512i>();
                let low = _mm512_cvtsepi32_epi8(_mm512_add_epi32(_mm512_loadu_si512(at), bias[0]));
                let high = _mm512_cvtsepi32_epi8(_mm512_add_epi32(_mm512_loadu_si512(at.add(1)), bias[1]));
                let mut bytes = _mm256_max_epi8(_mm256_set_m128i(high, low), _mm256_set1_epi8(-127));
                if activate {
                    let magnitude = _mm256_abs_epi8(bytes);
                    bytes = _mm256_max_epi8(bytes, _mm256_setzero_si256());
                    let one = _mm256_set1_epi8(1);
                    for k in 0..GELU_DOWN.len() {
                        let down = _mm256_cmpge_epu8_mask(magnitude, _mm256_set1_epi8(GELU_DOWN[k] as i8));
                        let up = _mm256_cmpge_epu8_mask(magnitude, _mm256_set1_epi8(GELU_UP[k] as i8));
                        bytes = _mm256_mask_sub_epi8(bytes, down, bytes, one);
                        bytes = _mm256_mask_add_epi8(bytes, up, bytes, one);
                    }
                }
                _mm256_storeu_si256(row.as_mut_ptr().cast(), bytes);
            }
        }
    }

    #[inline(always)]
    unsafe fn rescale(values: &[i16], y: &mut [i8]) {
        assert!(values.len() == y.len());
        // SAFETY: the processor has the instruction set by the trait's contract; loads and stores are masked to the values.
        unsafe {
            let mut largest = _mm512_setzero_si512();
            for at in (0..values.len()).step_by(32) {
                let value = _mm512_maskz_loadu_epi16(first_words(values.len() - at), values.as_ptr().add(at));
                largest = _mm512_max_epu16(largest, _mm512_abs_epi16(value));
            }
            let divisor = NarrowDivisor::by(largest_word(largest));
            let half = _mm512_set1_epi16(divisor.half as i16);
            let multiplier = _mm512_set1_epi16(divisor.multiplier as i16);
            let post = _mm_cvtsi32_si128(i32::from(divisor.post));
            for at in (0..values.len()).step_by(32) {
                let mask = first_words(values.len() - at);
                let value = _mm512_maskz_loadu_epi16(mask, values.as_ptr().add(at));
                let magnitude = _mm512_mullo_epi16(_mm512_abs_epi16(value), _mm512_set1_epi16(STRETCHED as i16));
                let n = _mm512_add_epi16(magnitude, half);
                let quotient = _mm512_srl_epi16(_mm512_mulhi_epu16(_mm512_add_epi16(n, n), multiplier), post);
                let negative = _mm512_movepi16_mask(value);
                let quotient = _mm512_mask_sub_epi16(quotient, negative, _mm512_setzero_si512(), quotient);
                _mm512_mask_cvtepi16_storeu_epi8(y.as_mut_ptr().add(at).cast(), mask, quotient);
            }
        }
    }

    #[inline(always)]
    unsafe fn turn(head: &[i8], cos: &[i32], sin: &[i32], turned: &mut [i16]) {
        let half = cos.len();
        assert!(sin.len() == half && head.len() == 2 * half && turned.len() == 2 * half);
        // SAFETY: the processor has the instruction set by the trait's contract; loads and stores are masked to the halves.
        unsafe {
            for at in (0..half).step_by(16) {
                let mask = first_lanes(half - at);
                let a = _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(mask, head.as_ptr().add(at)));
                let b = _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(mask, head.as_ptr().add(half + at)));
                let cos = _mm512_maskz_loadu_epi32(mask, cos.as_ptr().add(at));
                let sin = _mm512_maskz_loadu_epi32(mask, sin.as_ptr().add(at));
                let turned_a = _mm512_sub_epi32(_mm512_mullo_epi32(a, cos), _mm512_mullo_epi32(b, sin));
                let turned_b = _mm512_add_epi32(_mm512_mullo_epi32(b, cos), _mm512_mullo_epi32(a, sin));
                let to = turned.as_mut_ptr().add(at);
                _mm512_mask_cvtepi32_storeu_epi16(to.cast(), mask, shift_rounded(turned_a, ROTARY_BITS));
                _mm512_mask_cvtepi32_storeu_epi16(to.add(half).cast(), mask, shift_rounded(turned_b, ROTARY_BITS));
            }
        }
    }

    #[inline(always)]
    unsafe fn divide(sums: &[i32], divisor: RoundedDivisor, y: &mut [i8]) {
        assert!(sums.len() == y.len());
        // SAFETY: the processor has the instruction set by the trait's contract; loads and stores are masked to the sums.
        unsafe {
            let half = _mm512_set1_epi32(divisor.half as i32);
            let multiplier = _mm512_set1_epi64(i64::from(divisor.multiplier));
            let shift = _mm_cvtsi32_si128(divisor.shift as i32);
            for at in (0..sums.len()).step_by(16) {
                let mask = first_lanes(sums.len() - at);
                let sum = _mm512_maskz_loadu_epi32(mask, sums.as_ptr().add(at));
                let n = _mm512_add_epi32(_mm512_abs_epi32(sum), half);
                // Products of even lanes and of odd ones have 64 bits.
                let even = _mm512_srl_epi64(_mm512_mul_epu32(n, multiplier), shift);
                let odd = _mm512_srl_epi64(_mm512_mul_epu32(_mm512_srli_epi64::<32>(n), multiplier), shift);
                let quotient = _mm512_or_si512(even, _mm512_slli_epi64::<32>(odd));
                let negative = _mm512_movepi32_mask(sum);
                let quotient = _mm512_mask_sub_epi32(quotient, negative, _mm512_setzero_si512(), quotient);
                _mm512_mask_cvtepi32_storeu_epi8(y.as_mut_ptr().add(at).cast(), mask, quotient);
            }
        }
    }

    #[inline(always)]
    unsafe fn attention_weights(scores: &[i32], visible: usize, shift: u32, weights: &mut [i16]) -> i32 {
        assert!(visible <= scores.len() && scores.len() == weights.len() && scores.len().is_multiple_of(16));
        // SAFETY: the processor has the instruction set by the trait's contract; there are whole vectors of scores and weights.
        unsafe {
            let mut largest = _mm512_set1_epi32(i32::MIN);
            for at in (0..visible).step_by(16) {
                let score = _mm512_loadu_si512(scores.as_ptr().add(at).cast());
                largest = _mm512_mask_max_epi32(largest, first_lanes(visible - at), largest, score);
            }
            let largest = _mm512_set1_epi32(_mm512_reduce_max_epi32(largest));
            let table = _mm512_loadu_si512(WEIGHTS.as_ptr().cast());
            let shift = _mm_cvtsi32_si128(shift as i32);
            let half = _mm512_srl_epi32(_mm512_sll_epi32(_mm512_set1_epi32(1), shift), _mm_cvtsi32_si128(1));
            let mut total = _mm512_setzero_si512();
            for at in (0..scores.len()).step_by(16) {
                let score = _mm512_loadu_si512(scores.as_ptr().add(at).cast());
                // Not negative: a half is rounded up.
                let below = _mm512_srl_epi32(_mm512_add_epi32(_mm512_sub_epi32(largest, score), half), shift);
                let kept = _mm512_mask_cmplt_epi32_mask(
                    first_lanes(visible.saturating_sub(at)),
                    below,
                    _mm512_set1_epi32(WEIGHT_END),
                );
                let weight = shift_each(_mm512_permutexvar_epi32(below, table), _mm512_srli_epi32::<4>(below));
                let weight = _mm512_maskz_mov_epi32(kept, weight);
                total = _mm512_add_epi32(total, weight);
                _mm256_storeu_si256(weights.as_mut_ptr().add(at).cast(), _mm512_cvtepi32_epi16(weight));
            }
            _mm512_reduce_add_epi32(total)
        }
    }

    #[inline(always)]
    unsafe fn weighted(weights: &[i16], values: &[i16], sums: &mut [i32]) {
        let (columns, pairs) = (sums.len(), weights.len() / 2);
        assert!(values.len() >= 2 * columns * pairs);
        // SAFETY: the processor has the instruction set by the trait's contract; loads and stores are masked to the columns, and there are as
        // many values as read.
        unsafe {
            for first in (0..columns).step_by(16) {
                let mask = first_lanes(columns - first);
                let mut sum = [_mm512_setzero_si512(); 2];
                for pair in 0..pairs {
                    let weight = _mm512_set1_epi32(weights.as_ptr().add(2 * pair).cast::<i32>().read_unaligned());
                    let value = values.as_ptr().add(2 * (pair * columns + first)).cast();
                    let sum = &mut sum[pair % 2];
                    *sum = _mm512_dpwssd_epi32(*sum, weight, _mm512_maskz_loadu_epi32(mask, value));
                }
                let sum = _mm512_add_epi32(sum[0], sum[1]);
                _mm512_mask_storeu_epi32(sums.as_mut_ptr().add(first), mask, sum);
            }
        }
    }

    #[inline(always)]
    unsafe fn exp2_256ths_sum(logits: &[i32], largest: i32) -> i32 {
        // SAFETY: the processor has the instruction set by the trait's contract; the last load is masked, and what it does not load adds nothing.
        unsafe {
            let high = _mm512_loadu_si512(EXP2_DIGITS[0].as_ptr().cast());
            let low = _mm512_loadu_si512(EXP2_DIGITS[1].as_ptr().cast());
            let largest = _mm512_set1_epi32(largest);
            let mut sum = _mm512_setzero_si512();
            let mut at = 0;
            while at < logits.len() {
                let mask = first_lanes(logits.len() - at);
                let below = _mm512_sub_epi32(largest, _mm512_maskz_loadu_epi32(mask, logits.as_ptr().add(at)));
                let digit = _mm512_permutexvar_epi32(_mm512_srli_epi32::<4>(below), high);
                let product = _mm512_mullo_epi32(digit, _mm512_permutexvar_epi32(below, low));
                let bits = _mm512_add_epi32(_mm512_srli_epi32::<8>(below), _mm512_set1_epi32(14));
                let kept = _mm512_mask_cmplt_epi32_mask(mask, bits, _mm512_set1_epi32(31));
                sum = _mm512_mask_add_epi32(sum, kept, sum, shift_each(product, bits));
                at += 16;
            }
            _mm512_reduce_add_epi32(sum)
        }
    }
}
