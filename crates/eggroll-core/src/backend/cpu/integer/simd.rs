//! The inner loops of integer products, once per instruction set, all exact.

use super::product::{COLUMNS, LINE, ROWS, Row, Scale, Sums, Term, Tile, finish};
use crate::integer::{EXP2_MANTISSA, exp2_sixteenths};
use crate::simd::InstructionSet;
use std::sync::OnceLock;

/// The inner loops of one instruction set.
///
/// # Safety
///
/// Every method requires that the processor has the instruction set, and pointers that hold what the method reads.
pub(super) trait IntegerSimd: Copy {
    /// `out[r][c] = Σ_k x[r][k]·w[k][c] − corrections[c]` (wrapping) for `steps` times four values of `k`: `x` is unsigned, its rows
    /// `stride` bytes apart; `panel` holds `[steps, COLUMNS, 4]`.
    unsafe fn tile(x: *const u8, stride: usize, steps: usize, panel: *const i8, corrections: &Sums, out: &mut Tile);

    /// `clip(⌊(sums + ⌊t·A / 2^shift⌋) / divisor⌋)` of one row of a tile.
    #[inline(always)]
    unsafe fn finish(sums: &Sums, term: Option<Term>, scale: &Scale) -> Row {
        finish(sums, term, scale)
    }

    /// `Σ x·b` over `len` values.
    unsafe fn dot(x: *const u8, b: *const i8, len: usize) -> i32;

    /// `Σ exp2_sixteenths(logit + 128)`
    unsafe fn exp2_sum(logits: &[i8]) -> u32;
}

/// A computation generic over the instruction set.
pub(super) trait IntegerKernel {
    /// # Safety
    ///
    /// The processor must have the instruction set `S`.
    unsafe fn run<S: IntegerSimd>(self);
}

/// Plain Rust.
#[derive(Clone, Copy)]
struct Portable;

/// AVX2: products of 16-bit halves.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Avx2;

/// AVX-512 with VNNI: four products and their sum in one instruction.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Vnni;

