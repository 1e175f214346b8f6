//! Files that nobody but their owner may read.

use super::error::NatsError;
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
    let found = fs::metadata(path).map_err(io)?;
    if !found.is_file() {
        return Err(refuse("this is no file".to_owned()));
    }
    check_permissions(path, &found)?;
    let (mut text, file) =
        (Zeroizing::new(String::with_capacity(LIMIT as usize + 1)), fs::File::open(path).map_err(io)?);
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

/// Writes a secret to a file of mode 600 in one step; `false` if a file is there and may not be replaced.
pub(super) fn write_secret(path: &Path, text: &str, replace: bool) -> Result<bool, NatsError> {
    let refuse = |error: std::io::Error| NatsError::Key { path: path.to_owned(), reason: error.to_string() };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_private(folder)?;
    let mut draft = tempfile::Builder::new().prefix(".key-").tempfile_in(folder).map_err(refuse)?;
    draft.write_all(text.as_bytes()).and_then(|()| draft.as_file().sync_all()).map_err(refuse)?;
    let written = match replace {
        true => draft.persist(path).map(drop).map_err(|error| error.error),
        false => draft.persist_noclobber(path).map(drop).map_err(|error| error.error),
    };
    match written {
        Ok(()) => Ok(crate::durable::sync(folder).map(|()| true)?),
        Err(error) if !replace && error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(refuse(error)),
    }
}

/// Makes a folder that is not there, for its owner alone.
fn create_private(folder: &Path) -> Result<(), NatsError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    Ok(builder.create(folder).map_err(Error::io(folder))?)
}
