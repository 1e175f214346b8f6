//! Files and folders that outlive a crash and a power failure: afterwards the old content is there or the new, whole.

use crate::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use tempfile::{Builder, NamedTempFile};

/// Replaces a file in one step, or creates it; folders that are missing are created too.
///
/// The content goes to a draft of a unique hidden name in the same folder, is flushed to disk and renamed. When that fails, the draft is
/// removed and the file is as before. Only a process that is killed while it writes leaves its draft, a hidden file that ends in `.draft`.
///
/// # Errors
///
/// [`Error::Io`] with the file or the folder.
///
/// # Example
///
/// ```
/// use eggroll_run::durable;
///
/// # fn main() -> Result<(), eggroll_run::Error> {
/// # let folder = tempfile::tempdir().expect("a folder");
/// # let folder = folder.path();
/// let path = folder.join("trials/first.json");
/// durable::replace(&path, b"{}")?;
/// assert_eq!(std::fs::read(path).unwrap(), b"{}");
/// # Ok(())
/// # }
/// ```
pub fn replace(path: impl AsRef<Path>, content: &[u8]) -> Result<(), Error> {
    let path = path.as_ref();
    let folder = parent(path);
    create_folder(folder)?;
    let write = || -> io::Result<()> {
        let mut draft = draft(folder)?;
        draft.write_all(content)?;
        draft.as_file().sync_all()?;
        draft.persist(path)?;
        Ok(())
    };
    write().map_err(Error::io(path))?;
    sync(folder)
}

/// Creates a folder and the folders above it that are missing, so that all of them are there after a power failure.
///
/// # Errors
///
/// [`Error::Io`] with the folder.
pub fn create_folder(folder: impl AsRef<Path>) -> Result<(), Error> {
    let folder = folder.as_ref();
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let above = parent(folder);
    create_folder(above)?;
    match fs::create_dir(folder) {
        Ok(()) => sync(above),
        // By another process, in the meantime.
        Err(_) if folder.is_dir() => Ok(()),
        Err(error) => Err(Error::io(folder)(error)),
    }
}

/// Writes a file and flushes it to disk, in a folder that nobody reads yet.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(content)?;
        file.sync_all()
    };
    write().map_err(Error::io(path))
}

/// Flushes a file, or a folder's entries, to disk, where the system can.
pub(crate) fn sync(path: &Path) -> Result<(), Error> {
    if cfg!(unix) {
        File::open(path).and_then(|file| file.sync_all()).map_err(Error::io(path))?;
    }
    Ok(())
}

/// The folder that a path is in: for a bare name the current one.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A file that is removed unless it is renamed, with the permissions of any new file.
fn draft(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(".").suffix(".draft");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}
