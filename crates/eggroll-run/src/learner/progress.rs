//! A progress bar as a renderer of burn-train's: for runs without a dashboard.

use super::config::EsTrainingConfig;
use super::metrics::names::FITNESS_MEAN;
use burn::train::logger::{EvaluationProgressLogger, TrainingProgressLogger};
use burn::train::metric::{MetricDefinition, MetricId};
use burn::train::renderer::{
    EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation, MetricsRendererTraining,
};
use eggroll_core::messages::shown;
use indicatif::{ProgressBar, ProgressStyle};

/// Runs with more generations have no fixed end: their progress is unknown.
const COUNTABLE: u64 = 1 << 40;

/// Shows the generation and its mean fitness on standard error, if that is a terminal.
pub(super) struct Progress {
    bar: ProgressBar,
    config: EsTrainingConfig,
    fitness: Option<MetricId>,
    epoch: u64,
    /// Whether the split that runs is training's.
    training: bool,
}

impl Progress {
    pub fn new(bar: ProgressBar, config: EsTrainingConfig) -> Self {
        Self { bar, config, fitness: None, epoch: 1, training: true }
    }

    /// The bar of a run that is at `generation`.
    pub fn bar(config: &EsTrainingConfig, generation: u64) -> ProgressBar {
        let (bar, template) = match config.generations {
            generations if generations < COUNTABLE => {
                (ProgressBar::new(generations), "{wide_bar} {pos}/{len} {per_sec} eta {eta} {msg}")
            }
            _ => (ProgressBar::new_spinner(), "{spinner} generation {pos} {per_sec} for {elapsed} {msg}"),
        };
        let style = ProgressStyle::with_template(template).expect("a valid template");
        bar.with_style(style).with_position(generation)
    }
}

impl MetricsRendererTraining for Progress {
    fn update_train(&mut self, state: MetricState) {
        if let MetricState::Numeric(entry, Some(value)) = state
            && Some(&entry.metric_id) == self.fitness.as_ref()
        {
            self.bar.set_message(format!("fitness {:.5}", shown(value.current(), 5)));
        }
    }

    fn update_valid(&mut self, _state: MetricState) {}
}

impl TrainingProgressLogger for Progress {
    fn start(&mut self, _epochs: usize, starting_epoch: usize, _items: Option<usize>, _label: Option<&str>) {
        self.epoch = starting_epoch as u64;
    }

    fn update_epoch(&mut self, epoch: usize) {
        self.epoch = epoch as u64 + 1;
    }

    fn start_split(&mut self, split: &str, _items: usize) {
        self.training = split == "train";
    }

    fn update_split(&mut self, items: usize) {
        if self.training {
            self.bar.set_position(self.config.start(self.epoch) + items as u64);
        }
    }

    fn end_split(&mut self) {}

    fn end(&mut self) {
        self.bar.finish_and_clear();
    }

    fn log_event_training(&mut self, _event: String) {}
}

impl MetricsRenderer for Progress {
    fn manual_close(&mut self) {}

    fn register_metric(&mut self, definition: MetricDefinition) {
        if *definition.name == FITNESS_MEAN {
            self.fitness = Some(definition.metric_id);
        }
    }
}

// Required by the trait; a run has no evaluations.

impl MetricsRendererEvaluation for Progress {
    fn update_test(&mut self, _name: EvaluationName, _state: MetricState) {}
}

impl EvaluationProgressLogger for Progress {
    fn start_global_progress(&mut self, _tests: usize) {}

    fn start_test(&mut self, _name: &str, _items: usize) {}

    fn update_test_progress(&mut self, _items: usize) {}

    fn end_test(&mut self) {}

    fn end_global_progress(&mut self) {}

    fn log_event_evaluation(&mut self, _event: String) {}
}
