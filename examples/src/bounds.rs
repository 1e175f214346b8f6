//! Bounds of numbers on the command line: what is beyond is a slip, and would end in an allocation that fails or a generation that
//! does not end.

use clap::builder::{RangedU64ValueParser, TypedValueParser};
use std::time::Duration;

/// Widths of layers, channels and strides of convolutions.
pub const WIDTH: u64 = 1 << 16;
/// Epochs of a comparison.
pub const EPOCHS: u64 = 100_000;
/// Episodes of a member.
pub const EPISODES: u64 = 1 << 16;
/// Steps that an action is held for, or that an episode takes.
pub const STEPS: u64 = 10_000;
/// Members of a population that is measured.
pub const MEMBERS: u64 = 1 << 20;
/// Ranks of noise that is measured.
pub const RANK: u64 = 1 << 10;

/// A parser of counts up to a bound, which its error says.
pub fn at_most(bound: u64) -> impl TypedValueParser<Value = usize> {
    RangedU64ValueParser::<usize>::new().range(..=bound)
}

/// Refuses a learning rate that Burn's schedules refuse, by its value.
///
/// # Errors
///
/// The value.
pub fn learning_rate(name: &str, value: f64) -> Result<(), String> {
    match value > 0.0 && value <= 1.0 {
        true => Ok(()),
        false => Err(format!("--{name} must be above 0 and at most 1, not {value}")),
    }
}

/// Seconds as a duration.
///
/// # Errors
///
/// The value, if it is negative, not finite, or longer than a clock counts.
pub fn seconds(value: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(value).map_err(|error| format!("--seconds {value}: {error}"))
}
