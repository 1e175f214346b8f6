//! Metrics of a generation: named numbers in burn-train's terms.

use burn::tensor::{ExecutionError, TensorReadError};
use burn::train::metric::state::{FormatOptions, NumericMetricState};
use burn::train::metric::{
    Adaptor, ItemLazy, Metric, MetricAttributes, MetricMetadata, MetricName, Numeric, NumericAttributes, NumericEntry,
    SerializedEntry,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Digits that numbers are shown with.
const PRECISION: usize = 5;

/// Numbers by name: the results of a generation or a validation. Cheap to clone.
///
/// # Example
///
/// ```
/// use eggroll_run::Scalars;
///
/// let numbers = Scalars::from([("Accuracy", 0.97), ("Loss", 0.1)]);
/// assert_eq!(numbers.get("Accuracy"), Some(0.97));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scalars(Arc<BTreeMap<String, f64>>);

impl Scalars {
    /// The number of that name, if there is one.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// The names in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(super) fn insert(&mut self, name: &str, number: f64) {
        Arc::make_mut(&mut self.0).insert(name.to_owned(), number);
    }
}

impl<const N: usize> From<[(&str, f64); N]> for Scalars {
    fn from(numbers: [(&str, f64); N]) -> Self {
        numbers.into_iter().map(|(name, number)| (name.to_owned(), number)).collect()
    }
}

impl FromIterator<(String, f64)> for Scalars {
    fn from_iter<I: IntoIterator<Item = (String, f64)>>(numbers: I) -> Self {
        Self(Arc::new(numbers.into_iter().collect()))
    }
}

impl ItemLazy for Scalars {
    fn sync(self) -> Result<Self, ExecutionError> {
        Ok(self)
    }
}

impl Adaptor<Scalars> for Scalars {
    fn adapt(&self) -> Scalars {
        self.clone()
    }
}

/// A generation as burn-train's metrics see it.
#[derive(Debug)]
pub struct GenerationItem {
    pub(super) numbers: Scalars,
    pub(super) texts: Texts,
}

impl ItemLazy for GenerationItem {
    fn sync(self) -> Result<Self, ExecutionError> {
        Ok(self)
    }
}

impl Adaptor<Scalars> for GenerationItem {
    fn adapt(&self) -> Scalars {
        self.numbers.clone()
    }
}

impl Adaptor<Texts> for GenerationItem {
    fn adapt(&self) -> Texts {
        self.texts.clone()
    }
}

/// Texts by name.
pub(super) type Texts = Arc<BTreeMap<&'static str, String>>;

/// A metric that follows one of the [`Scalars`] of a generation or a validation. Over an epoch it is the mean of the values
/// present.
///
/// # Example
///
/// ```
/// use burn::train::metric::Metric;
/// use eggroll_run::ScalarMetric;
///
/// let metric = ScalarMetric::new("Bits per byte").lower_is_better();
/// assert_eq!(*metric.name(), "Bits per byte");
/// ```
#[derive(Clone)]
pub struct ScalarMetric {
    name: MetricName,
    higher_is_better: bool,
    state: NumericMetricState,
    /// Whether the last item had the number.
    present: bool,
    /// Whether any item of the epoch had it.
    seen: bool,
}

impl ScalarMetric {
    /// Follows the number of this name; higher is better.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: Arc::new(name.into()),
            higher_is_better: true,
            state: NumericMetricState::new(),
            present: false,
            seen: false,
        }
    }

    /// Declares that lower is better.
    pub fn lower_is_better(mut self) -> Self {
        self.higher_is_better = false;
        self
    }

    fn format(&self) -> FormatOptions {
        FormatOptions::new(self.name.clone()).precision(PRECISION)
    }
}

impl Metric for ScalarMetric {
    type Input = Scalars;

    fn name(&self) -> MetricName {
        self.name.clone()
    }

    fn attributes(&self) -> MetricAttributes {
        NumericAttributes { unit: None, higher_is_better: self.higher_is_better }.into()
    }

    fn update(&mut self, item: &Scalars, _metadata: &MetricMetadata) -> Result<SerializedEntry, TensorReadError> {
        let number = item.get(&self.name);
        self.present = number.is_some();
        self.seen |= self.present;
        Ok(match number {
            Some(number) => {
                // A zero without sign.
                self.state.update(number + 0.0, 1);
                self.state.compute_update(self.format())
            }
            None => SerializedEntry::not_available(None),
        })
    }

    fn compute(&mut self) -> Result<SerializedEntry, TensorReadError> {
        Ok(match self.seen {
            true => self.state.compute_final(self.format()),
            false => SerializedEntry::not_available(None),
        })
    }

    fn clear(&mut self) {
        self.state.reset();
        (self.present, self.seen) = (false, false);
    }
}

impl Numeric for ScalarMetric {
    fn value(&self) -> Option<NumericEntry> {
        self.present.then(|| self.state.current_value())
    }

    fn running_value(&self) -> Option<NumericEntry> {
        self.seen.then(|| self.state.running_value())
    }

    fn final_value(&self) -> NumericEntry {
        self.state.final_value()
    }
}

