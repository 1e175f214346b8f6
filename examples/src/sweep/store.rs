//! The folder of a sweep: a file for every trial that has ended.

use super::trial::{Record, Trial};
use crate::Failure;
use eggroll::run::{RunFolder, durable};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The copy of a sweep's file in its folder, which tells a sweep's folder from another.
const FILE: &str = "sweep.toml";

/// A sweep's folder, ours alone while we have it.
#[derive(Debug)]
pub struct Store {
    folder: RunFolder,
}

impl Store {
    /// Opens or makes the folder, and keeps a copy of the sweep's file in it. A folder that holds anything but a sweep is refused.
    pub fn open(folder: &Path, file: &Path) -> Result<Self, Failure> {
        let text = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let folder = RunFolder::new(folder).with_files(&[FILE]);
        folder.check()?;
        folder.lock()?;
        durable::replace(folder.file(FILE), &text)?;
        Ok(Self { folder })
    }

    /// A file of the sweep.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.file(name)
    }

    /// Makes the folder of a trial's output, empty: what an earlier attempt has left is moved aside.
    pub fn begin(&self, trial: &Trial) -> Result<PathBuf, Failure> {
        let folder = self.file("runs").join(&trial.key);
        if folder.exists() {
            durable::move_aside(&folder)?;
        }
        durable::create_folder(&folder)?;
        Ok(folder)
    }

    /// The record of a trial, if it has ended.
    pub fn load(&self, trial: &Trial) -> Result<Option<Record>, Failure> {
        let path = self.record(&trial.key);
        if !path.exists() {
            return Ok(None);
        }
        let read = || -> Result<Record, Failure> { Ok(serde_json::from_slice(&fs::read(&path)?)?) };
        read().map(Some).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    /// Saves a record: it is there completely or not at all.
    pub fn save(&self, record: &Record) -> Result<(), Failure> {
        Ok(durable::replace(self.record(&record.key), &serde_json::to_vec_pretty(record)?)?)
    }

    fn record(&self, key: &str) -> PathBuf {
        self.file("trials").join(format!("{key}.json"))
    }
}

/// The last bytes of a file, as text.
pub fn tail(path: &Path, bytes: u64) -> Result<String, Failure> {
    let read = || {
        let mut file = File::open(path)?;
        let start = file.metadata()?.len().saturating_sub(bytes);
        file.seek(SeekFrom::Start(start))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        Ok(end)
    };
    let end = read().map_err(|error: std::io::Error| format!("{}: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&end).into_owned())
}
