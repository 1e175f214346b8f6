//! burn-train's metric log as JSON lines; a resumed run continues it.

use super::rows::{GENERATION, MetricRows, PLACES, key};
use crate::error::Error;
use crate::log::JsonLines;
use burn::train::logger::MetricLogger;
use burn::train::metric::store::{EpochSummary, MetricsUpdate, Split};
use burn::train::metric::{MetricDefinition, NumericEntry};
use eggroll_core::sync::locked;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Keys of a line that are not metrics, next to [`GENERATION`].
const EPOCH: &str = PLACES[1];
const SPLIT: &str = PLACES[2];

/// Holds a failure to write for the loop: a metric logger cannot return it.
pub(super) type WriteFailure = Arc<Mutex<Option<Error>>>;

/// A line for each reported generation, and one for each validation. A resumed run reads back values of earlier epochs, which
/// early stopping and checkpointing strategies ask for.
pub(super) struct JsonMetrics {
    file: Arc<Mutex<JsonLines>>,
    rows: MetricRows,
    /// By split, key and epoch; the mean for epochs that are over.
    values: HashMap<(Split, String, usize), Vec<NumericEntry>>,
    /// The last epoch whose values may be read. An epoch that an earlier process has not finished is not over, and burn-train would keep
    /// its values.
    shown: usize,
    failure: WriteFailure,
}

impl JsonMetrics {
    /// Opens the log of a run that begins, or continues, at `generation`, after `epochs` complete epochs.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the file.
    pub fn open(path: &Path, generation: u64, epochs: u64) -> Result<Self, Error> {
        let file = Arc::new(Mutex::new(JsonLines::open(path, generation)?));
        let (rows, values, failure) = (MetricRows::new(generation), HashMap::new(), WriteFailure::default());
        let mut log = Self { file, rows, values, shown: epochs as usize, failure };
        JsonLines::read(path)?.iter().for_each(|line| log.remember(line));
        Ok(log)
    }

    /// Writes what has changed since the run was here last.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the file.
    pub fn note(&mut self, changes: &[String]) -> Result<(), Error> {
        match changes {
            [] => Ok(()),
            _ => {
                let last = self.rows.generation.saturating_sub(1);
                locked(&self.file).write(&json!({ GENERATION: last, SPLIT: "settings", "changed": changes }))
            }
        }
    }

    /// The file, which has to be flushed before a checkpoint is saved.
    pub fn file(&self) -> Arc<Mutex<JsonLines>> {
        self.file.clone()
    }

    /// Where failures to write are found.
    pub fn failure(&self) -> WriteFailure {
        self.failure.clone()
    }

    /// Takes over a line of an earlier process.
    fn remember(&mut self, line: &Map<String, Value>) {
        let split = match line.get(SPLIT).and_then(Value::as_str) {
            Some("train") => Split::Train,
            Some("valid") => Split::Valid,
            _ => return,
        };
        let Some(epoch) = line.get(EPOCH).and_then(Value::as_u64) else {
            return;
        };
        for (name, value) in line.iter().filter(|(name, _)| ![GENERATION, EPOCH].contains(&name.as_str())) {
            // JSON has no NaN.
            if let Some(value) = value.as_f64().or(value.is_null().then_some(f64::NAN)) {
                self.add(&split, name.clone(), epoch as usize, value);
            }
        }
    }

    /// Adds a value to an epoch. A validation has one: the value of a shortened last epoch that now continues no longer counts.
    fn add(&mut self, split: &Split, key: String, epoch: usize, value: f64) {
        let before = epoch.checked_sub(1).and_then(|before| self.values.get_mut(&(split.clone(), key.clone(), before)));
        if let Some(before) = before.filter(|before| before.len() > 1) {
            let sum: f64 = before.iter().map(NumericEntry::current).sum();
            *before = vec![NumericEntry::Value(sum / before.len() as f64)];
        }
        let values = self.values.entry((split.clone(), key, epoch)).or_default();
        if *split == Split::Valid {
            values.clear();
        }
        values.push(NumericEntry::Value(value));
    }
}

/// A text as a number, if it is one.
fn value(text: &str) -> Value {
    text.parse::<u64>().map_or_else(|_| json!(text), Value::from)
}

impl MetricLogger for JsonMetrics {
    /// Keeps and writes rows; the mean over an epoch is computed when asked for.
    fn log(&mut self, update: MetricsUpdate, epoch: usize, split: &Split) {
        let Some(row) = self.rows.row(&update, epoch, split) else { return };
        self.shown = self.shown.max(epoch);
        let mut line: Map<String, Value> = row.texts.iter().map(|(key, text)| (key.clone(), value(text))).collect();
        for (key, number) in row.numbers {
            line.insert(key.clone(), json!(number));
            self.add(split, key, epoch, number);
        }
        line.insert(GENERATION.into(), json!(row.generation));
        line.insert(EPOCH.into(), json!(epoch));
        line.insert(SPLIT.into(), json!(split.to_string()));
        if let Err(error) = locked(&self.file).write(&line) {
            locked(&self.failure).get_or_insert(error);
        }
    }

    fn read_numeric(&mut self, name: &str, epoch: usize, split: &Split) -> Result<Vec<NumericEntry>, String> {
        let values = self.values.get(&(split.clone(), key(name), epoch)).filter(|_| epoch <= self.shown);
        Ok(match values {
            Some(values) => values.clone(),
            // For an epoch without a value, for example after a failed validation: burn-train stops at the first epoch without one, and
            // no value is better than NaN.
            None if epoch < self.shown => vec![NumericEntry::Value(f64::NAN)],
            None => Vec::new(),
        })
    }

    fn log_metric_definition(&mut self, definition: MetricDefinition) {
        self.rows.define(definition);
    }

    fn log_epoch_summary(&mut self, _summary: EpochSummary) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Epochs of two generations; the fourth has no validation, the fifth is not over.
    fn log() -> String {
        let train = (0..9).map(|g| format!(r#"{{"generation":{g},"epoch":{},"split":"train","loss":{g}}}"#, g / 2 + 1));
        let valid =
            [1, 2, 3].map(|e| format!(r#"{{"generation":{},"epoch":{e},"split":"valid","loss":{e}}}"#, 2 * e - 1));
        train.chain(valid).map(|line| line + "\n").collect()
    }

    #[test]
    fn what_an_earlier_process_left_is_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log.jsonl");
        fs::write(&path, log()).expect("writes");
        let mut metrics = JsonMetrics::open(&path, 9, 4).expect("opens");
        let mut read = |epoch, split| metrics.read_numeric("Loss", epoch, &split).expect("reads");
        let numbers = |values: Vec<NumericEntry>| values.iter().map(NumericEntry::current).collect::<Vec<_>>();
        assert_eq!(numbers(read(1, Split::Train)), [0.5], "the mean of an epoch that is over");
        assert_eq!(numbers(read(4, Split::Train)), [6.5]);
        assert!(read(5, Split::Train).is_empty(), "an epoch that is not over");
        assert_eq!(numbers(read(3, Split::Valid)), [3.0]);
        assert!(read(4, Split::Valid).is_empty(), "the last epoch, without a validation");
        metrics.shown = 5;
        assert_eq!(numbers(metrics.read_numeric("Loss", 5, &Split::Train).expect("reads")), [8.0]);
        let gap = metrics.read_numeric("Loss", 4, &Split::Valid).expect("reads");
        assert!(gap.len() == 1 && gap[0].current().is_nan(), "{gap:?}");
    }
}
