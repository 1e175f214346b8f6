//! A report on all parameters of a model.

use super::values::{ParameterValues, TypedValues, parameter_values};
use super::{FloatStatistics, IntegerStatistics};
use burn::module::Module;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Statistics of a parameter, by the kind of its values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParameterStatistics {
    /// Floats, and integers that do not fit into int8.
    Float(FloatStatistics),
    /// Int8 values.
    Integer(IntegerStatistics),
}

impl ParameterStatistics {
    /// Warnings for the parameter.
    pub fn warnings(&self) -> Vec<String> {
        match self {
            Self::Float(statistics) => statistics.warnings(),
            Self::Integer(statistics) => statistics.warnings(),
        }
    }
}

/// The result of [`diagnose`]: prints as a table with the warnings below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// Statistics by parameter, in traversal order.
    pub parameters: Vec<ParameterStatistics>,
}

/// Statistics and warnings of every parameter of a model. Reads all of them to the host.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_nn::LinearConfig;
/// use eggroll_run::diagnostics::diagnose;
///
/// let mut layer = LinearConfig::new(3, 2).init(&Device::flex());
/// assert!(diagnose(&layer).warnings().is_empty());
///
/// layer.weight = layer.weight.map(|weight: Tensor<2>| weight * f32::NAN);
/// let diagnosis = diagnose(&layer);
/// println!("{diagnosis}");
/// assert_eq!(diagnosis.warnings(), ["weight: 6 of 6 values are not finite"]);
/// ```
pub fn diagnose<M: Module>(model: &M) -> Diagnosis {
    let statistics = |ParameterValues { path, shape, values }| match values {
        TypedValues::Float(values) => ParameterStatistics::Float(FloatStatistics::new(path, &shape, &values)),
        TypedValues::Integer(values) if values.iter().all(|value| (-128..128).contains(value)) => {
            ParameterStatistics::Integer(IntegerStatistics::new(path, &values))
        }
        TypedValues::Integer(values) => {
            let values: Vec<f64> = values.into_iter().map(|value| value as f64).collect();
            ParameterStatistics::Float(FloatStatistics::new(path, &shape, &values))
        }
    };
    Diagnosis { parameters: parameter_values(model, true).into_iter().map(statistics).collect() }
}

impl Diagnosis {
    /// Warnings for the parameters.
    pub fn warnings(&self) -> Vec<String> {
        self.parameters.iter().flat_map(ParameterStatistics::warnings).collect()
    }

    /// Values that are infinite or not numbers, of all parameters.
    pub fn non_finite(&self) -> usize {
        self.floats().map(|statistics| statistics.non_finite).sum()
    }

    /// The largest share of saturated values of an int8 parameter, if there is one.
    pub fn saturated(&self) -> Option<f64> {
        self.integers().map(|statistics| statistics.saturated).reduce(f64::max)
    }

    /// The smallest entropy of an int8 parameter in bits, if there is one.
    pub fn entropy(&self) -> Option<f64> {
        self.integers().map(|statistics| statistics.entropy).reduce(f64::min)
    }

    fn floats(&self) -> impl Iterator<Item = &FloatStatistics> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            ParameterStatistics::Float(statistics) => Some(statistics),
            ParameterStatistics::Integer(_) => None,
        })
    }

    fn integers(&self) -> impl Iterator<Item = &IntegerStatistics> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            ParameterStatistics::Float(_) => None,
            ParameterStatistics::Integer(statistics) => Some(statistics),
        })
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = "parameter";
        if self.floats().next().is_some() {
            let columns = ["mean", "sd", "min", "max", "zeros"];
            let [mean, sd, min, max, zeros] = columns;
            writeln!(f, "{header:<28} {:<11} {mean:>7} {sd:>7} {min:>7} {max:>7} {zeros:>7}", "shape")?;
            self.floats().try_for_each(|statistics| writeln!(f, "{statistics}"))?;
        }
        if self.integers().next().is_some() {
            writeln!(f, "{header:<30}   mean     sd entropy saturated  zeros   min  max")?;
            self.integers().try_for_each(|statistics| writeln!(f, "{statistics}"))?;
        }
        self.warnings().iter().try_for_each(|warning| writeln!(f, "warning: {warning}"))
    }
}
