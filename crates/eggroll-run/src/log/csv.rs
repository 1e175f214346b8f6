//! A table of comma-separated values.

use super::row::{GENERATION, LogRow, SPLIT};
use crate::append_file::Tail;
use crate::durable::{move_aside, replace};
use crate::error::Error;
use crate::lock::Lock;
use csv::{ReaderBuilder, StringRecord, Writer};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A log as a table: a column for each name, empty where a row has no such number. Each row is flushed.
///
/// # Example
///
/// ```
/// use burn::optim::SgdConfig;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::LinearConfig;
/// use eggroll_run::{CsvLog, LogRow, TrainingLoop};
/// use eggroll_train::EvolutionStrategyConfig;
/// use std::ops::ControlFlow;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("log.csv");
/// let model = LinearConfig::new(2, 1).init(&Device::flex());
/// let x = Tensor::<2>::ones([4, 2], &Device::flex());
/// let mut strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).try_init(&model)?;
/// let mut log = CsvLog::open(&path, strategy.generation())?;
/// TrainingLoop::new(3).run(
///     &mut strategy,
///     model,
///     |model, population| Ok(population.evaluate(|members| members.mean(model.forward_shared(x.clone())))),
///     |_model, report| {
///         log.write(report)?;
///         Ok(ControlFlow::Continue(()))
///     },
/// )?;
/// log.write(LogRow::validation(2).with("accuracy", 0.9))?;
/// let text = std::fs::read_to_string(&path)?;
/// let columns = "generation,split,fitness_mean,fitness_best,fitness_worst,non_finite_fitness,sigma,learning_rate,accuracy";
/// assert_eq!(text.lines().next(), Some(columns));
/// assert_eq!(text.lines().count(), 1 + 3 + 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct CsvLog {
    path: PathBuf,
    /// The first row drops rows of this generation and later ones, left by an earlier process.
    generation: u64,
    /// Columns that were declared, or that the file has.
    columns: Vec<String>,
    /// Opened with the first row.
    tail: Option<Tail>,
    /// Rows that could not be written yet.
    pending: Vec<LogRow>,
    _lock: Lock,
}

/// The contents of a file.
#[derive(Default)]
struct CsvTable {
    columns: Vec<String>,
    /// Rows that are kept.
    rows: Vec<StringRecord>,
    /// Whether there are others.
    has_others: bool,
}

impl CsvLog {
    /// Opens the table of a run that begins, or continues, at `generation`. The first write drops rows of that generation and later ones; columns
    /// are kept. A table that would have no row left, for example from another program, is moved to `NAME.previous-1` and so on. No other process
    /// can open the table meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the file; [`RunError::InUse`](crate::RunError::InUse).
    pub fn open(path: impl Into<PathBuf>, generation: u64) -> Result<Self, Error> {
        let path = path.into();
        let lock = Lock::file(&path)?;
        CsvTable::read(&path, generation).map_err(Error::io(&path))?;
        Ok(Self { path, generation, columns: Vec::new(), tail: None, pending: Vec::new(), _lock: lock })
    }

    /// Declares columns, in this order after the columns of the file. An undeclared column is added with the first row that has it, which
    /// rewrites the file.
    pub fn declare(&mut self, columns: impl IntoIterator<Item = impl Into<String>>) {
        for column in columns.into_iter().map(Into::into) {
            if !self.columns.contains(&column) {
                self.columns.push(column);
                self.tail = None;
            }
        }
    }

    /// Appends a row. If that fails, for example on a full disk, the table is unchanged, and the row is written with the next one.
    ///
    /// # Errors
    ///
    /// [`RunError::LogColumn`](crate::RunError::LogColumn) for two numbers with one name; [`Error::Io`] with the file.
    pub fn write(&mut self, row: impl Into<LogRow>) -> Result<(), Error> {
        let row = row.into();
        row.check()?;
        self.declare([GENERATION, SPLIT]);
        self.declare(row.numbers.iter().map(|(name, _)| name));
        self.pending.push(row);
        let tail = match &mut self.tail {
            Some(tail) => tail,
            None => {
                let (columns, tail) = begin(&self.path, self.generation, &self.columns)?;
                (self.columns, self.generation) = (columns, u64::MAX);
                self.tail.insert(tail)
            }
        };
        let rows = self.pending.iter().map(|row| self.columns.iter().map(|column| row.cell(column)));
        tail.push(&lines(rows).map_err(Error::io(&self.path))?);
        match tail.flush() {
            Ok(()) => self.pending.clear(),
            Err(error) => {
                // The columns may have changed by then.
                tail.discard();
                return Err(Error::io(&self.path)(error));
            }
        }
        Ok(())
    }
}

impl LogRow {
    /// The text under a column.
    fn cell(&self, column: &str) -> String {
        match column {
            GENERATION => self.generation.to_string(),
            SPLIT => self.split.to_owned(),
            name => {
                self.numbers.iter().find(|(key, _)| key == name).map_or_else(String::new, |(_, number)| text(*number))
            }
        }
    }
}

/// Rewrites the table to its rows before a generation, with its columns and these, and opens it for more rows.
fn begin(path: &Path, generation: u64, wanted: &[String]) -> Result<(Vec<String>, Tail), Error> {
    let mut table = CsvTable::read(path, generation).map_err(Error::io(path))?;
    if table.rows.is_empty() && table.has_others {
        move_aside(path)?;
        table = CsvTable::default();
    }
    let CsvTable { columns: before, rows, .. } = table;
    let mut columns = before.clone();
    columns.extend(wanted.iter().filter(|column| !before.contains(column)).cloned());
    let places: Vec<Option<usize>> =
        columns.iter().map(|column| before.iter().position(|name| name == column)).collect();
    let cells = |row: StringRecord| {
        places.iter().map(|place| place.and_then(|place| row.get(place)).unwrap_or_default().to_owned()).collect()
    };
    let kept: Vec<Vec<String>> = std::iter::once(columns.clone()).chain(rows.into_iter().map(cells)).collect();
    replace(path, &lines(kept).map_err(Error::io(path))?)?;
    Ok((columns, Tail::open(path).map_err(Error::io(path))?))
}

/// Rows as text.
fn lines(rows: impl IntoIterator<Item = impl IntoIterator<Item = String>>) -> io::Result<Vec<u8>> {
    let mut writer = Writer::from_writer(Vec::new());
    rows.into_iter().try_for_each(|row| writer.write_record(row.into_iter().map(String::into_bytes)))?;
    writer.into_inner().map_err(|error| io::Error::other(error.to_string()))
}

/// A number as other programs read it.
fn text(number: f64) -> String {
    if number.is_nan() { "NaN".to_owned() } else { number.to_string() }
}

impl CsvTable {
    /// The complete rows before a generation.
    fn read(path: &Path, generation: u64) -> io::Result<Self> {
        let mut bytes = match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            read => read?,
        };
        // A row that was cut off does not count.
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1));
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(&bytes[..]);
        let columns: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
        let place = columns.iter().position(|column| column == GENERATION);
        let before = |row: &StringRecord| {
            let found = row.get(place?)?.parse::<u64>().ok()?;
            (found < generation && row.len() == columns.len()).then_some(())
        };
        let (rows, others): (Vec<_>, Vec<_>) =
            reader.records().filter_map(Result::ok).partition(|row| before(row).is_some());
        Ok(Self { columns, rows, has_others: !others.is_empty() })
    }
}
