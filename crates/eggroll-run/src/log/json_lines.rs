//! JSON-lines logs.

use crate::append_file::Tail;
use crate::durable::{move_aside, replace};
use crate::error::Error;
use crate::lock::Lock;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A log of one JSON object per line, flushed line by line.
#[derive(Debug)]
pub struct JsonLines {
    path: PathBuf,
    /// Opened with the first line: a log without lines needs no write access.
    tail: Option<Tail>,
    _lock: Lock,
}

impl JsonLines {
    /// Opens a log for a run that begins, or continues, at `generation`. Lines of that generation and later ones, left by a run that
    /// got further than its last checkpoint, are dropped. So are lines that were cut off or damaged. A log without any other line is
    /// moved to `NAME.previous-1` and so on. No other process can open it meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the file; [`RunError::InUse`](crate::RunError::InUse).
    pub fn open(path: impl Into<PathBuf>, generation: u64) -> Result<Self, Error> {
        let path = path.into();
        let lock = Lock::file(&path)?;
        keep_before(&path, generation)?;
        Ok(Self { path, tail: None, _lock: lock })
    }

    /// The lines of a log that parse as `T`; none if there is no log.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the file.
    pub fn read<T: DeserializeOwned>(path: impl AsRef<Path>) -> Result<Vec<T>, Error> {
        let bytes = bytes(path.as_ref())?;
        Ok(lines(&bytes).filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    /// Appends one line. If that fails, for example on a full disk, the log is unchanged, and the line is written with the next one.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the file.
    pub fn write(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let mut text = serde_json::to_vec(line).map_err(|error| Error::io(&self.path)(error.into()))?;
        text.push(b'\n');
        let tail = match &mut self.tail {
            Some(tail) => tail,
            None => self.tail.insert(Tail::open(&self.path).map_err(Error::io(&self.path))?),
        };
        tail.push(&text);
        tail.flush().map_err(Error::io(&self.path))
    }

    /// Flushes the log to disk.
    #[cfg(feature = "learner")]
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        self.tail.as_mut().map_or(Ok(()), Tail::sync).map_err(Error::io(&self.path))
    }
}

/// Rewrites a log to its lines before `generation`, if it has others. A log that would be empty is moved aside: it may be all that
/// remains of a run.
fn keep_before(path: &Path, generation: u64) -> Result<(), Error> {
    let bytes = bytes(path)?;
    let before = |line: &&[u8]| {
        let value: Option<Value> = serde_json::from_slice(line).ok();
        value.and_then(|value| value["generation"].as_u64()).is_some_and(|found| found < generation)
    };
    let mut kept: Vec<&[u8]> = lines(&bytes).filter(before).collect();
    kept.push(b"");
    let kept = kept.join(&b'\n');
    match kept.is_empty() && lines(&bytes).next().is_some() {
        true => move_aside(path).map(drop),
        false if kept == bytes => Ok(()),
        false => replace(path, &kept),
    }
}

/// The contents of a log.
fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(Error::io(path)),
    }
}

/// Its lines as bytes: a damaged one may not be text.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}
