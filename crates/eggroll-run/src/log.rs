//! JSON-lines logs.

use crate::durable::{create_folder, replace};
use crate::error::Error;
use serde::Serialize;
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A log of one JSON object per line, flushed line by line.
#[derive(Debug)]
pub struct JsonLines {
    path: PathBuf,
    file: BufWriter<File>,
}

impl JsonLines {
    /// Opens a log for a run that begins, or continues, at `generation`: lines of that generation and later ones, left
    /// by a run that got further than its last checkpoint, are dropped, as is a line that was cut off.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the file.
    pub fn open(path: impl Into<PathBuf>, generation: u64) -> Result<Self, Error> {
        let path = path.into();
        if let Some(folder) = path.parent() {
            create_folder(folder)?;
        }
        keep_before(&path, generation)?;
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(Error::io(&path))?;
        Ok(Self { path, file: BufWriter::new(file) })
    }

    /// Appends one line.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the file.
    pub fn write(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let write = |file: &mut BufWriter<File>| {
            serde_json::to_writer(&mut *file, line)?;
            file.write_all(b"\n")?;
            file.flush()
        };
        write(&mut self.file).map_err(Error::io(&self.path))
    }
}

/// Rewrites a log to its lines before `generation`.
fn keep_before(path: &Path, generation: u64) -> Result<(), Error> {
    if !path.exists() {
        return Ok(());
    }
    let text = fs::read_to_string(path).map_err(Error::io(path))?;
    let before = |line: &&str| {
        let value: Option<Value> = serde_json::from_str(line).ok();
        value.and_then(|value| value["generation"].as_u64()).is_some_and(|found| found < generation)
    };
    let mut kept: Vec<&str> = text.lines().filter(before).collect();
    kept.push("");
    replace(path, kept.join("\n").as_bytes())
}
