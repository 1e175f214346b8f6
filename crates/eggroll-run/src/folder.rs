//! The folder of a run.

use crate::durable;
use crate::error::{Error, RunError};
use crate::lock::Lock;
use eggroll_core::sync::locked;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The file of a program's own settings.
const SETTINGS: &str = "settings.json";
/// Files that only runs have: a folder with one of them may be moved aside for another run.
const OF_A_RUN: [&str; 2] = [SETTINGS, "training.json"];

/// The folder of a run: locked while it is written, and never in place of other files.
///
/// A path without a name (`.`, `..`, `/`), a file, and a folder that holds anything but a run are refused. An earlier run is moved
/// to `NAME.previous-1`, or the first such number that is free; nothing is deleted or replaced. [`begin`](Self::begin) and
/// [`resume`](Self::resume) lock the folder until all clones of this value are dropped, or the process ends, however it ends.
///
/// # Example
///
/// ```
/// use eggroll_run::{Error, RunError, RunFolder};
///
/// # fn main() -> Result<(), Error> {
/// # let home = tempfile::tempdir().expect("a folder");
/// # let home = home.path();
/// let folder = RunFolder::new(home.join("first"));
/// folder.begin(&"any settings")?;
/// let other = RunFolder::new(home.join("first"));
/// assert!(matches!(other.resume::<String>(), Err(Error::Run(RunError::InUse { .. }))));
/// drop(folder);
/// assert_eq!(other.resume::<String>()?, "any settings");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// Files of which a run has one at least.
    files: Vec<&'static str>,
    lock: Arc<Mutex<Option<Lock>>>,
}

/// A path as it is, not locked yet.
impl<P: AsRef<Path>> From<P> for RunFolder {
    fn from(path: P) -> Self {
        Self::new(path)
    }
}

impl RunFolder {
    /// The folder at `path`, which need not exist yet. A trailing slash or dot changes nothing.
    pub fn new(path: impl AsRef<Path>) -> Self {
        let path: PathBuf = path.as_ref().components().collect();
        let path = if path.as_os_str().is_empty() { PathBuf::from(".") } else { path };
        Self { path, files: OF_A_RUN.to_vec(), lock: Arc::default() }
    }

    /// Sets the files that identify a run's folder; one of them is enough. By default `settings.json` and `training.json`.
    pub fn with_files(mut self, files: &[&'static str]) -> Self {
        self.files = files.to_vec();
        self
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Refuses a folder that a new run cannot have. Cheap: call it first.
    ///
    /// # Errors
    ///
    /// [`RunError::FolderName`], [`RunError::NotARun`].
    pub fn check(&self) -> Result<(), Error> {
        if self.path.file_name().is_none() {
            return Err(RunError::FolderName { path: self.path.clone() }.into());
        }
        self.check_content()
    }

    /// Refuses a folder that holds anything but a run.
    pub(crate) fn check_content(&self) -> Result<(), Error> {
        match self.is_vacant()? || self.files.iter().any(|name| self.file(name).is_file()) {
            true => Ok(()),
            false => Err(RunError::NotARun { path: self.path.clone(), files: self.files.join(", ") }.into()),
        }
    }

    /// Locks the folder, moves an earlier run aside, and saves the settings of a new one. Returns the new path of the earlier
    /// run.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check); [`RunError::InUse`] if another process writes the folder; [`Error::Io`].
    pub fn begin(&self, settings: &impl Serialize) -> Result<Option<PathBuf>, Error> {
        self.check()?;
        self.lock()?;
        let mut aside = None;
        if !self.is_vacant()? {
            if cfg!(not(unix)) {
                // A folder with an open file cannot be renamed on some systems.
                locked(&self.lock).take();
            }
            let moved = durable::move_aside(&self.path)?;
            if let Some(mut lock) = locked(&self.lock).take() {
                lock.renamed(&moved);
            }
            self.lock()?;
            aside = Some(moved);
        }
        self.save_settings(settings)?;
        Ok(aside)
    }

    /// Locks the folder and reads the settings of the run in it.
    ///
    /// # Errors
    ///
    /// [`RunError::Configuration`] if there are none, or none that this program reads; [`RunError::InUse`].
    pub fn resume<S: DeserializeOwned>(&self) -> Result<S, Error> {
        let settings = self.settings()?;
        self.lock()?;
        Ok(settings)
    }

    /// The settings of the run in the folder, without a lock.
    ///
    /// # Errors
    ///
    /// [`RunError::Configuration`] if there are none, or none that this program reads.
    pub fn settings<S: DeserializeOwned>(&self) -> Result<S, Error> {
        let path = self.file(SETTINGS);
        let refuse = |path: PathBuf, reason: String| RunError::Configuration { path, reason };
        let text = fs::read(&path).map_err(|error| refuse(path.clone(), format!("no run to continue: {error}")))?;
        // Editors write byte order marks.
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&text);
        Ok(serde_json::from_slice(text).map_err(|error| refuse(path, error.to_string()))?)
    }

    /// Saves the program's settings, unless they are there already.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the file, which is then unchanged.
    pub fn save_settings(&self, settings: &impl Serialize) -> Result<(), Error> {
        let path = self.file(SETTINGS);
        let text = serde_json::to_vec_pretty(settings).map_err(|error| Error::io(&path)(error.into()))?;
        durable::replace_if_changed(&path, &text)
    }

    /// Locks the folder, unless this value or a clone of it has done so, and creates it if it is not there.
    ///
    /// # Errors
    ///
    /// [`RunError::InUse`] if another process writes the folder; [`Error::Io`].
    pub fn lock(&self) -> Result<(), Error> {
        let mut lock = locked(&self.lock);
        if lock.is_none() {
            *lock = Some(Lock::folder(&self.path)?);
        }
        Ok(())
    }

    /// Whether there is nothing, or a folder with only leftovers of killed processes.
    fn is_vacant(&self) -> Result<bool, Error> {
        let mut entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(!durable::is_taken(&self.path)),
            Err(error) if error.kind() == ErrorKind::NotADirectory => return Ok(false),
            Err(error) => return Err(Error::io(&self.path)(error)),
        };
        let is_ours = |name: &str| Lock::is_leftover(name);
        Ok(entries.all(|entry| entry.is_ok_and(|entry| is_ours(&entry.file_name().to_string_lossy()))))
    }
}
