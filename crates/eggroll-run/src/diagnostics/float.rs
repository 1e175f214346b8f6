//! Statistics of floating-point values.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Share of zeros in a matrix beyond which there is a warning.
const MOST_ZEROS: f64 = 0.5;

/// Statistics of one tensor of floats. Except for the two counts, they cover the finite values only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FloatStatistics {
    /// Path of the parameter.
    pub path: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Number of values.
    pub count: usize,
    /// Values that are infinite or not numbers.
    pub non_finite: usize,
    /// Mean.
    pub mean: f64,
    /// Standard deviation of the values, `√(Σ(v − mean)²/count)`.
    pub deviation: f64,
    /// Share of zeros.
    pub zeros: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
}

impl FloatStatistics {
    /// Statistics of the values of a parameter; all 0 without values.
    ///
    /// # Example
    ///
    /// ```
    /// use eggroll_run::diagnostics::FloatStatistics;
    ///
    /// let statistics = FloatStatistics::new("weight", &[2, 2], &[3.0, -1.0, 0.0, f64::NAN]);
    /// assert_eq!((statistics.min, statistics.max), (-1.0, 3.0));
    /// assert_eq!(statistics.warnings(), ["weight: 1 of 4 values are not finite"]);
    /// ```
    pub fn new(path: impl Into<String>, shape: &[usize], values: &[f64]) -> Self {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let known = finite().count();
        let of_known = |sum: f64| sum / known.max(1) as f64;
        let mean = of_known(finite().sum());
        let variance = of_known(finite().map(|value| (value - mean).powi(2)).sum());
        Self {
            path: path.into(),
            shape: shape.to_vec(),
            count: values.len(),
            non_finite: values.len() - known,
            mean,
            deviation: variance.sqrt(),
            zeros: of_known(finite().filter(|value| *value == 0.0).count() as f64),
            min: finite().reduce(f64::min).unwrap_or(0.0),
            max: finite().reduce(f64::max).unwrap_or(0.0),
        }
    }

    /// Warnings for the tensor: values that are not finite; in a matrix, more than 50 % zeros or all values
    /// equal. Biases and gains begin as vectors of equal values, which may be 0.
    pub fn warnings(&self) -> Vec<String> {
        let Self { path, count, non_finite, zeros, .. } = self;
        let matrix = self.shape.len() > 1 && count - non_finite > 1;
        let checks = [
            (*non_finite > 0, format!("{path}: {non_finite} of {count} values are not finite")),
            (matrix && *zeros > MOST_ZEROS, format!("{path}: {:.1} % of the values are 0", 100.0 * zeros)),
            (matrix && self.min == self.max, format!("{path}: all values are {}", self.min)),
        ];
        checks.into_iter().filter(|(wrong, _)| *wrong).map(|(_, warning)| warning).collect()
    }
}

/// One line of a table.
impl fmt::Display for FloatStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, shape, mean, deviation, min, max, .. } = self;
        let (shape, zeros) = (format!("{shape:?}"), 100.0 * self.zeros);
        write!(f, "{path:<28} {shape:<11} {mean:>7.1e} {deviation:>7.1e} {min:>7.1e} {max:>7.1e} {zeros:>5.1} %")
    }
}
