//! Files that are read by ranges: nothing is allocated for a range outside the file.

use super::error::LoadError;
use eggroll_core::sync::locked;
use std::fs::{self, File};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Most bytes of a text: a sparse file may be long without using disk space.
const LONGEST_TEXT: u64 = 1 << 29;

/// An open file and its length.
#[derive(Debug)]
pub(crate) struct SourceFile {
    path: PathBuf,
    len: u64,
    file: Mutex<File>,
}

impl SourceFile {
    /// Opens a regular file: a pipe or a device has no length, and could block for ever.
    pub(crate) fn open(path: &Path) -> Result<Self, LoadError> {
        let metadata = fs::metadata(path).map_err(LoadError::io(path, "open"))?;
        if !metadata.is_file() {
            return Err(LoadError::NoModel { path: path.to_owned(), found: "something that is not a file".into() });
        }
        let file = File::open(path).map_err(LoadError::io(path, "open"))?;
        let len = file.metadata().map_err(LoadError::io(path, "open"))?.len();
        Ok(Self { path: path.to_owned(), len, file: Mutex::new(file) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file when it was opened.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Fills the buffer with the bytes from `offset` on.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), LoadError> {
        let mut file = locked(&self.file);
        let read = file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(buffer));
        read.map_err(LoadError::io(&self.path, "read"))
    }

    /// The bytes of a range, or `None` where the file ends before it.
    pub(crate) fn range(&self, offset: u64, len: u64) -> Result<Option<Vec<u8>>, LoadError> {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.len);
        let (true, Ok(size)) = (inside, usize::try_from(len)) else { return Ok(None) };
        let mut bytes = vec![0; size];
        self.read_at(offset, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// A reader from the beginning of the file, for a header of unknown length.
    pub(crate) fn read_header<T>(
        &self,
        read: impl FnOnce(&mut dyn Read) -> Result<T, LoadError>,
    ) -> Result<T, LoadError> {
        let mut file = locked(&self.file);
        file.seek(SeekFrom::Start(0)).map_err(LoadError::io(&self.path, "read"))?;
        read(&mut BufReader::with_capacity(1 << 16, &mut *file))
    }
}

/// Reads a JSON file, if it exists; a byte order mark in front is left out.
pub(crate) fn read_json(path: &Path) -> Result<Option<serde_json::Value>, LoadError> {
    let Some(text) = read_text(path)? else { return Ok(None) };
    let json = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let refuse = |error: serde_json::Error| {
        let begin = begin(text.as_bytes());
        LoadError::malformed(path, "JSON", format!("{error}; it begins with {begin}"))
    };
    serde_json::from_str(json).map(Some).map_err(refuse)
}

/// The first bytes of a file, for a message: they reveal a web page or a pointer in its place.
pub(crate) fn begin(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes[..bytes.len().min(24)].escape_ascii())
}

/// Reads a text file, if it exists.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, LoadError> {
    if !path.exists() {
        return Ok(None);
    }
    let source = SourceFile::open(path)?;
    if source.len() > LONGEST_TEXT {
        let found = source.len();
        return Err(LoadError::malformed(
            path,
            "text",
            format!("it has {found} bytes, expected {LONGEST_TEXT} at most"),
        ));
    }
    let bytes = source.range(0, source.len())?.unwrap_or_default();
    String::from_utf8(bytes).map(Some).map_err(|error| LoadError::malformed(path, "UTF-8", error))
}
