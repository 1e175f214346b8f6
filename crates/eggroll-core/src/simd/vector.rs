//! The vector operations that kernels are written in.

/// Vector operations of one instruction set.
///
/// `F` holds `LANES` floats, `U` holds `LANES` unsigned 32-bit integers, `W` holds `LANES / 2` 64-bit lanes of
/// which Philox uses the low 32 bits.
///
/// # Safety
///
/// Every method requires that the processor has the instruction set; `load` and `store` also require `LANES`
/// valid elements behind the pointer (no alignment).
pub(crate) trait Simd: Copy + Send + Sync + 'static {
    /// Floats per vector.
    const LANES: usize;
    /// Rows of the matrix microkernel: as many accumulators as registers allow.
    const ROWS: usize;
    type F: Copy;
    type U: Copy;
    type W: Copy;

    unsafe fn splat(value: f32) -> Self::F;
    unsafe fn load(source: *const f32) -> Self::F;
    unsafe fn store(target: *mut f32, value: Self::F);
    /// The first `count < LANES` elements, the other lanes 0; nothing behind them is read.
    unsafe fn load_first(source: *const f32, count: usize) -> Self::F;
    /// Stores the first `count < LANES` lanes.
    unsafe fn store_first(target: *mut f32, value: Self::F, count: usize);
    unsafe fn add(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn sub(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn div(a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c`, rounded once.
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// `a * b + c`, rounded once where the processor has an instruction for it, else twice: for sums that need not be the same everywhere.
    #[inline(always)]
    unsafe fn mul_add(a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        // SAFETY: by this function's contract.
        unsafe { Self::fma(a, b, c) }
    }
    /// [`mul_add`](Self::mul_add) of one float.
    #[inline(always)]
    fn scalar_mul_add(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
    unsafe fn sqrt(a: Self::F) -> Self::F;
    /// The larger of each lane; `b` if one is NaN.
    unsafe fn max(a: Self::F, b: Self::F) -> Self::F;
    /// Sum of the lanes, by halves, the same order for every instruction set of one width.
    unsafe fn sum(a: Self::F) -> f32;
    unsafe fn to_bits(a: Self::F) -> Self::U;
    unsafe fn from_bits(a: Self::U) -> Self::F;
    /// Signed 32-bit integers to floats.
    unsafe fn from_i32(a: Self::U) -> Self::F;
    /// Lane-wise `if bit 30 of mask { a } else { b }`.
    unsafe fn select_bit30(mask: Self::U, a: Self::F, b: Self::F) -> Self::F;

    unsafe fn usplat(value: u32) -> Self::U;
    unsafe fn uadd(a: Self::U, b: Self::U) -> Self::U;
    unsafe fn usub(a: Self::U, b: Self::U) -> Self::U;
    unsafe fn uand(a: Self::U, b: Self::U) -> Self::U;
    unsafe fn uor(a: Self::U, b: Self::U) -> Self::U;
    unsafe fn uxor(a: Self::U, b: Self::U) -> Self::U;
    unsafe fn shl<const BITS: u32>(a: Self::U) -> Self::U;
    unsafe fn shr<const BITS: u32>(a: Self::U) -> Self::U;
    /// Arithmetic shift right.
    unsafe fn sar<const BITS: u32>(a: Self::U) -> Self::U;

    unsafe fn wsplat(value: u32) -> Self::W;
    /// `first, first + 2, first + 4, …`
    unsafe fn wcount(first: u32) -> Self::W;
    /// 64-bit product of the low halves.
    unsafe fn wmul(a: Self::W, b: Self::W) -> Self::W;
    /// High halves moved to the low halves.
    unsafe fn whigh(a: Self::W) -> Self::W;
    unsafe fn wxor3(a: Self::W, b: Self::W, c: Self::W) -> Self::W;
    /// Low halves of `even` and `odd`, interleaved.
    unsafe fn interleave(even: Self::W, odd: Self::W) -> Self::U;
}
