//! WebAssembly's 128-bit vectors: 4 floats each. There is no fused multiply-add.

use super::vector::Simd;
use std::arch::wasm32::*;

/// WebAssembly's 128-bit vectors.
#[derive(Clone, Copy)]
pub(crate) struct Simd128;

/// `a * b + c` of two floats as doubles, rounded to odd: the sum that becomes the fused one when it is rounded to a float.
#[inline(always)]
fn fma_to_odd(a: v128, b: v128, c: v128) -> v128 {
    let product = f64x2_mul(a, b); // exact: 48 bits
    let sum = f64x2_add(product, c);
    let added = f64x2_sub(sum, product);
    let error = f64x2_add(f64x2_sub(product, f64x2_sub(sum, added)), f64x2_sub(c, added));
    // Neither for NaN, which the error of an infinite sum is.
    let is_inexact = v128_or(f64x2_gt(error, f64x2_splat(0.0)), f64x2_lt(error, f64x2_splat(0.0)));
    let is_even = i64x2_eq(v128_and(sum, i64x2_splat(1)), i64x2_splat(0));
    // +1 if the exact sum is farther from 0, −1 if it is nearer.
    let step = v128_or(i64x2_shr(v128_xor(error, sum), 63), i64x2_splat(1));
    i64x2_add(sum, v128_and(step, v128_and(is_inexact, is_even)))
}

// SAFETY of every block below: the trait's contract gives valid pointers. The instruction set is that of the whole program.
#[expect(clippy::undocumented_unsafe_blocks, reason = "one contract for the whole implementation, stated above")]
impl Simd for Simd128 {
    const LANES: usize = 4;
    const ROWS: usize = 4;
    type F = v128;
    type U = v128;
    type W = v128;

    #[inline(always)]
    unsafe fn splat(value: f32) -> v128 {
        f32x4_splat(value)
    }
    #[inline(always)]
    unsafe fn load(source: *const f32) -> v128 {
        unsafe { v128_load(source.cast()) }
    }
    #[inline(always)]
    unsafe fn store(target: *mut f32, value: v128) {
        unsafe { v128_store(target.cast(), value) }
    }
    #[inline(always)]
    unsafe fn load_first(source: *const f32, count: usize) -> v128 {
        let mut lanes = [0.0; 4];
        unsafe {
            std::ptr::copy_nonoverlapping(source, lanes.as_mut_ptr(), count);
            v128_load(lanes.as_ptr().cast())
        }
    }
    #[inline(always)]
    unsafe fn store_first(target: *mut f32, value: v128, count: usize) {
        let mut lanes = [0.0; 4];
        unsafe {
            v128_store(lanes.as_mut_ptr().cast(), value);
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), target, count);
        }
    }
    #[inline(always)]
    unsafe fn add(a: v128, b: v128) -> v128 {
        f32x4_add(a, b)
    }
    #[inline(always)]
    unsafe fn sub(a: v128, b: v128) -> v128 {
        f32x4_sub(a, b)
    }
    #[inline(always)]
    unsafe fn mul(a: v128, b: v128) -> v128 {
        f32x4_mul(a, b)
    }
    #[inline(always)]
    unsafe fn div(a: v128, b: v128) -> v128 {
        f32x4_div(a, b)
    }
    #[inline(always)]
    unsafe fn fma(a: v128, b: v128, c: v128) -> v128 {
        let [low, high] = [[a, b, c], [a, b, c].map(|x| i32x4_shuffle::<2, 3, 0, 1>(x, x))].map(|lanes| {
            let [a, b, c] = lanes.map(|lane| f64x2_promote_low_f32x4(lane));
            f32x4_demote_f64x2_zero(fma_to_odd(a, b, c))
        });
        i64x2_shuffle::<0, 2>(low, high)
    }
    #[inline(always)]
    unsafe fn mul_add(a: v128, b: v128, c: v128) -> v128 {
        f32x4_add(f32x4_mul(a, b), c)
    }
    #[inline(always)]
    fn scalar_mul_add(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }
    #[inline(always)]
    unsafe fn sqrt(a: v128) -> v128 {
        f32x4_sqrt(a)
    }
    #[inline(always)]
    unsafe fn max(a: v128, b: v128) -> v128 {
        v128_bitselect(a, b, f32x4_gt(a, b))
    }
    #[inline(always)]
    unsafe fn sum(a: v128) -> f32 {
        let two = f32x4_add(a, i32x4_shuffle::<2, 3, 0, 1>(a, a));
        f32x4_extract_lane::<0>(two) + f32x4_extract_lane::<1>(two)
    }
    #[inline(always)]
    unsafe fn to_bits(a: v128) -> v128 {
        a
    }
    #[inline(always)]
    unsafe fn from_bits(a: v128) -> v128 {
        a
    }
    #[inline(always)]
    unsafe fn from_i32(a: v128) -> v128 {
        f32x4_convert_i32x4(a)
    }
    #[inline(always)]
    unsafe fn select_bit30(mask: v128, a: v128, b: v128) -> v128 {
        v128_bitselect(a, b, i32x4_shr(i32x4_shl(mask, 1), 31))
    }

    #[inline(always)]
    unsafe fn usplat(value: u32) -> v128 {
        u32x4_splat(value)
    }
    #[inline(always)]
    unsafe fn uadd(a: v128, b: v128) -> v128 {
        u32x4_add(a, b)
    }
    #[inline(always)]
    unsafe fn usub(a: v128, b: v128) -> v128 {
        u32x4_sub(a, b)
    }
    #[inline(always)]
    unsafe fn uand(a: v128, b: v128) -> v128 {
        v128_and(a, b)
    }
    #[inline(always)]
    unsafe fn uor(a: v128, b: v128) -> v128 {
        v128_or(a, b)
    }
    #[inline(always)]
    unsafe fn uxor(a: v128, b: v128) -> v128 {
        v128_xor(a, b)
    }
    #[inline(always)]
    unsafe fn shl<const BITS: u32>(a: v128) -> v128 {
        u32x4_shl(a, BITS)
    }
    #[inline(always)]
    unsafe fn shr<const BITS: u32>(a: v128) -> v128 {
        u32x4_shr(a, BITS)
    }
    #[inline(always)]
    unsafe fn sar<const BITS: u32>(a: v128) -> v128 {
        i32x4_shr(a, BITS)
    }

    #[inline(always)]
    unsafe fn wsplat(value: u32) -> v128 {
        u64x2_splat(u64::from(value))
    }
    #[inline(always)]
    unsafe fn wcount(first: u32) -> v128 {
        u64x2(u64::from(first), u64::from(first.wrapping_add(2)))
    }
    #[inline(always)]
    unsafe fn wmul(a: v128, b: v128) -> v128 {
        let [a, b] = [a, b].map(|x| i32x4_shuffle::<0, 2, 0, 2>(x, x));
        u64x2_extmul_low_u32x4(a, b)
    }
    #[inline(always)]
    unsafe fn whigh(a: v128) -> v128 {
        u64x2_shr(a, 32)
    }
    #[inline(always)]
    unsafe fn wxor3(a: v128, b: v128, c: v128) -> v128 {
        v128_xor(v128_xor(a, b), c)
    }
    #[inline(always)]
    unsafe fn interleave(even: v128, odd: v128) -> v128 {
        i32x4_shuffle::<0, 4, 2, 6>(even, odd)
    }
}
