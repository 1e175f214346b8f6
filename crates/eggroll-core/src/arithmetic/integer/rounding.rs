//! How integer models round.

/// How an integer model rounds, and how sums of activations return to int8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Down; sums saturate at ±127: Q-EGGROLL's recurrent model.
    Floor,
    /// To nearest, halves away from zero; sums of activations and looked-up rows are rescaled to ±127 row by row, and products saturate: the integer
    /// transformer. It commutes with the sign, so the noise of a pair stays antithetic.
    Nearest,
}

impl Rounding {
    /// The added noise of a member, from the product of its factors: `⌊s·p / 2^bits⌋`, or `s·round(p / 2^bits)`.
    #[inline(always)]
    pub(crate) const fn noise(self, product: i32, sign: i32, bits: u32) -> i32 {
        match self {
            Self::Floor => (sign * product) >> bits,
            Self::Nearest => sign * shift_rounded(product, bits),
        }
    }
}

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

/// [`divide_rounded`] by a constant divisor, without a division: "Division by Invariant Integers using Multiplication", Granlund and
/// Montgomery 1994.
///
/// For `2^(p−1) ≤ b < 2^p` and `m = ⌈2^(30+p) / b⌉`, `⌊n·m / 2^(30+p)⌋ = ⌊n/b⌋` if `n·(m·b − 2^(30+p)) < 2^(30+p)`, which `n < 2³⁰` ensures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundedDivisor {
    pub(crate) multiplier: u32,
    pub(crate) shift: u32,
    pub(crate) half: u32,
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

/// [`divide_rounded`] of 16-bit values by a divisor of at most [`LIMIT`](Self::LIMIT), as [`RoundedDivisor`]: sixteen bits at a time fill a vector
/// with twice as many values.
///
/// For `2^(p−1) < b ≤ 2^p` and `m = ⌈2^(15+p) / b⌉`, which 16 bits hold, `⌊⌊2n·m / 2¹⁶⌋ / 2^p⌋ = ⌊n/b⌋` if `n·(m·b − 2^(15+p)) < 2^(15+p)`, which
/// `n < 2¹⁵` ensures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NarrowDivisor {
    pub(crate) multiplier: u16,
    pub(crate) post: u16,
    pub(crate) half: u16,
}

impl NarrowDivisor {
    /// The largest divisor.
    pub(crate) const LIMIT: usize = 256;

    /// Division by `b`, and by 0 as by 1.
    ///
    /// # Panics
    ///
    /// Panics if `b` is above the limit.
    #[inline(always)]
    pub(crate) fn by(b: usize) -> &'static Self {
        static ALL: [NarrowDivisor; NarrowDivisor::LIMIT + 1] = {
            let mut all = [NarrowDivisor::new(1); NarrowDivisor::LIMIT + 1];
            let mut b = 2;
            while b <= NarrowDivisor::LIMIT {
                all[b] = NarrowDivisor::new(b);
                b += 1;
            }
            all
        };
        &ALL[b]
    }

    const fn new(b: usize) -> Self {
        let post = b.next_power_of_two().trailing_zeros();
        Self { multiplier: (1u32 << (15 + post)).div_ceil(b as u32) as u16, post: post as u16, half: b as u16 / 2 }
    }

    /// `a / b`, for `|a| + b/2` below 2¹⁵.
    #[inline(always)]
    pub(crate) const fn divide(&self, a: i16) -> i16 {
        let n = a.unsigned_abs() + self.half;
        let magnitude = ((2 * n as u32 * self.multiplier as u32) >> 16) as u16 >> self.post;
        let sign = a >> 15;
        (magnitude as i16 ^ sign) - sign
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
    fn divides_narrow_values_to_the_nearest() {
        for b in 1..=NarrowDivisor::LIMIT {
            let divisor = NarrowDivisor::by(b);
            let top = i16::MAX - b as i16 / 2;
            for a in -top..=top {
                assert_eq!(i32::from(divisor.divide(a)), divide_rounded(a.into(), b as i32), "{a} / {b}");
            }
        }
        assert_eq!(NarrowDivisor::by(0).divide(-5), -5);
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
