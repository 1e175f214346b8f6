//! AVX2: products of 16-bit halves.

use super::loops::IntegerSimd;
use super::portable::Portable;
use crate::backend::cpu::integer::tile::{COLUMNS, LINE, ROWS, Sums, Tile};
use std::arch::x86_64::*;

/// AVX2.
#[derive(Clone, Copy)]
pub(super) struct Avx2;

impl IntegerSimd for Avx2 {
    #[inline(always)]
    unsafe fn tile(x: *const u8, stride: usize, steps: usize, panel: *const i8, starts: &Sums, out: &mut Tile) {
        /// Lanes of a vector of sums.
        const LANES: usize = 8;
        /// Rows and vectors that fit into registers, with the two halves of the weights.
        const BLOCK: [usize; 2] = [4, 2];
        // SAFETY: by the trait's contract.
        unsafe {
            let low_bytes = _mm256_set1_epi16(0xff);
            for row in (0..ROWS).step_by(BLOCK[0]) {
                for vector in (0..COLUMNS / LANES).step_by(BLOCK[1]) {
                    let first = starts.as_ptr().add(LANES * vector).cast::<__m256i>();
                    let mut sums = [[_mm256_loadu_si256(first), _mm256_loadu_si256(first.add(1))]; 4];
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
        // SAFETY: by the trait's contract; the compiler vectorizes the plain loop for AVX2.
        unsafe { Portable::dot(x, b, len) }
    }

    #[inline(always)]
    unsafe fn exp2_sum(logits: &[i8]) -> u32 {
        // SAFETY: plain Rust.
        unsafe { Portable::exp2_sum(logits) }
    }
}
