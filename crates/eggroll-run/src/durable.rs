//! Files and folders that survive a crash and a power failure: with either the old content or the new, complete.

use crate::error::Error;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// Suffix of drafts.
pub(crate) const DRAFT: &str = ".draft";

/// Replaces a file in one step, or creates it; folders that are missing are created too.
///
/// The content goes to a draft of a random hidden name in the same folder, is flushed to disk and renamed. When that fails, the draft is
/// removed and the file is as before. Only a process that is killed while it writes leaves its draft, `.NAME.RANDOM.draft`. A link in the
/// place of the file is replaced, not followed.
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
        let mut draft = draft(folder, path)?;
        draft.write_all(content)?;
        draft.as_file().sync_all()?;
        draft.persist(path)?;
        Ok(())
    };
    write().map_err(Error::io(path))?;
    sync(folder)
}

/// [`replace`], unless the file has this content already: then nothing is written, so it works in a read-only folder.
pub(crate) fn replace_if_changed(path: &Path, content: &[u8]) -> Result<(), Error> {
    match fs::read(path) {
        Ok(found) if found == content => Ok(()),
        _ => replace(path, content),
    }
}

/// Creates a folder and missing parent folders; all of them survive a power failure.
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

/// Moves a file or a folder to `NAME.previous-1`, or the first such number that is free, and returns the new path. Nothing is replaced.
///
/// # Errors
///
/// [`Error::Io`] with the path.
pub fn move_aside(path: impl AsRef<Path>) -> Result<PathBuf, Error> {
    let path = path.as_ref();
    let name = path.file_name().ok_or_else(|| Error::io(path)(ErrorKind::InvalidInput.into()))?;
    let numbered = |number: u64| {
        let mut name = name.to_owned();
        name.push(format!(".previous-{number}"));
        path.with_file_name(name)
    };
    let aside = (1..).map(numbered).find(|aside| !is_taken(aside)).expect("numbers do not end");
    fs::rename(path, &aside).map_err(Error::io(path))?;
    sync(parent(path))?;
    Ok(aside)
}

/// Whether the path names anything, a link to nowhere included.
pub(crate) fn is_taken(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Whether this is the name of a draft of [`replace`], `.NAME.` and six letters or digits, of the file `of` if given.
pub(crate) fn is_draft(name: &str, of: Option<&str>) -> bool {
    let inner = name.strip_prefix('.').and_then(|name| name.strip_suffix(DRAFT));
    inner.and_then(|inner| inner.rsplit_once('.')).is_some_and(|(name, random)| {
        random.len() == 6 && random.bytes().all(|byte| byte.is_ascii_alphanumeric()) && of.is_none_or(|of| name == of)
    })
}

/// Removes drafts of killed writers, of the file `of` if given. The caller holds the lock of the original.
pub(crate) fn sweep(folder: &Path, of: Option<&str>) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        let entry = entry.map_err(Error::io(folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_draft(&name, of) && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            match fs::remove_file(entry.path()) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::io(entry.path())(error)),
                _ => {}
            }
        }
    }
    Ok(())
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
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A file that is removed unless it is renamed, with the permissions of any new file.
fn draft(folder: &Path, path: &Path) -> io::Result<NamedTempFile> {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".");
    let mut builder = Builder::new();
    builder.prefix(&prefix).suffix(DRAFT);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// A folder of a random hidden name, with the permissions of any new folder: the caller renames or removes it.
pub(crate) fn draft_folder(folder: &Path, name: &str) -> io::Result<PathBuf> {
    let prefix = format!(".{name}.");
    let mut builder = Builder::new();
    builder.prefix(&prefix).suffix(DRAFT);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
    Ok(builder.tempdir_in(folder)?.keep())
}
