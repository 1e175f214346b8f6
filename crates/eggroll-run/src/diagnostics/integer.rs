//! Statistics of int8 values: the first sign of a model that saturates, vanishes or stops moving.

use super::values::{TypedValues, parameter_values};
use burn::module::Module;
use eggroll_core::messages::shown;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A value of this magnitude or more counts as saturated.
const SATURATED: i64 = 126;
/// Shares and entropy beyond which there is a warning.
const MOST_SATURATED: f64 = 0.1;
const MOST_ZEROS: f64 = 0.5;
const LEAST_ENTROPY: f64 = 1.0;
/// GELU makes nearly half of its values 0 or almost 0.
const MOST_ZERO_ACTIVATIONS: f64 = 0.6;

/// Statistics of one tensor of int8 values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntegerStatistics {
    /// Path of the parameter.
    pub path: String,
    /// Number of values.
    pub count: usize,
    /// Mean.
    pub mean: f64,
    /// Standard deviation of the values, `√(Σ(v − mean)²/count)`.
    pub deviation: f64,
    /// Entropy of the values' histogram in bits, 0 to 8.
    pub entropy: f64,
    /// Share of values of magnitude 126 or more.
    pub saturated: f64,
    /// Share of zeros.
    pub zeros: f64,
    /// Smallest value.
    pub min: i64,
    /// Largest value.
    pub max: i64,
}

impl IntegerStatistics {
    /// Statistics of values from −128 to 127; all 0 without values.
    ///
    /// # Panics
    ///
    /// Panics if a value is outside.
    ///
    /// # Example
    ///
    /// ```
    /// use eggroll_run::diagnostics::IntegerStatistics;
    ///
    /// let statistics = IntegerStatistics::new("weight", &[0, 0, 127, -127]);
    /// assert_eq!((statistics.mean, statistics.entropy), (0.0, 1.5));
    /// assert_eq!((statistics.zeros, statistics.saturated), (0.5, 0.5));
    /// assert_eq!(statistics.warnings().len(), 1); // saturated; half zeros are just allowed
    /// ```
    #[track_caller]
    pub fn new(path: impl Into<String>, values: &[i64]) -> Self {
        let count = values.len();
        let of_count = |sum: f64| sum / count.max(1) as f64;
        let mut histogram = [0u64; 256];
        for value in values {
            let bin = usize::try_from(value + 128).ok().filter(|bin| *bin < 256);
            histogram[bin.unwrap_or_else(|| panic!("integer statistics: {value} is not an int8 value"))] += 1;
        }
        let mean = of_count(values.iter().sum::<i64>() as f64);
        let variance = of_count(values.iter().map(|value| (*value as f64 - mean).powi(2)).sum());
        let share = |matches: &dyn Fn(i64) -> bool| of_count(values.iter().filter(|v| matches(**v)).count() as f64);
        Self {
            path: path.into(),
            count,
            mean,
            deviation: variance.sqrt(),
            entropy: entropy(&histogram),
            saturated: share(&|value| value.abs() >= SATURATED),
            zeros: share(&|value| value == 0),
            min: values.iter().copied().min().unwrap_or(0),
            max: values.iter().copied().max().unwrap_or(0),
        }
    }

    /// Warnings for the tensor: more than 10 % saturated, more than 50 % zeros, less than 1 bit of entropy.
    pub fn warnings(&self) -> Vec<String> {
        let Self { path, saturated, zeros, entropy, .. } = self;
        let checks = [
            (*saturated > MOST_SATURATED, format!("{path}: {:.1} % of the values are saturated", 100.0 * saturated)),
            (*zeros > MOST_ZEROS, format!("{path}: {:.1} % of the values are 0", 100.0 * zeros)),
            (*entropy < LEAST_ENTROPY, format!("{path}: the entropy of the values is {entropy:.2} bits")),
        ];
        checks.into_iter().filter(|(wrong, _)| *wrong).map(|(_, warning)| warning).collect()
    }
}

impl IntegerStatistics {
    /// Whether the path belongs to an activation whose rows are rescaled to ±127: some of its values are saturated by
    /// construction.
    pub fn is_rescaled(&self) -> bool {
        ["sum", "query", "key", "embedding"].iter().any(|name| self.path.ends_with(name))
    }

