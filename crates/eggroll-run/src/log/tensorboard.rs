//! Event files of TensorBoard.
//!
//! An event file is a sequence of records: the length of the data, its checksum, the data, its checksum. The data is a protocol buffer of
//! type `Event`. Scalars need six of its fields, written here by hand: a generator of all of TensorFlow's messages would be larger than
//! this crate.

use super::row::LogRow;
use crate::append_file::Tail;
use crate::durable;
use crate::error::Error;
use crate::lock::Lock;
use crc32c::crc32c;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Contents of the first record of a file.
const VERSION: &str = "brain.Event:2";

/// A log as event files of TensorBoard: one folder for each split, one file for each process.
///
/// # Example
///
/// ```
/// use burn::optim::SgdConfig;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::LinearConfig;
/// use eggroll_run::{TensorBoardLog, TrainingLoop};
/// use eggroll_train::EvolutionStrategyConfig;
/// use std::ops::ControlFlow;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let place = tempfile::tempdir()?;
/// # let folder = place.path().join("tensorboard");
/// let model = LinearConfig::new(2, 1).init(&Device::flex());
/// let x = Tensor::<2>::ones([4, 2], &Device::flex());
/// let mut strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).try_init(&model)?;
/// let mut log = TensorBoardLog::open(&folder, strategy.generation())?;
/// TrainingLoop::new(3).run(
///     &mut strategy,
///     model,
///     |model, population| Ok(population.evaluate(|members| members.mean(model.forward_shared(x.clone())))),
///     |_model, report| {
///         log.write(report)?;
///         Ok(ControlFlow::Continue(()))
///     },
/// )?;
/// assert_eq!(std::fs::read_dir(folder.join("train"))?.count(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TensorBoardLog {
    folder: PathBuf,
    /// Where the run begins, or continues.
    generation: u64,
    files: BTreeMap<&'static str, Tail>,
    _lock: Lock,
}

impl TensorBoardLog {
    /// Opens the event files of a run that begins, or continues, at `generation`. Files are created with their first row; they tell TensorBoard
    /// to drop that generation and later ones from earlier files. No other process can open the folder meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the folder; [`RunError::InUse`](crate::RunError::InUse).
    pub fn open(folder: impl Into<PathBuf>, generation: u64) -> Result<Self, Error> {
        let folder = folder.into();
        let lock = Lock::file(&folder)?;
        Ok(Self { folder, generation, files: BTreeMap::new(), _lock: lock })
    }

    /// Appends the numbers of a row as scalars.
    ///
    /// # Errors
    ///
    /// [`RunError::LogColumn`](crate::RunError::LogColumn) for two numbers with one name; [`Error::Io`] with the
    /// folder.
    pub fn write(&mut self, row: impl Into<LogRow>) -> Result<(), Error> {
        let (row, time) = (row.into(), now());
        row.check()?;
        let folder = self.folder.join(row.split);
        let file = match self.files.entry(row.split) {
            Entry::Occupied(file) => file.into_mut(),
            Entry::Vacant(place) => {
                durable::create_folder(&folder)?;
                place.insert(begin(&folder, time, self.generation).map_err(Error::io(&folder))?)
            }
        };
        let values = row.numbers.iter().flat_map(|(name, number)| message(1, &value(name, *number as f32)));
        file.push(&record(&event(time, row.generation, &message(5, &values.collect::<Vec<u8>>()))));
        file.flush().map_err(Error::io(&folder))
    }
}

/// Creates the file of this process. TensorBoard reads files in the order of their names; in files of earlier processes it then drops this
/// generation and later ones.
fn begin(folder: &Path, time: f64, generation: u64) -> io::Result<Tail> {
    // Also of a run that begins again because it never reached a checkpoint.
    let is_first = fs::read_dir(folder)?.next().is_none();
    for number in 0.. {
        let path = folder.join(format!("events.out.tfevents.{:010}.{number}.eggroll", time as u64));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            created => drop(created?),
        }
        let mut file = Tail::open(&path)?;
        file.push(&record(&event(time, 0, &message(3, VERSION.as_bytes()))));
        if !is_first {
            // A session log that says START.
            file.push(&record(&event(time, generation, &message(7, &[1 << 3, 1]))));
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

/// The checksum of a record's parts: rotated and shifted, because data may hold checksums itself.
fn masked(data: &[u8]) -> [u8; 4] {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// An `Event`: time, step, contents.
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
