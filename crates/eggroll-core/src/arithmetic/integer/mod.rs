//! Integer arithmetic: int8 values within ±127, fixed point 4 (16 is 1.0), in the two ways of [`Rounding`].
//!
//! Every backend computes these formulas exactly; the scalar definitions are in [`crate::testing::reference::integer`].

mod divisor;
mod logarithm;
mod rounding;
mod threshold;
pub mod transformer;

pub(crate) use divisor::{Divisor, divide_plainly};
pub(crate) use logarithm::STEPS;
pub use logarithm::{EXP2_MANTISSA, exp2_sixteenths, log2_sixteenths};
pub(crate) use rounding::{NarrowDivisor, RoundedDivisor};
pub use rounding::{Rounding, divide_rounded, half_log2, shift_rounded};
pub use threshold::{inverse_normal, step_limit, threshold};

use serde::{Deserialize, Serialize};

/// Fraction bits: 16 is 1.0.
pub const FIXED_POINT: u32 = 4;
/// Largest sigma shift: beyond it products of noise vanish.
pub(crate) const MAX_SIGMA_SHIFT: u32 = 24;
/// The largest magnitude of a value.
pub const INT8_LIMIT: i32 = 127;

/// Saturates at ±127.
#[inline(always)]
pub const fn clip(value: i32) -> i8 {
    if value > INT8_LIMIT {
        INT8_LIMIT as i8
    } else if value < -INT8_LIMIT {
        -INT8_LIMIT as i8
    } else {
        value as i8
    }
}

/// `16·⌊√d_input⌋`, the divisor of a product over `d_input` values.
///
/// # Example
///
/// ```
/// assert_eq!(eggroll_core::integer::product_divisor(24), 64);
/// ```
pub const fn product_divisor(d_input: usize) -> i32 {
    (d_input.isqrt() as i32) << FIXED_POINT
}

/// Resolution of a pair's vote.
///
/// With the differences `δ_q = f₊ − f₋` of all pairs, and their mean magnitude `m`, the vote of a pair has the sign of `δ_q` and one of a few
/// magnitudes. For normally distributed differences, votes carry 64 % of their information as signs, 81 % in three levels, 92 % in five.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VoteLevels {
    /// 1, or 0 for a tie.
    #[default]
    Sign,
    /// 0 below `3m/4`, else 1.
    Three,
    /// 0 below `m/2`, 2 from `3m/2` on, else 1.
    Five,
}

impl VoteLevels {
    /// The largest magnitude of a vote.
    pub fn largest(self) -> i8 {
        if self == Self::Five { 2 } else { 1 }
    }
}

/// The weight of a pair's noise in an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Votes {
    /// The values of the noise.
    #[default]
    Values,
    /// The signs of its factors only.
    Signs,
}