    /// Warnings for an activation, with what to do. Saturation is ignored for rescaled values (`sum`, `query`, `key`).
    pub fn activation_warnings(&self) -> Vec<String> {
        let Self { path, saturated, zeros, entropy, .. } = self;
        let checks = [
            (
                !self.is_rescaled() && *saturated > MOST_SATURATED,
                format!(
                    "{path}: {:.1} % of the values are saturated: the weights before it have grown too large. Stop earlier, or take fewer large steps \
                     (a smaller alpha or rate, weight decay)",
                    100.0 * saturated
                ),
            ),
            (
                *zeros > MOST_ZERO_ACTIVATIONS,
                format!(
                    "{path}: {:.1} % of the values are 0: its gains or weights have shrunk. Train gains without weight decay",
                    100.0 * zeros
                ),
            ),
            (
                *entropy < LEAST_ENTROPY,
                format!(
                    "{path}: the values have {entropy:.2} bits of entropy: they are nearly constant and carry no \
                     information. Try a larger width or another seed"
                ),
            ),
        ];
        checks.into_iter().filter(|(wrong, _)| *wrong).map(|(_, warning)| warning).collect()
    }
}

/// One line of a table.
impl fmt::Display for IntegerStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, mean, deviation, entropy, min, max, .. } = self;
        let (saturated, zeros) = (100.0 * self.saturated, 100.0 * self.zeros);
        write!(
            f,
            "{path:<30} {:>6.2} {deviation:>6.2} {entropy:>7.2} {saturated:>7.1} % {zeros:>4.1} % {min:>5} {max:>4}",
            shown(*mean, 2)
        )
    }
}

/// Statistics of every integer parameter of a model, in traversal order.
///
/// # Example
///
/// ```
/// use burn::tensor::Device;
/// use eggroll_nn::integer::EggModelConfig;
/// use eggroll_run::diagnostics::integer_statistics;
///
/// let model = EggModelConfig::new().with_layers(1).with_width(16).init(&Device::flex());
/// let statistics = integer_statistics(&model);
/// assert_eq!(statistics[0].path, "embedding.weight");
/// assert!(statistics[0].entropy > 5.0 && statistics[0].warnings().is_empty());
/// ```
pub fn integer_statistics<M: Module>(model: &M) -> Vec<IntegerStatistics> {
    integer_values(model).iter().map(|(path, values)| IntegerStatistics::new(path, values)).collect()
}

/// Share of integer parameters' values that differ between two models of the same shape, from 0 to 1.
///
/// # Panics
///
/// Panics if the models' integer parameters differ in number or size.
#[track_caller]
pub fn changed_share<M: Module>(before: &M, after: &M) -> f64 {
    let (before, after) = (integer_values(before), integer_values(after));
    let sizes = |values: &[(String, Vec<i64>)]| values.iter().map(|(_, values)| values.len()).collect::<Vec<_>>();
    assert!(
        sizes(&before) == sizes(&after),
        "share of changed weights: parameters of {:?} and {:?} values",
        sizes(&before),
        sizes(&after)
    );
    let pairs = || before.iter().zip(&after).flat_map(|((_, a), (_, b))| a.iter().zip(b));
    pairs().filter(|(a, b)| a != b).count() as f64 / pairs().count().max(1) as f64
}

/// Entropy of a distribution given by counts, in bits; 0 without counts.
pub(crate) fn entropy(counts: &[u64]) -> f64 {
    let total = counts.iter().sum::<u64>() as f64;
    let term = |count: &u64| *count as f64 / total * (total / *count as f64).log2();
    counts.iter().filter(|count| **count > 0).map(term).sum()
}

fn integer_values<M: Module>(model: &M) -> Vec<(String, Vec<i64>)> {
    let integers = parameter_values(model, false).into_iter();
    integers
        .filter_map(|parameter| match parameter.values {
            TypedValues::Integer(values) => Some((parameter.path, values)),
            TypedValues::Float(_) => None,
        })
        .collect()
}