/// A metric that shows one of the texts of a generation. Logs count generations from 0, the screen from 1.
#[derive(Clone)]
pub(super) struct TextMetric {
    name: &'static str,
    last: String,
}

impl TextMetric {
    pub fn new(name: &'static str) -> Self {
        Self { name, last: String::new() }
    }
}

impl Metric for TextMetric {
    type Input = Texts;

    fn name(&self) -> MetricName {
        Arc::new(self.name.to_owned())
    }

    fn update(&mut self, item: &Texts, _metadata: &MetricMetadata) -> Result<SerializedEntry, TensorReadError> {
        self.last = item.get(self.name).cloned().unwrap_or_default();
        self.compute()
    }

    fn compute(&mut self) -> Result<SerializedEntry, TensorReadError> {
        let done = match self.name {
            names::GENERATION => self.last.parse().ok().and_then(|generation: u64| generation.checked_add(1)),
            _ => None,
        };
        Ok(SerializedEntry::new(done.map_or_else(|| self.last.clone(), |done| done.to_string()), self.last.clone()))
    }

    fn clear(&mut self) {}
}

/// Names of the learner's own metrics.
pub(super) mod names {
    pub const GENERATION: &str = "Generation";
    pub const WARNINGS: &str = "Warnings";
    pub const FITNESS_MEAN: &str = "Fitness mean";
    pub const FITNESS_BEST: &str = "Fitness best";
    pub const FITNESS_WORST: &str = "Fitness worst";
    pub const NON_FINITE: &str = "Non-finite fitness";
    pub const TIED_PAIRS: &str = "Tied pairs";
    pub const SIGMA: &str = "Sigma";
    pub const LEARNING_RATE: &str = "Learning rate";
    pub const EVALUATIONS: &str = "Evaluations per second";
    pub const GRADIENT_NORM: &str = "Gradient norm";
    pub const UPDATE_NORM: &str = "Update norm";
    pub const PARAMETER_NORM: &str = "Parameter norm";
    pub const CURVATURE: &str = "Curvature to slope";
    pub const CORRELATION: &str = "Split-half correlation";
    pub const SIGNAL: &str = "Signal to noise";
    pub const CHANGED: &str = "Changed weights";
    pub const SATURATED: &str = "Most saturated";
    pub const ENTROPY: &str = "Least entropy";
    pub const BAD_VALUES: &str = "Non-finite weights";

    /// All of them, for any model.
    pub const ALL: [&str; 20] = [
        GENERATION,
        WARNINGS,
        FITNESS_MEAN,
        FITNESS_BEST,
        FITNESS_WORST,
        NON_FINITE,
        TIED_PAIRS,
        SIGMA,
        LEARNING_RATE,
        EVALUATIONS,
        GRADIENT_NORM,
        UPDATE_NORM,
        PARAMETER_NORM,
        CURVATURE,
        CORRELATION,
        SIGNAL,
        CHANGED,
        SATURATED,
        ENTROPY,
        BAD_VALUES,
    ];
}

/// The metrics that a model with parameters of these kinds has.
pub(super) fn built_in(floats: bool, integers: bool, diagnostics: bool) -> Vec<ScalarMetric> {
    use names::*;
    let higher = |name: &str| ScalarMetric::new(name);
    let lower = |name: &str| ScalarMetric::new(name).lower_is_better();
    let mut metrics = vec![higher(FITNESS_MEAN), higher(FITNESS_BEST), higher(FITNESS_WORST)];
    metrics.extend([higher(EVALUATIONS), lower(TIED_PAIRS), lower(NON_FINITE)]);
    if floats {
        metrics.extend([SIGMA, LEARNING_RATE, GRADIENT_NORM, UPDATE_NORM, PARAMETER_NORM].map(lower));
    }
    if diagnostics {
        metrics.extend([lower(CURVATURE), lower(BAD_VALUES)]);
        if floats {
            metrics.extend([CORRELATION, SIGNAL].map(higher));
        }
        if integers {
            metrics.extend([lower(CHANGED), lower(SATURATED), higher(ENTROPY)]);
        }
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::data::dataloader::Progress;

    fn metadata() -> MetricMetadata {
        MetricMetadata { progress: Progress::new(1, 1, None), iteration: None, lr: None }
    }

    /// Logs keep its number from 0.
    #[test]
    fn the_first_generation_is_shown_as_1() {
        let entry = |name: &'static str| {
            let texts = Texts::new(BTreeMap::from([(name, "19".to_owned())]));
            TextMetric::new(name).update(&texts, &metadata()).expect("an entry")
        };
        let generation = entry(names::GENERATION);
        assert_eq!((generation.formatted.as_str(), generation.serialized.as_str()), ("20", "19"));
        assert_eq!(entry(names::WARNINGS).formatted, "19");
    }

    #[test]
    fn zeros_have_no_sign() {
        let mut metric = ScalarMetric::new("Loss");
        let entry = metric.update(&Scalars::from([("Loss", -0.0)]), &metadata()).expect("an entry");
        assert!(!entry.formatted.contains("-0") && !entry.serialized.contains("-0"), "{}", entry.formatted);
        assert!(metric.value().is_some_and(|value| value.current().is_sign_positive()));
    }
}
