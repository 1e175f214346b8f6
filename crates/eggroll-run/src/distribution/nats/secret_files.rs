//! Files that nobody but their owner may read.

use super::error::NatsError;
use crate::durable;
use crate::error::Error;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use zeroize::Zeroizing;

/// Bytes of a file at most: longer than any key or token.
const LIMIT: u64 = 4096;

/// The text of a file with a secret: at most 4,096 bytes, a file that nobody but its owner may read.
///
/// # Errors
///
/// [`NatsError::Key`].
pub(super) fn read_secret(path: &Path) -> Result<Zeroizing<String>, NatsError> {
    let refuse = |reason: String| NatsError::Key { path: path.to_owned(), reason };
    let io = |error: std::io::Error| refuse(error.to_string());
    let is_file = |found: &fs::Metadata| match found.is_file() {
        true => Ok(()),
        false => Err(refuse("this is no file".to_owned())),
    };
    // To open a pipe would wait for its writer.
    is_file(&fs::metadata(path).map_err(io)?)?;
    let file = fs::File::open(path).map_err(io)?;
    // Of the file that is open: another one may be at the path by now.
    let found = file.metadata().map_err(io)?;
    is_file(&found)?;
    check_permissions(path, &found)?;
    let mut text = Zeroizing::new(String::with_capacity(LIMIT as usize + 1));
    match file.take(LIMIT + 1).read_to_string(&mut text) {
        Ok(_) if text.len() as u64 > LIMIT => Err(refuse(format!("more than {LIMIT} bytes: this is no key"))),
        Ok(_) => Ok(text),
        Err(error) => Err(io(error)),
    }
}

#[cfg(unix)]
fn check_permissions(path: &Path, found: &fs::Metadata) -> Result<(), NatsError> {
    use std::os::unix::fs::PermissionsExt;
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let reason = format!("others may read or write it (mode {mode:03o}): chmod 600 {}", path.display());
    Err(NatsError::Key { path: path.to_owned(), reason })
}

#[cfg(not(unix))]
fn check_permissions(_path: &Path, _found: &fs::Metadata) -> Result<(), NatsError> {
    Ok(())
}

/// Refuses a folder in which others can replace a file.
#[cfg(unix)]
pub(super) fn check_folder(folder: &Path) -> Result<(), NatsError> {
    use std::os::unix::fs::PermissionsExt;
    const STICKY: u32 = 0o1000;
    // What is not there has no file.
    let Ok(found) = fs::metadata(folder) else { return Ok(()) };
    let mode = found.permissions().mode() & 0o1777;
    if mode & 0o022 == 0 || mode & STICKY != 0 {
        return Ok(());
    }
    let reason = format!("others may write to this folder of keys (mode {mode:03o}): chmod go-w {}", folder.display());
    Err(NatsError::Key { path: folder.to_owned(), reason })
}

#[cfg(not(unix))]
pub(super) fn check_folder(_folder: &Path) -> Result<(), NatsError> {
    Ok(())
}

/// Writes a secret to a file of mode 600 in one step; `false` if a file is there and may not be replaced.
pub(super) fn write_secret(path: &Path, text: &str, replace: bool) -> Result<bool, NatsError> {
    let refuse = |error: std::io::Error| NatsError::Key { path: path.to_owned(), reason: error.to_string() };
    let folder = durable::parent(path);
    create_private(folder)?;
    check_folder(folder)?;
    let mut draft = tempfile::Builder::new().prefix(".key-").tempfile_in(folder).map_err(refuse)?;
    draft.write_all(text.as_bytes()).and_then(|()| draft.as_file().sync_all()).map_err(refuse)?;
    let written = match replace {
        true => draft.persist(path).map(drop).map_err(|error| error.error),
        false => draft.persist_noclobber(path).map(drop).map_err(|error| error.error),
    };
    match written {
        Ok(()) => Ok(durable::sync(folder).map(|()| true)?),
        Err(error) if !replace && error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(refuse(error)),
    }
}

/// Makes a folder that is not there, for its owner alone.
fn create_private(folder: &Path) -> Result<(), NatsError> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = durable::parent(folder);
    durable::create_folder(above)?;
    #[cfg_attr(not(unix), expect(unused_mut, reason = "the mode is one of Unix"))]
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Ok(()) => Ok(durable::sync(above)?),
        // By another process, in the meantime.
        Err(_) if folder.is_dir() => Ok(()),
        Err(error) => Err(Error::io(folder)(error).into()),
    }
}
