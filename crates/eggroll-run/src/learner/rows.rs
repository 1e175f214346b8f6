//! Rows of every metric log: one for each reported generation, and one for each validation.

use super::metrics::names;
use crate::error::RunError;
use burn::train::metric::store::{MetricsUpdate, Split};
use burn::train::metric::{MetricAttributes, MetricDefinition, MetricId, NumericEntry};
use std::collections::HashMap;

/// Key of the text that is a row's generation.
pub(super) const GENERATION: &str = "generation";
/// Keys of a row that are not metrics.
pub(super) const PLACES: [&str; 3] = [GENERATION, "epoch", "split"];

/// The numbers of a generation or a validation, by key.
pub(super) struct MetricRow {
    /// For a validation, the generation before it.
    pub generation: u64,
    #[cfg_attr(not(any(feature = "csv", feature = "tensorboard")), expect(dead_code, reason = "only tables have it"))]
    pub epoch: usize,
    #[cfg_attr(not(any(feature = "csv", feature = "tensorboard")), expect(dead_code, reason = "only tables have it"))]
    pub split: Split,
    pub texts: Vec<(String, String)>,
    pub numbers: Vec<(String, f64)>,
}

/// Makes rows from the updates of burn-train's store.
pub(super) struct MetricRows {
    names: HashMap<MetricId, String>,
    /// Keys of numbers in the order of their definition.
    keys: Vec<String>,
    /// Of the last row of training.
    pub generation: u64,
}

impl MetricRows {
    /// Rows of a run that begins, or continues, at `generation`.
    pub fn new(generation: u64) -> Self {
        Self { names: HashMap::new(), keys: Vec::new(), generation }
    }

    /// Takes the name of a metric.
    pub fn define(&mut self, definition: MetricDefinition) {
        let key = key(&definition.name);
        if matches!(definition.attributes, MetricAttributes::Numeric(_)) && !self.keys.contains(&key) {
            self.keys.push(key);
        }
        self.names.insert(definition.metric_id, definition.name.to_string());
    }

    /// Keys of all numbers.
    #[cfg(any(feature = "csv", feature = "tensorboard"))]
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The row of an update, if it has one: generations of training, but not their mean over the epoch, and the final values of
    /// validations.
    pub fn row(&mut self, update: &MetricsUpdate, epoch: usize, split: &Split) -> Option<MetricRow> {
        let is_final = |entry: &NumericEntry| matches!(entry, NumericEntry::Final(_));
        let of_epoch = update.entries_numeric.iter().filter_map(|metric| metric.numeric_entry.as_ref()).any(is_final);
        if of_epoch != (*split == Split::Valid) {
            return None;
        }
        let texts = update.entries.iter().filter(|entry| !entry.serialized_entry.is_not_available());
        let texts: Vec<_> = texts
            .map(|entry| (key(&self.names[&entry.metric_id]), entry.serialized_entry.serialized.clone()))
            .collect();
        let available =
            update.entries_numeric.iter().filter(|metric| !metric.entry.serialized_entry.is_not_available());
        let number = |entry: &NumericEntry| entry.current();
        let numbers = available
            .filter_map(|metric| {
                Some((key(&self.names[&metric.entry.metric_id]), number(metric.numeric_entry.as_ref()?)))
            })
            .collect();
        if let Some(generation) =
            texts.iter().find(|(key, _)| key == GENERATION).and_then(|(_, text)| text.parse().ok())
        {
            self.generation = generation;
        }
        Some(MetricRow { generation: self.generation, epoch, split: split.clone(), texts, numbers })
    }
}

/// The key of a metric: its name in small letters, joined by underscores.
pub(super) fn key(name: &str) -> String {
    name.to_lowercase().replace([' ', '-'], "_")
}

/// Refuses the user's metrics whose key is taken: by a row's own columns, by the learner, or by an earlier metric. Training and
/// validation may use the same name, because they have separate rows.
pub(super) fn check_names(train: &[String], valid: &[String]) -> Result<(), RunError> {
    let places = PLACES.map(|place| (place, None, format!("what every row has as {place:?}")));
    let learners = names::ALL.map(|name| (name, Some(Split::Train), format!("the learner's {name:?}")));
    let mut taken: Vec<_> = places.into_iter().chain(learners).collect();
    let train = train.iter().map(|name| (name, Some(Split::Train)));
    for (name, split) in train.chain(valid.iter().map(|name| (name, Some(Split::Valid)))) {
        let column = key(name);
        let is_column = |(other, of, _): &&(&str, Option<Split>, String)| {
            key(other) == column && (other != name || of.is_none() || *of == split)
        };
        if let Some((_, _, other)) = taken.iter().find(is_column) {
            return Err(RunError::MetricColumn { name: name.clone(), column, other: other.clone() });
        }
        taken.push((name, split, format!("the metric {name:?}")));
    }
    Ok(())
}
