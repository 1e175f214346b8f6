//! Floor division by a small constant without a division.

use super::clip;

/// `clip(⌊value / divisor⌋)` by one 16-bit multiplication: "Division by Invariant Integers using Multiplication",
/// Granlund and Montgomery 1994.
///
/// With `u = clamp(⌊value/2ᵖ⌋ + 128·d, 0, 256·d − 1)` and `divisor = 2ᵖ·d`, the quotient is `⌊2u·m / 2¹⁶⌋ >> j − 128` for
/// `m = ⌈2¹⁵⁺ʲ/d⌉`, `d ≤ 2ʲ < 2·d`. It is exact if `u·(m·d − 2¹⁵⁺ʲ) < 2¹⁵⁺ʲ`, which `u < 256·d` and `d < 128` ensure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divisor {
    pub(crate) shift: u32,
    pub(crate) lowest: i32,
    pub(crate) span: i32,
    pub(crate) multiplier: u16,
    pub(crate) post: u16,
}

impl Divisor {
    /// Divisors `2^shift · odd_part` with `odd_part` below this.
    pub(crate) const LIMIT: usize = 128;

    /// Division by `d · 2^shift`.
    ///
    /// # Panics
    ///
    /// Panics unless `0 < d < 128`.
    pub(crate) const fn new(d: usize, shift: u32) -> Self {
        assert!(0 < d && d < Self::LIMIT);
        let post = d.next_power_of_two().trailing_zeros();
        let multiplier = (1u32 << (15 + post)).div_ceil(d as u32) as u16;
        Self { shift, lowest: 128 * d as i32, span: 256 * d as i32 - 1, multiplier, post: post as u16 }
    }

    /// `clip(⌊value / (d · 2^shift)⌋)`
    #[inline(always)]
    pub(crate) fn divide(&self, value: i32) -> i8 {
        let u = ((value >> self.shift) + self.lowest).clamp(0, self.span) as u16;
        self.quotient(u)
    }

    /// `clip(⌊value / d⌋)` of a divisor without a shift, for `|value| ≤ 127²`.
    #[inline(always)]
    pub(crate) fn divide_product(&self, value: i16) -> i8 {
        self.quotient((value + self.lowest as i16).clamp(0, self.span as i16) as u16)
    }

    #[inline(always)]
    fn quotient(&self, u: u16) -> i8 {
        let quotient = ((u32::from(2 * u) * u32::from(self.multiplier)) >> 16) as u16 >> self.post;
        (quotient as i16 - 128).max(-127) as i8
    }
}

/// `clip(⌊value / divisor⌋)` by an ordinary division, for divisors to which [`Divisor`] does not apply.
#[inline(always)]
pub(crate) fn divide_plainly(value: i32, divisor: i32) -> i8 {
    clip(value.div_euclid(divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_division_for_every_divisor() {
        for d in 1..Divisor::LIMIT {
            for shift in [0, 4] {
                let (divisor, by) = (Divisor::new(d, shift), (d as i32) << shift);
                let range = 140 * by;
                for value in (-range..range).chain([i32::MIN / 2, i32::MAX / 2]) {
                    assert_eq!(divisor.divide(value), divide_plainly(value, by), "{value} / {by}");
                }
                for value in -16129..=16129i16 {
                    let expected = divide_plainly(i32::from(value), d as i32);
                    assert_eq!(Divisor::new(d, 0).divide_product(value), expected, "{value} / {d}");
                }
            }
        }
    }

    #[test]
    fn truncation_would_differ() {
        assert_ne!(Divisor::new(3, 0).divide(-1), (-1i32 / 3) as i8);
    }
}
