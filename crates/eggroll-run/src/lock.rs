//! Locks of folders and files during writes: a second process is refused.

use crate::durable;
use crate::error::{Error, RunError};
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Attempts at a lock whose file another process removes in the meantime.
const ATTEMPTS: usize = 100;
/// The longest process ID, in bytes.
const DIGITS: u64 = 20;
/// The file that locks a folder.
const OF_FOLDER: &str = ".lock";

/// A lock that the system releases when it is dropped, or when the process ends in any way.
#[derive(Debug)]
pub(crate) struct Lock {
    /// `None` if this process cannot write.
    file: Option<File>,
    path: PathBuf,
}

impl Lock {
    /// Locks a folder, creates it if it does not exist, and removes files left by killed writers.
    pub fn folder(folder: &Path) -> Result<Self, Error> {
        Self::of(folder, folder.join(OF_FOLDER), folder, None)
    }

    /// Locks a file, which need not exist, and removes files left by its killed writers.
    pub fn file(path: &Path) -> Result<Self, Error> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let folder = durable::parent(path);
        Self::of(folder, folder.join(format!(".{name}{OF_FOLDER}")), path, Some(&name))
    }

    /// Whether this is the name of a file that a killed process has left in an empty folder.
    pub fn is_leftover(name: &str) -> bool {
        name == OF_FOLDER || durable::is_draft(name, None)
    }

    /// Follows a locked folder that has been renamed.
    pub fn renamed(&mut self, folder: &Path) {
        self.path = folder.join(OF_FOLDER);
    }

    /// The lock at `path` of something in `folder`, whose drafts are removed.
    fn of(folder: &Path, path: PathBuf, locked: &Path, drafts_of: Option<&str>) -> Result<Self, Error> {
        durable::create_folder(folder)?;
        let file = take(&path, locked)?;
        if file.is_some() {
            durable::sweep(folder, drafts_of)?;
        }
        Ok(Self { file, path })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Elsewhere an open file cannot be removed, or not told from another: it stays, which is harmless.
        if cfg!(unix)
            && let Some(file) = &self.file
            && is_at(file, &self.path).unwrap_or(false)
        {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Opens and locks the file at `path`, and writes this process's ID into it. `None` if this process cannot write: a run that has ended can
/// still be read.
fn take(path: &Path, locked: &Path) -> Result<Option<File>, Error> {
    for _ in 0..ATTEMPTS {
        let Some(mut file) = open(path).map_err(Error::io(path))? else {
            return Ok(None);
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let process = holder(file);
                return Err(RunError::InUse { path: locked.to_owned(), process }.into());
            }
            // File systems without locks: the run matters more than its lock.
            Err(TryLockError::Error(error)) => {
                let locked = locked.display();
                crate::print_note!(
                    "warning: {locked} cannot be locked ({error}): make sure that no other process writes there"
                );
                return Ok(None);
            }
        }
        // The holder may have removed it since it was opened.
        if is_at(&file, path).map_err(Error::io(path))? {
            // Informative only: nothing depends on it.
            drop(file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())));
            return Ok(Some(file));
        }
    }
    Err(RunError::InUse { path: locked.to_owned(), process: None }.into())
}

/// Opens the file at `path`, or creates it; `None` if it does not exist and cannot be created.
fn open(path: &Path) -> io::Result<Option<File>> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        return Err(link());
    }
    match OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if matches!(error.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) => {
            // Another user's file can be locked all the same.
            match File::open(path) {
                Ok(file) => Ok(Some(file)),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

/// The process named in a lock's file.
fn holder(mut file: File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(DIGITS).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// Whether the open file is the one at `path`; a link there is refused.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let (own, there) = match (file.metadata()?, fs::symlink_metadata(path)) {
        (own, Ok(there)) => (own, there),
        (_, Err(error)) if error.kind() == ErrorKind::NotFound => return Ok(false),
        (_, Err(error)) => return Err(error),
    };
    if there.is_symlink() {
        return Err(link());
    }
    Ok(is_same(&own, &there))
}

fn link() -> io::Error {
    io::Error::new(ErrorKind::AlreadyExists, "a link is in the place of the lock: remove it")
}

#[cfg(unix)]
fn is_same(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}
