//! Burn's dashboard, with the task's metrics before the learner's: a small screen shows only the first ones.

use super::metric_names::MetricNames;
use super::metrics::names::FITNESS_MEAN;
use burn::train::logger::{EvaluationProgressLogger, TrainingProgressLogger};
use burn::train::metric::{MetricDefinition, MetricEntry, SerializedEntry};
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
        self.inner.update_train(state);
    }

    fn update_valid(&mut self, state: MetricState) {
        self.begin();
        self.inner.update_valid(state);
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
