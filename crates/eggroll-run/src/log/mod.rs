//! Logs of a run's numbers: JSON lines, a table, event files of TensorBoard. A resumed run continues all of them.

#[cfg(feature = "csv")]
mod csv;
mod json_lines;
mod row;
#[cfg(feature = "tensorboard")]
mod tensorboard;

#[cfg(feature = "csv")]
pub use self::csv::CsvLog;
pub use json_lines::JsonLines;
pub use row::LogRow;
#[cfg(feature = "tensorboard")]
pub use tensorboard::TensorBoardLog;
