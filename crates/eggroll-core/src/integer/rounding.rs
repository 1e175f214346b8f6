//! Rounding to nearest, halves away from zero: it commutes with the sign, so that antithetic noise stays antithetic.

/// `a / b` rounded to nearest, halves away from zero, for `b > 0` and `|a| + b/2` below 2³¹.
///
/// # Example
///
/// ```
/// use eggroll_core::integer::divide_rounded;
///
/// assert_eq!([7, 8, -8, -9].map(|a| divide_rounded(a, 6)), [1, 1, -1, -2]);
/// ```
#[inline(always)]
pub const fn divide_rounded(a: i32, b: i32) -> i32 {
    let magnitude = (a.unsigned_abs() + (b / 2) as u32) / b as u32;
    if a < 0 { -(magnitude as i32) } else { magnitude as i32 }
}

/// `a / 2^bits` rounded to nearest, halves away from zero, for `bits` below 32 and `|a| + 2^(bits − 1)` below 2³¹.
#[inline(always)]
pub const fn shift_rounded(a: i32, bits: u32) -> i32 {
    let half = if bits == 0 { 0 } else { 1 << (bits - 1) };
    // Below zero a half is rounded down; a shift by nothing has no half.
    let down = if bits == 0 { 0 } else { a >> 31 };
    (a + half + down) >> bits
}

/// The largest `p` with `4^p ≤ n`: `2^p` is about the square root of `n`.
///
/// # Panics
///
/// Panics if `n` is 0.
pub const fn half_log2(n: usize) -> u32 {
    n.ilog2() / 2
}

/// [`divide_rounded`] by a divisor that stays, without a division: "Division by Invariant Integers using Multiplication", Granlund and
/// Montgomery 1994.
///
/// For `2^(p−1) ≤ b < 2^p` and `m = ⌈2^(30+p) / b⌉`, `⌊n·m / 2^(30+p)⌋ = ⌊n/b⌋` if `n·(m·b − 2^(30+p)) < 2^(30+p)`, which `n < 2³⁰` ensures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundedDivisor {
    multiplier: u32,
    shift: u32,
    half: u32,
}

impl RoundedDivisor {
    /// Division by `b > 0`.
    #[inline(always)]
    pub(crate) const fn new(b: u32) -> Self {
        let shift = 30 + 1 + b.ilog2();
        Self { multiplier: (1u64 << shift).div_ceil(b as u64) as u32, shift, half: b / 2 }
    }

    /// `a / b`, for `|a| + b/2` below 2³⁰.
    #[inline(always)]
    pub(crate) const fn divide(&self, a: i32) -> i32 {
        let magnitude = ((a.unsigned_abs() + self.half) as u64 * self.multiplier as u64) >> self.shift;
        let sign = a >> 31;
        (magnitude as i32 ^ sign) - sign
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(a: i32, b: i32) -> i32 {
        (f64::from(a) / f64::from(b)).round() as i32
    }

    #[test]
    fn divides_to_the_nearest() {
        let large = [1 << 15, 123_457, (1 << 23) - 1, 1 << 24, 1_000_003, i32::MAX / 8];
        for b in (1..300).chain(large) {
            let divisor = RoundedDivisor::new(b as u32);
            let top = (1 << 30) - 1 - b / 2;
            for a in
                (-700..700).chain([top, -top, top - 1, 127 * 32767]).chain((-9..9).map(|k| k * (b.min(1 << 24) / 2)))
            {
                assert_eq!(divide_rounded(a, b), expected(a, b), "{a} / {b}");
                assert_eq!(divisor.divide(a), expected(a, b), "{a} / {b} by multiplication");
            }
        }
    }

    #[test]
    fn shifts_to_the_nearest() {
        for bits in 0..24 {
            for a in (-3000..3000).chain([1 << 29, -(1 << 29), (1 << 30) - 1]) {
                assert_eq!(shift_rounded(a, bits), expected(a, 1 << bits), "{a} / 2^{bits}");
            }
        }
    }

    #[test]
    fn signs_commute_and_floors_do_not() {
        assert!((-500..500).all(|a| shift_rounded(-a, 3) == -shift_rounded(a, 3)));
        assert!((-500..500).any(|a: i32| (-a) >> 3 != -(a >> 3)), "canary");
    }

    #[test]
    fn half_logarithms() {
        assert_eq!([1, 3, 4, 15, 16, 64, 255, 256, 65536].map(half_log2), [0, 0, 1, 1, 2, 3, 3, 4, 8]);
    }
}
