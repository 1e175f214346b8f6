//! The folder of a sweep: a file for every trial that has ended.

use super::trial::{Record, Trial};
use crate::Failure;
use eggroll_run::durable;
use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A sweep's folder, ours alone while we have it.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    _lock: File,
}

impl Store {
    /// Opens or makes the folder, and keeps a copy of the sweep's file in it.
    pub fn open(folder: &Path, file: &Path) -> Result<Self, Failure> {
        let fail = |path: &Path| {
            let path = path.display().to_string();
            move |error: std::io::Error| format!("{path}: {error}")
        };
        let trials = folder.join("trials");
        fs::create_dir_all(&trials).map_err(fail(&trials))?;
        let path = folder.join("lock");
        let lock = File::create(&path).map_err(fail(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(format!("another sweep is running in {}", folder.display()).into());
            }
            Err(TryLockError::Error(error)) => return Err(fail(&path)(error).into()),
        }
        let copy = folder.join("sweep.toml");
        fs::write(&copy, fs::read(file).map_err(fail(file))?).map_err(fail(&copy))?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// A file of the sweep.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Makes the folder of a trial's output, empty.
    pub fn begin(&self, trial: &Trial) -> Result<PathBuf, Failure> {
        let folder = self.folder.join("runs").join(&trial.key);
        let fail = |error| format!("{}: {error}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(fail)?;
        }
        fs::create_dir_all(&folder).map_err(fail)?;
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
        self.folder.join("trials").join(format!("{key}.json"))
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
