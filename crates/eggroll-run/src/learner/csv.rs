//! A run's metrics as a table of comma-separated values, which a resumed run continues.

use super::json::Failure;
use super::rows::{PLACES, Row, Rows};
use crate::durable;
use crate::error::Error;
use burn::train::logger::MetricLogger;
use burn::train::metric::MetricDefinition;
use burn::train::metric::NumericEntry;
use burn::train::metric::store::{EpochSummary, MetricsUpdate, Split};
use csv::{ReaderBuilder, StringRecord, Writer, WriterBuilder};
use eggroll_core::sync::locked;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The file of the table.
pub(super) const FILE: &str = "log.csv";

/// A row for each generation that is reported and one for each validation; a column for each metric, empty where a row has no such number.
pub(super) struct CsvMetrics {
    path: PathBuf,
    /// What earlier processes have written, up to where the run continues.
    earlier: Table,
    rows: Rows,
    /// The file and its columns, from the first row on.
    file: Option<(Writer<File>, Vec<String>)>,
    failure: Failure,
}

#[derive(Default)]
struct Table {
    columns: Vec<String>,
    rows: Vec<StringRecord>,
}

impl CsvMetrics {
    /// Continues the table of a run at `generation`: rows of that generation and later ones are dropped with the first row that is written.
    pub fn open(path: PathBuf, generation: u64, failure: Failure) -> Result<Self, Error> {
        let earlier = Table::read(&path, generation).map_err(Error::io(&path))?;
        Ok(Self { path, earlier, rows: Rows::new(generation), file: None, failure })
    }

    fn write(&mut self, row: &Row) -> Result<(), Error> {
        if self.file.is_none() {
            self.file = Some(self.begin().map_err(Error::io(&self.path))?);
        }
        let (file, columns) = self.file.as_mut().expect("begun");
        let places = [row.generation.to_string(), row.epoch.to_string(), row.split.to_string()];
        let number = |column: &String| row.numbers.iter().find(|(key, _)| key == column).map(|(_, number)| *number);
        let numbers = columns[PLACES.len()..].iter().map(|column| number(column).map_or_else(String::new, text));
        let written = file.write_record(places.into_iter().chain(numbers));
        written.map_err(io::Error::from).and_then(|()| file.flush()).map_err(Error::io(&self.path))
    }

    /// Writes what is kept under the columns of then and now, and opens the file behind it.
    fn begin(&mut self) -> io::Result<(Writer<File>, Vec<String>)> {
        let Table { columns: before, rows } = std::mem::take(&mut self.earlier);
        let mut columns: Vec<String> = PLACES.map(str::to_owned).into();
        for column in before.iter().cloned().chain(self.rows.keys()) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        let places: Vec<Option<usize>> =
            columns.iter().map(|column| before.iter().position(|name| name == column)).collect();
        let mut table = Writer::from_writer(Vec::new());
        table.write_record(&columns)?;
        for row in &rows {
            table
                .write_record(places.iter().map(|place| place.and_then(|place| row.get(place)).unwrap_or_default()))?;
        }
        let text = table.into_inner().map_err(|error| io::Error::other(error.to_string()))?;
        durable::replace(&self.path, &text).map_err(io::Error::other)?;
        let file = OpenOptions::new().append(true).open(&self.path)?;
        Ok((WriterBuilder::new().has_headers(false).from_writer(file), columns))
    }
}

/// A number as other programs read it.
fn text(number: f64) -> String {
    if number.is_nan() { "NaN".to_owned() } else { number.to_string() }
}

impl Table {
    /// The complete rows before a generation.
    fn read(path: &Path, generation: u64) -> io::Result<Self> {
        let mut bytes = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            read => read?,
        };
        // What was cut off is no row.
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1));
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(&bytes[..]);
        let columns: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
        let place = columns.iter().position(|column| column == PLACES[0]);
        let before = |row: &StringRecord| {
            let found = row.get(place?)?.parse::<u64>().ok()?;
            (found < generation && row.len() == columns.len()).then_some(())
        };
        let rows = reader.records().filter_map(Result::ok).filter(|row| before(row).is_some()).collect();
        Ok(Self { columns, rows })
    }
}

impl MetricLogger for CsvMetrics {
    fn log(&mut self, update: MetricsUpdate, epoch: usize, split: &Split) {
        if let Some(row) = self.rows.row(&update, epoch, split)
            && let Err(error) = self.write(&row)
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
