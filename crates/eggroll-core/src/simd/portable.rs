//! Plain Rust, 16 lanes in an array. Without hardware FMA, `mul_add` is a library call: right, and slow.

use super::vector::Simd;

/// Plain Rust.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

type F = [f32; 16];
type U = [u32; 16];
type W = [u64; 8];

#[inline(always)]
fn map<T: Copy, R, const N: usize>(a: [T; N], f: impl Fn(T) -> R) -> [R; N] {
    a.map(f)
}

#[inline(always)]
fn zip<T: Copy, R, const N: usize>(a: [T; N], b: [T; N], f: impl Fn(T, T) -> R) -> [R; N] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

impl Simd for Portable {
    const LANES: usize = 16;
    const ROWS: usize = 4;
    type F = F;
    type U = U;
    type W = W;

    #[inline(always)]
    unsafe fn splat(value: f32) -> F {
        [value; 16]
    }
    #[inline(always)]
    unsafe fn load(source: *const f32) -> F {
        // SAFETY: by the trait's contract; unaligned by construction.
        unsafe { source.cast::<F>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(target: *mut f32, value: F) {
        // SAFETY: by the trait's contract; unaligned by construction.
        unsafe { target.cast::<F>().write_unaligned(value) }
    }
    #[inline(always)]
    unsafe fn load_first(source: *const f32, count: usize) -> F {
        let mut lanes = [0.0; 16];
        // SAFETY: by the trait's contract, `count` elements are there.
        unsafe { std::ptr::copy_nonoverlapping(source, lanes.as_mut_ptr(), count) };
        lanes
    }
    #[inline(always)]
    unsafe fn store_first(target: *mut f32, value: F, count: usize) {
        // SAFETY: by the trait's contract, `count` elements are there.
        unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), target, count) };
    }
    #[inline(always)]
    unsafe fn add(a: F, b: F) -> F {
        zip(a, b, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn sub(a: F, b: F) -> F {
        zip(a, b, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mul(a: F, b: F) -> F {
        zip(a, b, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn div(a: F, b: F) -> F {
        zip(a, b, |a, b| a / b)
    }
    #[inline(always)]
    unsafe fn fma(a: F, b: F, c: F) -> F {
        std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
    }
    #[inline(always)]
    unsafe fn sqrt(a: F) -> F {
        map(a, f32::sqrt)
    }
    #[inline(always)]
    unsafe fn max(a: F, b: F) -> F {
        zip(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    unsafe fn sum(a: F) -> f32 {
        let eight: [f32; 8] = std::array::from_fn(|i| a[i] + a[i + 8]);
        let four: [f32; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
        (four[0] + four[2]) + (four[1] + four[3])
    }
    #[inline(always)]
    unsafe fn to_bits(a: F) -> U {
        map(a, f32::to_bits)
    }
    #[inline(always)]
    unsafe fn from_bits(a: U) -> F {
        map(a, f32::from_bits)
    }
    #[inline(always)]
    unsafe fn from_i32(a: U) -> F {
        map(a, |a| a as i32 as f32)
    }
    #[inline(always)]
    unsafe fn select_bit30(mask: U, a: F, b: F) -> F {
        std::array::from_fn(|i| if mask[i] & (1 << 30) != 0 { a[i] } else { b[i] })
    }

    #[inline(always)]
    unsafe fn usplat(value: u32) -> U {
        [value; 16]
    }
    #[inline(always)]
    unsafe fn uadd(a: U, b: U) -> U {
        zip(a, b, u32::wrapping_add)
    }
    #[inline(always)]
    unsafe fn usub(a: U, b: U) -> U {
        zip(a, b, u32::wrapping_sub)
    }
    #[inline(always)]
    unsafe fn uand(a: U, b: U) -> U {
        zip(a, b, |a, b| a & b)
    }
    #[inline(always)]
    unsafe fn uor(a: U, b: U) -> U {
        zip(a, b, |a, b| a | b)
    }
    #[inline(always)]
    unsafe fn uxor(a: U, b: U) -> U {
        zip(a, b, |a, b| a ^ b)
    }
    #[inline(always)]
    unsafe fn shl<const BITS: u32>(a: U) -> U {
        map(a, |a| a << BITS)
    }
    #[inline(always)]
    unsafe fn shr<const BITS: u32>(a: U) -> U {
        map(a, |a| a >> BITS)
    }
    #[inline(always)]
    unsafe fn sar<const BITS: u32>(a: U) -> U {
        map(a, |a| (a as i32 >> BITS) as u32)
    }

    #[inline(always)]
    unsafe fn wsplat(value: u32) -> W {
        [value as u64; 8]
    }
    #[inline(always)]
    unsafe fn wcount(first: u32) -> W {
        std::array::from_fn(|i| first.wrapping_add(2 * i as u32) as u64)
    }
    #[inline(always)]
    unsafe fn wmul(a: W, b: W) -> W {
        zip(a, b, |a, b| (a & 0xffff_ffff) * (b & 0xffff_ffff))
    }
    #[inline(always)]
    unsafe fn whigh(a: W) -> W {
        map(a, |a| a >> 32)
    }
    #[inline(always)]
    unsafe fn wxor3(a: W, b: W, c: W) -> W {
        std::array::from_fn(|i| a[i] ^ b[i] ^ c[i])
    }
    #[inline(always)]
    unsafe fn interleave(even: W, odd: W) -> U {
        std::array::from_fn(|i| if i % 2 == 0 { even[i / 2] as u32 } else { odd[i / 2] as u32 })
    }
}
