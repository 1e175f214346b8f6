//! The folder of a run: settings and curve, next to what the library writes.

use crate::Failure;
use eggroll_run::durable;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Files that only runs have: a folder with one of them may be moved aside for another run.
const OF_A_RUN: [&str; 2] = ["settings.json", "training.json"];

/// A folder that cannot be that of a new run. Nothing has been changed.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// `.`, `..`, `/` and the like.
    #[error("{0:?} cannot be the folder of a new run: the path must end in the folder's own name")]
    Name(PathBuf),
    /// A file, or a folder with something else in it.
    #[error("{0:?} exists and is not a run (no settings.json, no training.json): name another folder")]
    NotARun(PathBuf),
}

/// Files of a run.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at `path`, which need not be there yet. A slash or a dot behind its name changes nothing.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().components().collect() }
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Refuses a folder that a new run cannot have: cheap, and so the first thing to do.
    ///
    /// # Errors
    ///
    /// [`FolderError`] with the path.
    pub fn check(&self) -> Result<(), FolderError> {
        if self.path.file_name().is_none() {
            return Err(FolderError::Name(self.path.clone()));
        }
        match self.is_vacant() || OF_A_RUN.iter().any(|name| self.file(name).is_file()) {
            true => Ok(()),
            false => Err(FolderError::NotARun(self.path.clone())),
        }
    }

    /// Whether nothing is there, or an empty folder.
    fn is_vacant(&self) -> bool {
        match fs::read_dir(&self.path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == ErrorKind::NotFound && !is_taken(&self.path),
        }
    }

    /// Moves an earlier run to `NAME.previous-1`, or the first such number that is free, and saves the settings of a new one.
    /// Deletes and replaces nothing.
    ///
    /// # Errors
    ///
    /// [`FolderError`], or what the file system says.
    pub fn begin(&self, settings: &impl Serialize) -> Result<(), Failure> {
        self.check()?;
        if !self.is_vacant() {
            let aside = self.aside();
            fs::rename(&self.path, &aside)
                .map_err(|error| format!("{} to {}: {error}", self.path.display(), aside.display()))?;
            println!("the earlier run is now in {}", aside.display());
        }
        Ok(durable::replace(self.file("settings.json"), &serde_json::to_vec_pretty(settings)?)?)
    }

    /// The first numbered name that is free.
    fn aside(&self) -> PathBuf {
        let numbered = |number: u64| {
            let mut name = self.path.file_name().expect("checked").to_owned();
            name.push(format!(".previous-{number}"));
            self.path.with_file_name(name)
        };
        (1..).map(numbered).find(|path| !is_taken(path)).expect("numbers do not end")
    }

    /// The settings of the run to continue.
    ///
    /// # Errors
    ///
    /// The file, and why it cannot be used.
    pub fn settings<S: DeserializeOwned>(&self) -> Result<S, Failure> {
        let file = self.file("settings.json");
        let text = fs::read(&file).map_err(|error| format!("nothing to resume, {}: {error}", file.display()))?;
        Ok(serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", file.display()))?)
    }

    /// The lines of the curve's log.
    ///
    /// # Errors
    ///
    /// What is wrong with `curve.jsonl`.
    pub fn points<P: DeserializeOwned>(&self) -> Result<Vec<P>, Failure> {
        let text = fs::read_to_string(self.file("curve.jsonl"))?;
        Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }
}

/// Whether the path names anything, a link to nowhere included.
fn is_taken(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}
