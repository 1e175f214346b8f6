//! The exponential function on vectors.

use crate::simd::Simd;

/// `exp(x)` for `x ≤ 88`, with a relative error below 3e-7; `exp(−87)` below −87, NaN for NaN.
///
/// `exp(x) = 2ⁿ·exp(r)`, `n = round(x/ln 2)`, `|r| ≤ ln 2 / 2`: Taylor's polynomial of `r`, times `2ⁿ`.
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
        let rounded = S::mul_add(clamped, S::splat(std::f32::consts::LOG2_E), S::splat(ROUND));
        let n = S::sub(rounded, S::splat(ROUND));
        let r = S::mul_add(n, S::splat(-LN_2_HIGH), clamped);
        let r = S::mul_add(n, S::splat(-LN_2_LOW), r);
        let mut sum = S::splat(COEFFICIENTS[0]);
        for coefficient in &COEFFICIENTS[1..] {
            sum = S::mul_add(sum, r, S::splat(*coefficient));
        }
        // A factor, not a sum of exponents: the bits of a NaN would become the bits of a number.
        S::mul(sum, S::from_bits(S::uadd(S::shl::<23>(S::to_bits(rounded)), S::usplat(1f32.to_bits()))))
    }
}

/// `1 + exp(−x)`, `x` as if it were −87 below: the logistic function and what is made of it divide by it, and are 0 to all digits there.
///
/// # Safety
///
/// The processor must have the instruction set `S`.
#[inline(always)]
pub(super) unsafe fn one_and_exp_of_minus<S: Simd>(x: S::F) -> S::F {
    // SAFETY: by this function's contract.
    unsafe { S::add(S::splat(1.0), exp::<S>(S::sub(S::splat(0.0), S::max(S::splat(-87.0), x)))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{InstructionSet, Kernel, dispatch_on};

    struct Exp<'a>(&'a mut [f32]);

    impl Kernel for Exp<'_> {
        type Output = ();

        #[inline(always)]
        unsafe fn run<S: Simd>(self) {
            for x in self.0.chunks_exact_mut(S::LANES) {
                // SAFETY: the processor has the instruction set by this function's contract; a chunk is a vector.
                unsafe { S::store(x.as_mut_ptr(), exp::<S>(S::load(x.as_ptr()))) };
            }
        }
    }

    fn exps(set: InstructionSet, x: &[f32]) -> Vec<f32> {
        let mut y = x.to_vec();
        y.resize(x.len().next_multiple_of(16), 0.0);
        // SAFETY: the set is one of those that the processor has.
        unsafe { dispatch_on(set, Exp(&mut y)) };
        y.truncate(x.len());
        y
    }

    #[test]
    fn every_set_is_near_the_function() {
        let x: Vec<f32> = (0..=350_000).map(|i| -87.0 + i as f32 / 2000.0).collect();
        let error = |x: f32, y: f32| f64::from(y) / f64::from(x).exp() - 1.0;
        for set in InstructionSet::available() {
            let y = exps(set, &x);
            let worst = x.iter().zip(&y).map(|(x, y)| error(*x, *y).abs()).fold(0.0, f64::max);
            assert!(worst < 3e-7, "{set:?}: {worst}");
            // A float32 step of the argument is found.
            let other = exps(set, &[f32::from_bits(50f32.to_bits() + 1)])[0];
            assert!(error(50.0, other).abs() > 3e-7, "{set:?}");
        }
    }

    #[test]
    fn extreme_arguments() {
        let nans = [0x7fc0_0000, 0xffc0_0000, 0x7fc0_0001, 0xffc1_2345, 0x7fff_ffff].map(f32::from_bits);
        for set in InstructionSet::available() {
            let y = exps(set, &[0.0, -0.0, -1e4, f32::NEG_INFINITY, f32::MIN]);
            assert_eq!(y[..2], [1.0, 1.0], "{set:?}");
            assert!(y[2..].iter().all(|y| (1e-38..2e-38).contains(y)), "{set:?}: {y:?}");
            let y = exps(set, &nans);
            assert!(y.iter().all(|y| y.is_nan()), "{set:?}: {y:?}");
        }
    }
}
