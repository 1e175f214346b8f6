//! Elementary functions made only of additions, products, quotients and shifts, which IEEE 754 fixes to the bit. Mathematical libraries
//! differ between systems in their last bits. Errors are a few roundings.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, LN_2, SQRT_2};

/// `π/2` minus [`FRAC_PI_2`].
const REST: f64 = 6.123_233_995_736_766e-17;

/// `ln x` for positive finite `x`: `x = 2ᵏ·m` with `1 ≤ m < 2`, and `ln m = 2·artanh z` of `z = (m − 1)/(m + 1) < ⅓` by its series. The first
/// omitted term is below `3⁻⁴¹`.
pub fn ln(x: f64) -> f64 {
    let (mut mantissa, mut twos) = (x, 0.0);
    while mantissa >= 2.0 {
        mantissa /= 2.0;
        twos += 1.0;
    }
    while mantissa < 1.0 {
        mantissa *= 2.0;
        twos -= 1.0;
    }
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..20).rev().fold(0.0, |rest, k| 1.0 / f64::from(2 * k + 1) + z * z * rest);
    twos * LN_2 + 2.0 * z * series
}

/// `2ˣ` where that is a normal number, ∞ from 1024 on, 0 below −1022: `2ᵏ·√2` with `k = ⌊x⌋`, times a Taylor series in `(x − k − ½)·ln 2`. The first
/// omitted term is below 1e-17. Exact for whole `x`.
pub fn exp2(x: f64) -> f64 {
    if x >= 1024.0 {
        return f64::INFINITY;
    }
    if x < -1022.0 {
        return 0.0;
    }
    let whole = x.floor();
    let rest = (x - whole - 0.5) * LN_2;
    let series = (1..=14).rev().fold(1.0, |sum, k| 1.0 + rest / f64::from(k) * sum);
    let mantissa = if x == whole { 1.0 } else { series * SQRT_2 };
    // Exact: the power of two is a normal number.
    mantissa * f64::from_bits(((whole as i64 + 1023) as u64) << 52)
}

/// `[cos x, sin x]` for `0 ≤ x < 2²⁰`: Taylor series of the remainder of `x` by the nearest multiple of `π/2`.
pub fn cos_sin(x: f64) -> [f64; 2] {
    let quarters = (x * FRAC_2_PI).round();
    // The upper 33 bits of π/2, whose products with quarters are exact, and the remainder.
    let high = f64::from_bits(FRAC_PI_2.to_bits() >> 20 << 20);
    let r = x - quarters * high - quarters * (FRAC_PI_2 - high) - quarters * REST;
    let series = |first: i32| {
        (0..9).rev().fold(1.0, |sum, k| 1.0 - r * r / f64::from((2 * k + first) * (2 * k + first + 1)) * sum)
    };
    let (cos, sin) = (series(1), r * series(2));
    match quarters as i64 % 4 {
        0 => [cos, sin],
        1 => [-sin, cos],
        2 => [-cos, -sin],
        _ => [sin, -cos],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_library() {
        let close = |found: f64, expected: f64, scale: f64| (found - expected).abs() <= 4.0 * f64::EPSILON * scale;
        for i in 0..20_000 {
            let x = 1.0 + f64::from(i) * 0.37;
            assert!(close(ln(x), x.ln(), x.ln()) && close(ln(1.0 / x), -x.ln(), x.ln()), "ln {x}: {}", ln(x));
            let y = (f64::from(i) - 10_000.0) * 0.097;
            assert!(close(exp2(y), y.exp2(), y.exp2()), "2^{y}: {:e} {:e}", exp2(y), y.exp2());
            let [cos, sin] = cos_sin(x);
            assert!(close(cos, x.cos(), 1.0) && close(sin, x.sin(), 1.0), "{x}: {cos} {sin}");
        }
        assert_eq!((ln(1.0), cos_sin(0.0), exp2(-1022.0)), (0.0, [1.0, 0.0], f64::MIN_POSITIVE));
        assert!((-1022..1024).all(|k| exp2(f64::from(k)) == 2f64.powi(k)));
        assert!(
            (ln(f64::MAX) / f64::MAX.ln() - 1.0).abs() < 1e-15 && (ln(5e-324) / 5e-324f64.ln() - 1.0).abs() < 1e-15
        );
        assert_eq!((exp2(1024.0), exp2(-1023.0)), (f64::INFINITY, 0.0));
    }

    /// Bits from another program of the same formulas.
    #[test]
    fn bits_stay_as_they_are() {
        let found = [ln(10.0), ln(0.025), exp2(0.3), exp2(-7.75), cos_sin(2047.0)[0], cos_sin(2047.0)[1]];
        assert_eq!(found.map(f64::to_bits), BITS);
    }

    const BITS: [u64; 6] = [
        0x4002_6bb1_bbb5_5515,
        0xc00d_82d3_3b32_720c,
        0x3ff3_b2c4_7bff_8329,
        0x3f73_06fe_0a31_b716,
        0x3fcf_f6ab_69ab_99fa,
        0xbfee_fc78_c817_72e1,
    ];
}