/// Runs `kernel` on the best instruction set there is.
#[inline]
pub(super) fn dispatch<K: IntegerKernel>(kernel: K) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512vnni,avx2,fma")]
    unsafe fn vnni<K: IntegerKernel>(kernel: K) {
        // SAFETY: the caller checked the processor.
        unsafe { kernel.run::<Vnni>() }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<K: IntegerKernel>(kernel: K) {
        // SAFETY: the caller checked the processor.
        unsafe { kernel.run::<Avx2>() }
    }
    // SAFETY: `detected` checked the processor, `has_vnni` the rest.
    unsafe {
        match InstructionSet::detected() {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 if has_vnni() => vnni(kernel),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 | InstructionSet::Avx2 => avx2(kernel),
            _ => kernel.run::<Portable>(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_vnni() -> bool {
    static VNNI: OnceLock<bool> = OnceLock::new();
    *VNNI.get_or_init(|| is_x86_feature_detected!("avx512vnni"))
}

impl IntegerSimd for Portable {
    #[inline(always)]
    unsafe fn tile(x: *const u8, stride: usize, steps: usize, panel: *const i8, corrections: &Sums, out: &mut Tile) {
        *out = [corrections.map(|correction| -correction); ROWS];
        for step in 0..steps {
            // SAFETY: by the trait's contract.
            let w = unsafe { &*panel.add(step * LINE).cast::<[[i8; 4]; COLUMNS]>() };
            for (r, out) in out.iter_mut().enumerate() {
                // SAFETY: by the trait's contract.
                let x = unsafe { x.add(r * stride + 4 * step).cast::<[u8; 4]>().read() };
                for (sum, w) in out.iter_mut().zip(w) {
                    *sum = (0..4).fold(*sum, |sum, k| sum.wrapping_add(i32::from(x[k]) * i32::from(w[k])));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn dot(x: *const u8, b: *const i8, len: usize) -> i32 {
        // SAFETY: by the trait's contract.
        let (x, b) = unsafe { (std::slice::from_raw_parts(x, len), std::slice::from_raw_parts(b, len)) };
        x.iter().zip(b).fold(0, |sum, (x, b)| sum.wrapping_add(i32::from(*x) * i32::from(*b)))
    }

    #[inline(always)]
    unsafe fn exp2_sum(logits: &[i8]) -> u32 {
        logits.iter().map(|logit| exp2_sixteenths((i32::from(*logit) + 128) as u32)).sum()
    }
}

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

#[cfg(target_arch = "x86_64")]
impl IntegerSimd for Avx2 {
    #[inline(always)]
    unsafe fn tile(x: *const u8, stride: usize, steps: usize, panel: *const i8, corrections: &Sums, out: &mut Tile) {
        /// Lanes of a vector of sums.
        const LANES: usize = 8;
        /// Rows and vectors that fit into registers, with the two halves of the weights.
        const BLOCK: [usize; 2] = [4, 2];
        // SAFETY: by the trait's contract.
        unsafe {
            let low_bytes = _mm256_set1_epi16(0xff);
            for row in (0..ROWS).step_by(BLOCK[0]) {
                for vector in (0..COLUMNS / LANES).step_by(BLOCK[1]) {
                    let first = corrections.as_ptr().add(LANES * vector).cast::<__m256i>();
                    let zero = _mm256_setzero_si256();
                    let start = [_mm256_loadu_si256(first), _mm256_loadu_si256(first.add(1))];
                    let mut sums = [[_mm256_sub_epi32(zero, start[0]), _mm256_sub_epi32(zero, start[1])]; 4];
                    for step in 0..steps {
                        let w = panel.add(step * LINE + 4 * LANES * vector).cast::<__m256i>();
                        let w = [_mm256_loadu_si256(w), _mm256_loadu_si256(w.add(1))];
                        let even = w.map(|w| _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(w)));
                        let odd = w.map(|w| _mm256_srai_epi16::<8>(w));
                        for (r, sums) in sums.iter_mut().enumerate() {
                            let four = x.add((row + r) * stride + 4 * step).cast::<i32>().read_unaligned();
                            let x = _mm256_set1_epi32(four);
                            let (x_even, x_odd) = (_mm256_and_si256(x, low_bytes), _mm256_srli_epi16::<8>(x));
                            for (v, sum) in sums.iter_mut().enumerate() {
                                let even = _mm256_madd_epi16(x_even, even[v]);
                                let odd = _mm256_madd_epi16(x_odd, odd[v]);
                                *sum = _mm256_add_epi32(*sum, _mm256_add_epi32(even, odd));
                            }
                        }
                    }
                    for (r, sums) in sums.iter().enumerate() {
                        for (v, sum) in sums.iter().enumerate() {
                            let to = out[row + r].as_mut_ptr().add(LANES * (vector + v));
                            _mm256_storeu_si256(to.cast(), *sum);
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn dot(x: *const u8, b: *const i8, len: usize) -> i32 {
        // SAFETY: by the trait's contract; the compiler vectorises the plain loop for AVX2.
        unsafe { Portable::dot(x, b, len) }
    }

    #[inline(always)]
    unsafe fn exp2_sum(logits: &[i8]) -> u32 {
        // SAFETY: plain Rust.
        unsafe { Portable::exp2_sum(logits) }
    }
}

#[cfg(target_arch = "x86_64")]
impl IntegerSimd for Vnni {
    #[inline(always)]
    unsafe fn finish(sums: &Sums, term: Option<Term>, scale: &Scale) -> Row {
        let Scale::Fast(divisor) = scale else {
            return finish(sums, term, scale);
        };
        // SAFETY: the arrays hold two vectors; loads of short rows are masked.
        unsafe {
            let mut low = _mm512_loadu_si512(sums.as_ptr().cast());
            let mut high = _mm512_loadu_si512(sums.as_ptr().add(16).cast());
            if let Some(Term { t, a, stride, width, shift }) = term {
                let mask = u32::MAX >> (COLUMNS - width);
                let shift = _mm_cvtsi32_si128(shift as i32);
                let (mut products_low, mut products_high) = (_mm512_setzero_si512(), _mm512_setzero_si512());
                for (k, t) in t.iter().enumerate() {
                    let a = _mm256_maskz_loadu_epi8(mask, a.as_ptr().add(k * stride));
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
