//! A run's metrics as event files of TensorBoard.
//!
//! An event file is a sequence of records: the length of the data, its checksum, the data, its checksum. The data is a protocol buffer of
//! type `Event`, of which scalars need six fields, written here by hand: a generator of all of TensorFlow's messages would be larger than
//! this crate.

use super::json::Failure;
use super::rows::{Row, Rows};
use crate::durable;
use crate::error::Error;
use burn::train::logger::MetricLogger;
use burn::train::metric::store::{EpochSummary, MetricsUpdate, Split};
use burn::train::metric::{MetricDefinition, NumericEntry};
use crc32c::crc32c;
use eggroll_core::sync::locked;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The folder of event files.
pub(super) const FOLDER: &str = "tensorboard";
/// What the first record of a file says.
const VERSION: &str = "brain.Event:2";

/// Event files of a run, one folder for each split, one file for each process.
pub(super) struct EventFiles {
    folder: PathBuf,
    /// Where the run begins, or continues.
    generation: u64,
    rows: Rows,
    files: BTreeMap<String, File>,
    failure: Failure,
}

impl EventFiles {
    /// Event files in a folder, for a run that begins or continues at `generation`: each is made with its first row.
    pub fn new(folder: PathBuf, generation: u64, failure: Failure) -> Self {
        Self { folder, generation, rows: Rows::new(generation), files: BTreeMap::new(), failure }
    }

    fn write(&mut self, row: &Row) -> Result<(), Error> {
        let (split, time) = (row.split.to_string(), now());
        let folder = self.folder.join(&split);
        if !self.files.contains_key(&split) {
            durable::create_folder(&folder)?;
            let file = begin(&folder, time, self.generation).map_err(Error::io(&folder))?;
            self.files.insert(split.clone(), file);
        }
        let file = self.files.get_mut(&split).expect("made above");
        let values = row.numbers.iter().flat_map(|(key, number)| message(1, &value(key, *number as f32)));
        let event = event(time, row.generation, &message(5, &values.collect::<Vec<u8>>()));
        file.write_all(&record(&event)).map_err(Error::io(&folder))
    }
}

/// Makes the file of this process. TensorBoard reads files in the order of their names; of those that other processes have left it drops what
/// belongs to this generation and later ones.
fn begin(folder: &Path, time: f64, generation: u64) -> io::Result<File> {
    // Also of a run that begins again because it never reached a checkpoint.
    let is_first = fs::read_dir(folder)?.next().is_none();
    for number in 0.. {
        let path = folder.join(format!("events.out.tfevents.{:010}.{number}.eggroll", time as u64));
        let mut file = match OpenOptions::new().write(true).create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            opened => opened?,
        };
        file.write_all(&record(&event(time, 0, &message(3, VERSION.as_bytes()))))?;
        if !is_first {
            // A session log that says START.
            file.write_all(&record(&event(time, generation, &message(7, &[1 << 3, 1]))))?;
        }
        return Ok(file);
    }
    unreachable!("numbers do not end")
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// A record around data.
fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    [&length[..], &masked(&length), data, &masked(data)].concat()
}

/// The checksum of a record's parts: turned and moved, because data may hold checksums itself.
fn masked(data: &[u8]) -> [u8; 4] {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// An `Event`: when, at which step, what.
fn event(time: f64, step: u64, what: &[u8]) -> Vec<u8> {
    [&[1 << 3 | 1][..], &time.to_le_bytes(), &[2 << 3], &varint(step), what].concat()
}

/// A `Summary.Value`: a name and a number.
fn value(name: &str, number: f32) -> Vec<u8> {
    [&message(1, name.as_bytes())[..], &[2 << 3 | 5], &number.to_le_bytes()].concat()
}

/// A field of bytes, a text or a message.
fn message(field: u8, content: &[u8]) -> Vec<u8> {
    [&[field << 3 | 2][..], &varint(content.len() as u64), content].concat()
}

/// A number in groups of seven bits, the lowest first.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 1 << 7 {
        bytes.push(number as u8 | 1 << 7);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

impl MetricLogger for EventFiles {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers: the checksum of nine digits (RFC 3720, appendix B.4, has others of the same polynomial), and numbers of the protocol
    /// buffers' documentation.
    #[test]
    fn parts_of_records_are_as_specified() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!((varint(1), varint(150), varint(300)), (vec![1], vec![0x96, 0x01], vec![0xac, 0x02]));
        assert_eq!(message(2, b"testing"), b"\x12\x07testing");
        let record = record(b"ab");
        assert_eq!((record.len(), &record[..8]), (8 + 4 + 2 + 4, &[2, 0, 0, 0, 0, 0, 0, 0][..]));
    }
}
