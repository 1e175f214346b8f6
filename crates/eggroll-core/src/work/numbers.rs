//! Numbers of configurations: whether they fit f32, in which models compute.

mod walk;

use serde::Serialize;
use std::fmt;
use walk::Walk;

pub use walk::Number;

/// Whether a number fits f32: finite, and 0 or of full precision.
///
/// # Example
///
/// ```
/// use eggroll_core::numbers::holds;
///
/// assert!([0.0, -0.5, 1e-30].into_iter().all(holds));
/// assert!([f64::NAN, f64::INFINITY, 1e300, 1e-320].into_iter().all(|number| !holds(number)));
/// ```
pub fn holds(number: f64) -> bool {
    let size = number.abs();
    size == 0.0 || (f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&size)
}

/// The valid range of a number in a configuration, in addition to that of f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Any number.
    Any,
    /// 0 or above.
    NotNegative,
    /// Above 0.
    Positive,
    /// Below 0.
    Negative,
    /// From 0 to 1.
    Share,
    /// From 0 to below 1.
    BelowOne,
}

impl Bound {
    /// Whether a number fits f32 and is within the bound.
    pub fn fits(self, number: f64) -> bool {
        holds(number)
            && match self {
                Self::Any => true,
                Self::NotNegative => number >= 0.0,
                Self::Positive => number > 0.0,
                Self::Negative => number < 0.0,
                Self::Share => (0.0..=1.0).contains(&number),
                Self::BelowOne => (0.0..1.0).contains(&number),
            }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "a number",
            Self::NotNegative => "0 or above",
            Self::Positive => "above 0",
            Self::Negative => "below 0",
            Self::Share => "from 0 to 1",
            Self::BelowOne => "from 0 to below 1",
        })
    }
}

/// A number out of range in a configuration.
#[derive(Clone, PartialEq, thiserror::Error)]
#[error("{field} must be {bound} and fit f32 (0, or from 1.2e-38 to 3.4e38 in size), not {number:?}")]
pub struct NumberError {
    /// The field, with the fields around it: `optimizer.beta_1`.
    pub field: String,
    /// The number.
    pub number: f64,
    /// Its valid range.
    pub bound: Bound,
}

crate::debug_is_message!(NumberError);

/// All numbers of a configuration, each with its field: names joined by dots, positions in lists as numbers.
///
/// # Example
///
/// ```
/// use eggroll_core::QEggrollConfig;
/// use eggroll_core::numbers::{Number, all};
///
/// let numbers = all(&QEggrollConfig::new());
/// assert!(numbers.contains(&("alpha".to_owned(), Number::Float(4.0))));
/// assert!(numbers.contains(&("rank".to_owned(), Number::Integer(1))));
/// ```
pub fn all(config: &impl Serialize) -> Vec<(String, Number)> {
    let mut numbers = Vec::new();
    match config.serialize(Walk { field: String::new(), numbers: &mut numbers }) {
        Ok(()) => numbers,
        Err(_) => Vec::new(),
    }
}

/// Checks every floating-point number of a configuration by the `bound` of its field.
///
/// # Errors
///
/// [`NumberError`] of the first that does not fit.
///
/// # Example
///
/// ```
/// use eggroll_core::QEggrollConfig;
/// use eggroll_core::numbers::{Bound, check};
///
/// let config = QEggrollConfig::new().with_threshold(f64::NAN, 10);
/// let error = check(&config, |_| Bound::Any).unwrap_err().to_string();
/// assert_eq!(error, "alpha must be a number and fit f32 (0, or from 1.2e-38 to 3.4e38 in size), not NaN");
/// ```
pub fn check(config: &impl Serialize, bound: impl Fn(&str) -> Bound) -> Result<(), NumberError> {
    let wrong = |(field, number): (String, Number)| match number {
        Number::Float(number) if !bound(&field).fits(number) => {
            Some(NumberError { bound: bound(&field), field, number })
        }
        _ => None,
    };
    all(config).into_iter().find_map(wrong).map_or(Ok(()), Err)
}

/// The last name of a field: `beta_1` of `optimizer.beta_1`.
pub fn last_name(field: &str) -> &str {
    field.rsplit('.').next().unwrap_or(field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn f32_holds() {
        let (least, most) = (f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX));
        assert!([0.0, -0.0, least, -least, most, -most, 1.0].into_iter().all(holds));
        assert!([least / 2.0, 2.0 * most, f64::NAN, f64::INFINITY, -1e300, 1e-320].into_iter().all(|n| !holds(n)));
    }

    #[test]
    fn numbers_have_their_fields() {
        #[derive(Serialize)]
        enum Kind {
            None,
            One(f32),
            Two(u8, f64),
            Named { low: i64 },
        }
        #[derive(Serialize)]
        struct Config {
            rate: Option<f64>,
            kinds: Vec<Kind>,
            by_name: BTreeMap<&'static str, (u64, bool)>,
            by_number: BTreeMap<u32, f64>,
            text: &'static str,
        }
        let config = Config {
            rate: Some(f64::NEG_INFINITY),
            kinds: vec![Kind::None, Kind::One(0.5), Kind::Two(3, 1e300), Kind::Named { low: -1 }],
            by_name: [("a", (u64::MAX, true))].into(),
            by_number: [(7, 2.0)].into(),
            text: "1",
        };
        let expected = [
            ("rate", Number::Float(f64::NEG_INFINITY)),
            ("kinds.1.One", Number::Float(0.5)),
            ("kinds.2.Two.0", Number::Integer(3)),
            ("kinds.2.Two.1", Number::Float(1e300)),
            ("kinds.3.Named.low", Number::Integer(-1)),
            ("by_name.a.0", Number::Integer(i128::from(u64::MAX))),
            ("by_number.7", Number::Float(2.0)),
        ];
        assert_eq!(all(&config), expected.map(|(field, number)| (field.to_owned(), number)));
        assert_eq!(all(&2.5), [(String::new(), Number::Float(2.5))]);
    }

    #[test]
    fn bounds() {
        for (bound, fits, not) in [
            (Bound::Any, [-1.0, 0.0, 2.0], [f64::NAN, 1e39]),
            (Bound::NotNegative, [0.0, 1.0, 7.0], [-1.0, f64::INFINITY]),
            (Bound::Positive, [1e-30, 1.0, 7.0], [0.0, -1.0]),
            (Bound::Negative, [-1e-30, -1.0, -7.0], [0.0, 1.0]),
            (Bound::Share, [0.0, 0.5, 1.0], [-0.1, 1.5]),
            (Bound::BelowOne, [0.0, 0.5, 0.999], [-0.1, 1.0]),
        ] {
            assert!(fits.into_iter().all(|number| bound.fits(number)), "{bound}");
            assert!(not.into_iter().all(|number| !bound.fits(number)), "{bound}");
        }
    }
}
