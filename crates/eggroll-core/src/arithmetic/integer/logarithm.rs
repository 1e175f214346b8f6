//! Powers and logarithms of two in sixteenths, by integers.

/// `⌊16·2^{f/16}·2¹⁵⌋` for `f` in `0..16`: the mantissas of [`exp2_sixteenths`].
pub const EXP2_MANTISSA: [u32; 16] = [
    524288, 547500, 571740, 597053, 623487, 651091, 679917, 710019, 741455, 774282, 808562, 844360, 881743, 920781,
    961548, 1004119,
];

/// `⌊2³¹·2^{k/16}⌋ + 1` for `k` in `1..16`: where `⌊16·log2⌋` steps up.
pub(crate) const STEPS: [u64; 15] = [
    2242560872, 2341847524, 2445529972, 2553802834, 2666869345, 2784941738, 2908241643, 3037000500, 3171460000,
    3311872530, 3458501654, 3611622603, 3771522797, 3938502376, 4112874774,
];

/// `⌊16·2^{q/16}⌋`.
///
/// # Panics
///
/// Panics (in debug builds) for `q > 255`.
#[inline(always)]
pub fn exp2_sixteenths(q: u32) -> u32 {
    EXP2_MANTISSA[(q & 15) as usize] >> (15 - (q >> 4))
}

/// `trunc(16·log2(sum/16))`, for sums of [`exp2_sixteenths`].
///
/// # Example
///
/// ```
/// use eggroll_core::integer::{exp2_sixteenths, log2_sixteenths};
///
/// assert_eq!(log2_sixteenths(256 * exp2_sixteenths(128)), 256); // 256 equal logits: 8 bits more than one
/// ```
#[inline(always)]
pub fn log2_sixteenths(sum: u32) -> i32 {
    if sum == 0 {
        return i32::MIN;
    }
    let exponent = sum.ilog2();
    let mantissa = u64::from(sum) << (31 - exponent); // in [2³¹, 2³²)
    let fraction = STEPS.iter().filter(|step| mantissa >= **step).count() as i32;
    let sixteenths = 16 * exponent as i32 + fraction - 64;
    // Towards zero: below one, the floor is one too low unless it is exact.
    let exact = mantissa == 1 << 31;
    if sixteenths < 0 && !exact { sixteenths + 1 } else { sixteenths }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_their_formulas() {
        for f in 0..16 {
            let power = (f as f64 / 16.0).exp2();
            assert_eq!(EXP2_MANTISSA[f], (power * 16.0 * 32768.0).floor() as u32, "{f}");
            if f > 0 {
                assert_eq!(STEPS[f - 1], (power * 2f64.powi(31)).floor() as u64 + 1, "{f}");
            }
        }
    }

    #[test]
    fn equal_the_floating_point_formulas() {
        for q in 0..256 {
            assert_eq!(exp2_sixteenths(q), ((q as f64 / 16.0).exp2() * 16.0).trunc() as u32, "{q}");
        }
        for sum in (1..1 << 20).chain((1 << 28) - 1000..(1 << 28) + 1000) {
            let expected = ((f64::from(sum) / 16.0).log2() * 16.0).trunc() as i32;
            assert_eq!(log2_sixteenths(sum), expected, "{sum}");
        }
    }
}
