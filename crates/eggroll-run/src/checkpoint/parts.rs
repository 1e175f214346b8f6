//! The files of a checkpoint: written with their checksums, and read only if the checksums match.

use super::names::generation_of;
use super::parameters;
use super::state::{CheckpointState, FORMAT, Part, STRATEGY};
use crate::digest::sha256;
use crate::durable;
use crate::error::{Error, RunError, SavedError};
use burn::module::Module;
use burn::store::{ModuleRecord, RecordError};
use burn::tensor::Bytes;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Checksums of all other files, in the format of `sha256sum`.
const SUMS: &str = "SHA256SUMS";

/// A checkpoint that is being written.
pub(super) struct Draft<'a> {
    folder: &'a Path,
    parts: BTreeMap<String, Part>,
    sums: String,
}

impl<'a> Draft<'a> {
    pub fn new(folder: &'a Path) -> Self {
        Self { folder, parts: BTreeMap::new(), sums: String::new() }
    }

    /// Writes a module as a Burn record.
    pub fn module<M: Module>(&mut self, name: &str, module: &M) -> Result<(), Error> {
        self.write(name, module.clone().into_record().into_bytes())?;
        self.parts.entry(name.to_owned()).and_modify(|part| part.parameters = parameters::of(module));
        Ok(())
    }

    /// Writes a part and flushes it to disk.
    pub fn write<T: Deref<Target = [u8]>>(&mut self, name: &str, bytes: Result<T, RecordError>) -> Result<(), Error> {
        let path = self.folder.join(name);
        let bytes = bytes.map_err(Error::record(&path))?;
        durable::write(&path, &bytes)?;
        self.sums += &format!("{}  {name}\n", sha256(&bytes));
        self.parts.insert(name.to_owned(), Part { bytes: bytes.len() as u64, parameters: Vec::new() });
        Ok(())
    }

    /// Writes the state and the checksums.
    pub fn finish(mut self, mut state: CheckpointState) -> Result<(), Error> {
        state.parts = std::mem::take(&mut self.parts);
        let path = self.folder.join(STRATEGY);
        let json = serde_json::to_vec_pretty(&state)
            .map_err(|error| SavedError::Checkpoint { path, reason: error.to_string() })?;
        self.write(STRATEGY, Ok(json))?;
        durable::write(&self.folder.join(SUMS), self.sums.as_bytes())?;
        durable::sync(self.folder)
    }
}

/// An existing checkpoint.
pub(super) struct SavedCheckpoint {
    folder: PathBuf,
    sums: BTreeMap<String, String>,
    pub state: CheckpointState,
}

#[derive(Deserialize)]
struct FormatVersion {
    format: u32,
}

impl SavedCheckpoint {
    /// Reads the state of a checkpoint.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(STRATEGY);
        let text = fs::read(&path).map_err(Error::io(&path))?;
        // The first format had no checksums, and says so here.
        let sums = sums(folder)?;
        if let Some(sums) = &sums {
            check(sums, &path, STRATEGY, &text)?;
        }
        let refuse =
            |error: serde_json::Error| SavedError::Checkpoint { path: path.clone(), reason: error.to_string() };
        let FormatVersion { format } = serde_json::from_slice(&text).map_err(refuse)?;
        if format != FORMAT {
            return Err(SavedError::Format { path, found: format, known: FORMAT }.into());
        }
        let state: CheckpointState = serde_json::from_slice(&text).map_err(refuse)?;
        let named = folder.file_name().and_then(|name| generation_of(&name.to_string_lossy()));
        if let Some(expected) = named.filter(|named| *named != state.generation) {
            let (found, expected) = (state.generation.to_string(), expected.to_string());
            return Err(RunError::OtherRun { path, field: "generation".to_owned(), found, expected }.into());
        }
        let missing = || Error::io(folder.join(SUMS))(io::ErrorKind::NotFound.into());
        Ok(Self { folder: folder.to_owned(), sums: sums.ok_or_else(missing)?, state })
    }

    /// The state's file.
    pub fn path(&self) -> PathBuf {
        self.file(STRATEGY)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Loads a module into `module`, whose values do not matter.
    pub fn module<M: Module>(&self, name: &str, module: M) -> Result<M, Error> {
        let part = self.part(name)?;
        if let Some(difference) = parameters::difference(&part.parameters, &parameters::of(&module)) {
            return Err(SavedError::OtherModel { path: self.folder.join(name), difference }.into());
        }
        self.read(name, |bytes| module.try_load_record(ModuleRecord::from_bytes(bytes)?))
    }

    /// Reads a part.
    pub fn read<T>(&self, name: &str, parse: impl FnOnce(Bytes) -> Result<T, RecordError>) -> Result<T, Error> {
        let (path, expected) = (self.folder.join(name), self.part(name)?.bytes);
        let bytes = fs::read(&path).map_err(Error::io(&path))?;
        let found = bytes.len() as u64;
        if found != expected {
            return Err(SavedError::FileLength { path, expected, found }.into());
        }
        check(&self.sums, &path, name, &bytes)?;
        // Burn panics on some bytes.
        match catch_unwind(AssertUnwindSafe(|| parse(Bytes::from_bytes_vec(bytes)))) {
            Ok(parsed) => parsed.map_err(Error::record(&path)),
            Err(_) => {
                let reason = "Burn cannot read it: it was written wrongly".to_owned();
                Err(SavedError::Checkpoint { path, reason }.into())
            }
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.state.parts.contains_key(name)
    }

    fn part(&self, name: &str) -> Result<&Part, Error> {
        let missing = || SavedError::Checkpoint {
            path: self.folder.join(name),
            reason: "the checkpoint has no such part".to_owned(),
        };
        Ok(self.state.parts.get(name).ok_or_else(missing)?)
    }
}

/// The checksums of a checkpoint by file; `None` if it has none.
fn sums(folder: &Path) -> Result<Option<BTreeMap<String, String>>, Error> {
    let path = folder.join(SUMS);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(path)(error)),
    };
    let entry = |line: &str| line.split_once("  ").map(|(sum, name)| (name.to_owned(), sum.to_owned()));
    Ok(Some(String::from_utf8_lossy(&text).lines().filter_map(entry).collect()))
}

fn check(sums: &BTreeMap<String, String>, path: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let found = sha256(bytes);
    match sums.get(name) {
        Some(expected) if *expected == found => Ok(()),
        expected => {
            let expected = expected.map_or_else(|| format!("not in {SUMS}"), Clone::clone);
            Err(SavedError::Checksum { path: path.to_owned(), expected, found }.into())
        }
    }
}
