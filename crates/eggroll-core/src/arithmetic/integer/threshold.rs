//! The threshold schedule of votes, and the resulting limit.

use super::{FIXED_POINT, Votes};
use crate::arithmetic::elementary::{exp2, ln};

/// The quantile function of the standard normal distribution, Φ⁻¹, to 16 digits (Wichura, "The Percentage Points of the
/// Normal Distribution", algorithm AS 241, Applied Statistics 37, 1988). ±∞ at 0 and 1; NaN outside.
///
/// # Example
///
/// ```
/// assert!((eggroll_core::integer::inverse_normal(0.975) - 1.959963984540054).abs() < 1e-15);
/// ```
pub fn inverse_normal(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180625 - q * q;
        return q * rational(r, &CENTRE_NUMERATOR, &CENTRE_DENOMINATOR);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail <= 0.0 {
        return if tail < 0.0 || tail.is_nan() { f64::NAN } else { f64::INFINITY.copysign(q) };
    }
    let r = (-ln(tail)).sqrt();
    let value = if r <= 5.0 {
        rational(r - 1.6, &MIDDLE_NUMERATOR, &MIDDLE_DENOMINATOR)
    } else {
        rational(r - 5.0, &TAIL_NUMERATOR, &TAIL_DENOMINATOR)
    };
    value.copysign(q)
}

fn rational(r: f64, numerator: &[f64; 8], denominator: &[f64; 8]) -> f64 {
    let horner = |c: &[f64; 8]| c.iter().rev().fold(0.0, |sum, c| sum * r + c);
    horner(numerator) / horner(denominator)
}

const CENTRE_NUMERATOR: [f64; 8] = [
    3.387_132_872_796_366_5,
    133.141_667_891_784_38,
    1_971.590_950_306_551_3,
    13_731.693_765_509_46,
    45_921.953_931_549_87,
    67_265.770_927_008_7,
    33_430.575_583_588_13,
    2_509.080_928_730_122_7,
];
const CENTRE_DENOMINATOR: [f64; 8] = [
    1.0,
    42.313_330_701_600_91,
    687.187_007_492_057_9,
    5_394.196_021_424_751,
    21_213.794_301_586_597,
    39_307.895_800_092_71,
    28_729.085_735_721_943,
    5_226.495_278_852_545,
];
const MIDDLE_NUMERATOR: [f64; 8] = [
    1.423_437_110_749_683_5,
    4.630_337_846_156_546,
    5.769_497_221_460_691,
    3.647_848_324_763_204_5,
    1.270_458_252_452_368_4,
    0.241_780_725_177_450_6,
    0.022_723_844_989_269_184,
    7.745_450_142_783_414e-4,
];
const MIDDLE_DENOMINATOR: [f64; 8] = [
    1.0,
    2.053_191_626_637_759,
    1.676_384_830_183_803_8,
    0.689_767_334_985_1,
    0.148_103_976_427_480_08,
    0.015_198_666_563_616_457,
    5.475_938_084_995_345e-4,
    1.050_750_071_644_416_9e-9,
];
const TAIL_NUMERATOR: [f64; 8] = [
    6.657_904_643_501_103,
    5.463_784_911_164_114,
    1.784_826_539_917_291_3,
    0.296_560_571_828_504_87,
    0.026_532_189_526_576_124,
    0.001_242_660_947_388_078_4,
    2.711_555_568_743_487_6e-5,
    2.010_334_399_292_288_1e-7,
];
const TAIL_DENOMINATOR: [f64; 8] = [
    1.0,
    0.599_832_206_555_888,
    0.136_929_880_922_735_8,
    0.014_875_361_290_850_615,
    7.868_691_311_456_133e-4,
    1.846_318_317_510_054_8e-5,
    1.421_511_758_316_446e-7,
    2.044_263_103_389_939_8e-15,
];

/// The update threshold of generation `generation` in sixteenths of a standard deviation:
///
/// `trunc(16·Φ⁻¹(1 − α_t/2))`, `α_t = 1/((2^alpha − 1)·t/decay + 1)` if `alpha > 1`, else `alpha`.
///
/// # Example
///
/// ```
/// use eggroll_core::integer::threshold;
///
/// assert_eq!(threshold(4.0, 1000, 0), 0); // all weights move at first
/// assert_eq!(threshold(4.0, 1000, 1000), 29);
/// ```
pub fn threshold(alpha: f64, decay: u64, generation: u64) -> u32 {
    let share = if alpha > 1.0 {
        let progress = generation as f64 / decay as f64;
        1.0 / ((exp2(alpha) - 1.0) * progress + 1.0)
    } else {
        alpha
    };
    (16.0 * inverse_normal(1.0 - share / 2.0)) as u32
}

/// The smallest vote that moves a weight: `|Z|·16 ≥ threshold·⌊√products⌋·256` (1 in place of 256 for votes of signs), as a
/// bound on `|Z|`.
///
/// `products` is the number of products of two draws in the vote `Z`. Under random fitness the standard deviation of `Z` is
/// `√products` times that of one product. A limit of 0 moves every weight; weights without a vote move down.
pub fn step_limit(threshold: u32, products: usize, votes: Votes) -> i32 {
    let unit = match votes {
        Votes::Values => 1 << (2 * FIXED_POINT),
        Votes::Signs => 1,
    };
    let limit = u64::from(threshold) * products.isqrt() as u64 * unit;
    i32::try_from(limit.div_ceil(1 << FIXED_POINT)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        // Values of the error function's tables, beyond double precision.
        for (p, z) in [
            (0.5, 0.0),
            (0.75, 0.674_489_750_196_081_7),
            (0.999, 3.090_232_306_167_813_5),
            (1e-10, -6.361_340_902_404_056),
            (0.1, -1.281_551_565_544_600_4),
        ] {
            assert!((inverse_normal(p) - z).abs() < 4e-15 * z.abs().max(1.0), "{p}: {}", inverse_normal(p));
        }
        assert_eq!(inverse_normal(1.0), f64::INFINITY);
        assert!(inverse_normal(1.5).is_nan());
    }

    #[test]
    fn limits() {
        assert_eq!(step_limit(0, 16, Votes::Values), 0);
        assert_eq!(step_limit(5, 16, Votes::Values), 5 * 4 * 16);
        assert_eq!(step_limit(5, 17, Votes::Signs), 2); // 20/16, rounded up
        assert_eq!(step_limit(u32::MAX, 1 << 20, Votes::Values), i32::MAX);
    }
}
