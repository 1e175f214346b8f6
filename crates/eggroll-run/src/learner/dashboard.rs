//! Burn's dashboard, with the task's metrics before the learner's: a small screen shows only the first ones.

use super::metric_names::MetricNames;
use super::metrics::names::FITNESS_MEAN;
use burn::train::logger::{EvaluationProgressLogger, TrainingProgressLogger};
use burn::train::metric::{MetricDefinition, MetricEntry, NumericEntry, SerializedEntry};
use burn::train::renderer::tui::TuiMetricsRendererWrapper;
use burn::train::renderer::{
    EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation, MetricsRendererTraining,
};
use burn::train::{Interrupter, LearnerSummary};
use std::error::Error;

/// Most epochs to tell Burn of: it multiplies them by generations, and a run without a fixed length has the largest number.
const MOST_EPOCHS: usize = 1 << 20;
/// Most generations of an epoch to tell Burn of.
const MOST_ITEMS: usize = 1 << 30;
/// Placeholder for a validation's number.
const NOT_YET: &str = "after the first validation";

/// A number in single precision. Burn draws a curve between its least and its largest value: a constant with the noise of roundings
/// in f64 would look like one that changes.
fn rounded(number: NumericEntry) -> NumericEntry {
    let single = |number: f64| if (number as f32).is_finite() { f64::from(number as f32) } else { number };
    match number {
        NumericEntry::Value(number) => NumericEntry::Value(single(number)),
        NumericEntry::Aggregated { aggregated_value, count } => {
            NumericEntry::Aggregated { aggregated_value: single(aggregated_value), count }
        }
        NumericEntry::Final(number) => NumericEntry::Final(single(number)),
    }
}

/// A state as it is drawn.
fn drawn(state: MetricState) -> MetricState {
    match state {
        MetricState::Numeric(entry, number) => MetricState::Numeric(entry, number.map(rounded)),
        MetricState::Generic(entry) => MetricState::Generic(entry),
    }
}

/// The dashboard; it takes the screen when it is made and returns it when it is dropped.
pub(super) struct Dashboard {
    inner: TuiMetricsRendererWrapper,
    /// Metrics that are not yet handed on: they come in any order.
    definitions: Vec<MetricDefinition>,
    names: MetricNames,
    /// Generations of an epoch.
    items: usize,
}

impl Dashboard {
    /// A dashboard of a run with metrics of these names.
    pub fn new(interrupter: Interrupter, names: MetricNames) -> Self {
        let inner = TuiMetricsRendererWrapper::new(interrupter, None);
        Self { inner, definitions: Vec::new(), names, items: 1 }
    }

    /// Hands on the registered metrics: validation first, then training, the score first.
    fn begin(&mut self) {
        if self.definitions.is_empty() {
            return;
        }
        let mut definitions = std::mem::take(&mut self.definitions);
        let place = |definition: &MetricDefinition| {
            let name = definition.name.as_str();
            (
                !self.names.valid.contains(name),
                self.names.built_in.contains(name),
                name != FITNESS_MEAN,
                name.to_owned(),
            )
        };
        definitions.sort_by_cached_key(place);
        definitions.iter().for_each(|definition| self.inner.register_metric(definition.clone()));
        for definition in
            definitions.into_iter().filter(|definition| self.names.valid.contains(definition.name.as_str()))
        {
            // The list on the left is in the order of values.
            let entry = SerializedEntry::new(NOT_YET.to_owned(), String::new());
            self.inner.update_valid(MetricState::Generic(MetricEntry::new(definition.metric_id, entry)));
        }
    }
}

impl MetricsRendererTraining for Dashboard {
    fn update_train(&mut self, state: MetricState) {
        self.begin();
        self.inner.update_train(drawn(state));
    }

    fn update_valid(&mut self, state: MetricState) {
        self.begin();
        self.inner.update_valid(drawn(state));
    }

    fn on_train_end(&mut self, summary: Option<LearnerSummary>) -> Result<(), Box<dyn Error>> {
        self.inner.on_train_end(summary)
    }
}

impl TrainingProgressLogger for Dashboard {
    fn start(&mut self, epochs: usize, starting_epoch: usize, items: Option<usize>, label: Option<&str>) {
        self.begin();
        self.inner.start(epochs.min(MOST_EPOCHS), starting_epoch, items, label);
    }

    fn update_epoch(&mut self, epoch: usize) {
        self.inner.update_epoch(epoch);
    }

    /// Tells Burn that a validation is as long as the interval between two. Burn keeps points of a curve by its share of the epoch; a
    /// validation in one batch would get only a few.
    fn start_split(&mut self, split: &str, items: usize) {
        if split == "train" {
            self.items = items.clamp(1, MOST_ITEMS);
        }
        self.inner.start_split(split, self.items);
    }

    fn update_split(&mut self, items: usize) {
        self.inner.update_split(items);
    }

    fn end_split(&mut self) {
        self.inner.end_split();
    }

    fn end(&mut self) {
        self.inner.end();
    }

    fn log_event_training(&mut self, event: String) {
        self.inner.log_event_training(event);
    }
}

impl MetricsRenderer for Dashboard {
    fn manual_close(&mut self) {
        self.inner.manual_close();
    }

    fn register_metric(&mut self, definition: MetricDefinition) {
        self.definitions.push(definition);
    }
}

// A renderer is for evaluations too; a run has none.

impl MetricsRendererEvaluation for Dashboard {
    fn update_test(&mut self, name: EvaluationName, state: MetricState) {
        self.inner.update_test(name, state);
    }
}

impl EvaluationProgressLogger for Dashboard {
    fn start_global_progress(&mut self, tests: usize) {
        self.inner.start_global_progress(tests);
    }

    fn start_test(&mut self, name: &str, items: usize) {
        self.inner.start_test(name, items);
    }

    fn update_test_progress(&mut self, items: usize) {
        self.inner.update_test_progress(items);
    }

    fn end_test(&mut self) {
        self.inner.end_test();
    }

    fn end_global_progress(&mut self) {
        self.inner.end_global_progress();
    }

    fn log_event_evaluation(&mut self, event: String) {
        self.inner.log_event_evaluation(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cosine between equal ends is a constant but for roundings.
    #[test]
    fn constants_are_drawn_as_constants() {
        let schedule = |share: f64| share * 0.02 + (1.0 - share) * 0.02;
        let sigmas: Vec<f64> = (0..100).map(|step| schedule(f64::from(step) / 100.0)).collect();
        assert!(sigmas.iter().any(|sigma| *sigma != 0.02), "canary");
        for sigma in sigmas {
            assert_eq!(rounded(NumericEntry::Value(sigma)).current(), f64::from(0.02f32));
            assert_eq!(
                rounded(NumericEntry::Aggregated { aggregated_value: sigma, count: 1 }).current(),
                f64::from(0.02f32)
            );
        }
        // Numbers that f32 does not hold stay.
        assert_eq!(rounded(NumericEntry::Final(1e300)).current(), 1e300);
    }
}
