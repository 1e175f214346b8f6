//! The exponential function on vectors.

use crate::simd::Simd;

/// `exp(x)` for `x ≤ 88`, with a relative error below 3e-7; `exp(−87)` below −87, NaN for NaN.
///
/// `exp(x) = 2ⁿ·exp(r)`, `n = round(x/ln 2)`, `|r| ≤ ln 2 / 2`: Taylor's polynomial of `r`, and `n` added to the exponent.
///
/// # Safety
///
/// The processor must have the instruction set `S`.
#[inline(always)]
pub(super) unsafe fn exp<S: Simd>(x: S::F) -> S::F {
    /// Adding it rounds to integers: `1.5·2²³`.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    /// `1/k!` from the highest order on.
    const COEFFICIENTS: [f32; 7] = [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    // SAFETY: by this function's contract.
    unsafe {
        // Below, the exponent would wrap. The order of arguments keeps NaN.
        let clamped = S::max(S::splat(-87.0), x);
        let rounded = S::fma(clamped, S::splat(std::f32::consts::LOG2_E), S::splat(ROUND));
        let n = S::sub(rounded, S::splat(ROUND));
        let r = S::fma(n, S::splat(-LN_2_HIGH), clamped);
        let r = S::fma(n, S::splat(-LN_2_LOW), r);
        let mut sum = S::splat(COEFFICIENTS[0]);
        for coefficient in &COEFFICIENTS[1..] {
            sum = S::fma(sum, r, S::splat(*coefficient));
        }
        S::from_bits(S::uadd(S::to_bits(sum), S::shl::<23>(S::to_bits(rounded))))
    }
}
