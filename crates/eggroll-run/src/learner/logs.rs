//! Logs next to `log.jsonl`.

use super::machinery::TrainingParts;
use crate::error::Error;
use crate::folder::RunFolder;
use burn::train::metric::ItemLazy;
#[cfg(any(feature = "csv", feature = "tensorboard"))]
use logger::Logger;

/// The table, in the folder of a run.
#[cfg(feature = "csv")]
const TABLE: &str = "log.csv";
/// The folder of event files there.
#[cfg(feature = "tensorboard")]
const EVENTS: &str = "tensorboard";

/// Which of them a run has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Logs {
    #[cfg(feature = "csv")]
    pub csv: bool,
    #[cfg(feature = "tensorboard")]
    pub tensorboard: bool,
}

impl Logs {
    /// Registers them for a run that begins, or continues, at `generation`.
    #[cfg_attr(
        not(any(feature = "csv", feature = "tensorboard")),
        expect(unused_mut, unused_variables, reason = "no such log is in this build")
    )]
    pub fn register<V: ItemLazy + 'static>(
        self,
        mut parts: TrainingParts<V>,
        folder: &RunFolder,
        generation: u64,
        failure: &super::json::WriteFailure,
    ) -> Result<TrainingParts<V>, Error> {
        #[cfg(feature = "csv")]
        if self.csv {
            let mut log = crate::CsvLog::open(folder.file(TABLE), generation)?;
            parts = parts.with_metric_logger(Logger::new(generation, failure, move |row, keys| {
                let epoch = super::rows::PLACES[1];
                log.declare(super::rows::PLACES.into_iter().chain(keys.iter().map(String::as_str)));
                log.write(row.log_row().with(epoch, row.epoch as f64))
            }));
        }
        #[cfg(feature = "tensorboard")]
        if self.tensorboard {
            let mut log = crate::TensorBoardLog::open(folder.file(EVENTS), generation)?;
            parts = parts.with_metric_logger(Logger::new(generation, failure, move |row, _| log.write(row.log_row())));
        }
        Ok(parts)
    }
}

#[cfg(any(feature = "csv", feature = "tensorboard"))]
mod logger {
    use crate::LogRow;
    use crate::error::Error;
    use crate::learner::json::WriteFailure;
    use crate::learner::rows::{MetricRow, MetricRows};
    use burn::train::logger::MetricLogger;
    use burn::train::metric::store::{EpochSummary, MetricsUpdate, Split};
    use burn::train::metric::{MetricDefinition, NumericEntry};
    use eggroll_core::sync::locked;

    impl MetricRow {
        /// The row's numbers, for a log that any loop can write.
        pub fn log_row(&self) -> LogRow {
            let row = match self.split {
                Split::Valid => LogRow::validation(self.generation),
                _ => LogRow::training(self.generation),
            };
            self.numbers.iter().fold(row, |row, (key, number)| row.with(key, *number))
        }
    }

    /// A log as a metric logger of burn-train: `write` gets a row and the keys of all numbers.
    pub struct Logger<W> {
        rows: MetricRows,
        write: W,
        failure: WriteFailure,
    }

    impl<W: FnMut(&MetricRow, &[String]) -> Result<(), Error> + Send> Logger<W> {
        /// A logger of a run that begins, or continues, at `generation`.
        pub fn new(generation: u64, failure: &WriteFailure, write: W) -> Self {
            Self { rows: MetricRows::new(generation), write, failure: failure.clone() }
        }
    }

    impl<W: FnMut(&MetricRow, &[String]) -> Result<(), Error> + Send> MetricLogger for Logger<W> {
        fn log(&mut self, update: MetricsUpdate, epoch: usize, split: &Split) {
            if let Some(row) = self.rows.row(&update, epoch, split)
                && let Err(error) = (self.write)(&row, self.rows.keys())
            {
                locked(&self.failure).get_or_insert(error);
            }
        }

        fn read_numeric(&mut self, _name: &str, _epoch: usize, _split: &Split) -> Result<Vec<NumericEntry>, String> {
            Ok(Vec::new())
        }

        fn log_metric_definition(&mut self, definition: MetricDefinition) {
            self.rows.define(definition);
        }

        fn log_epoch_summary(&mut self, _summary: EpochSummary) {}
    }
}
