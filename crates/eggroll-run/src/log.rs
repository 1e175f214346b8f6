//! JSON-lines logs.

use crate::durable::replace;
use crate::error::Error;
use crate::lock::Lock;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A log of one JSON object per line, flushed line by line.
#[derive(Debug)]
pub struct JsonLines {
    path: PathBuf,
    /// Opened with the first line: a log that gets none can be where nothing can be written.
    file: Option<File>,
    _lock: Lock,
}

impl JsonLines {
    /// Opens a log for a run that begins, or continues, at `generation`: lines of that generation and later ones, left
    /// by a run that got further than its last checkpoint, are dropped, as are lines that were cut off or damaged. Nobody else can open
    /// it meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the file; [`RunError::InUse`](crate::RunError::InUse).
    pub fn open(path: impl Into<PathBuf>, generation: u64) -> Result<Self, Error> {
        let path = path.into();
        let lock = Lock::file(&path)?;
        keep_before(&path, generation)?;
        Ok(Self { path, file: None, _lock: lock })
    }

    /// The lines of a log that are such values; none if there is no log.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the file.
    pub fn read<T: DeserializeOwned>(path: impl AsRef<Path>) -> Result<Vec<T>, Error> {
        let bytes = bytes(path.as_ref())?;
        Ok(lines(&bytes).filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    /// Appends one line.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the file.
    pub fn write(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let mut write = || {
            let mut text = serde_json::to_vec(line)?;
            text.push(b'\n');
            let file = match &mut self.file {
                Some(file) => file,
                None => self.file.insert(OpenOptions::new().create(true).append(true).open(&self.path)?),
            };
            file.write_all(&text)
        };
        write().map_err(Error::io(&self.path))
    }

    /// Flushes the log to disk.
    #[cfg(feature = "learner")]
    pub(crate) fn sync(path: &Path) -> Result<(), Error> {
        if path.exists() { crate::durable::sync(path) } else { Ok(()) }
    }
}

/// Rewrites a log to its lines before `generation`, if it has others.
fn keep_before(path: &Path, generation: u64) -> Result<(), Error> {
    let bytes = bytes(path)?;
    let before = |line: &&[u8]| {
        let value: Option<Value> = serde_json::from_slice(line).ok();
        value.and_then(|value| value["generation"].as_u64()).is_some_and(|found| found < generation)
    };
    let mut kept: Vec<&[u8]> = lines(&bytes).filter(before).collect();
    kept.push(b"");
    let kept = kept.join(&b'\n');
    if kept == bytes { Ok(()) } else { replace(path, &kept) }
}

/// What is in a log.
fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(Error::io(path)),
    }
}

/// Its lines, of whatever bytes: a damaged one may be no text.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}
