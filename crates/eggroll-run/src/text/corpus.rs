//! A file of bytes, or a part of one.

use crate::error::{Error, TextError};
use memmap2::Mmap;
use std::fs::{self, File};
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Storage of the bytes.
#[derive(Debug)]
enum Bytes {
    Read(Vec<u8>),
    Mapped(Mmap),
}

/// The bytes of a file, or a part of them: [read](Self::read) into memory, or [mapped](Self::map) where the file is larger. Clones share
/// the bytes.
///
/// # Example
///
/// ```
/// use eggroll_run::text::Text;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("text.txt");
/// std::fs::write(&path, "twenty bytes of text")?;
/// let (train, validation) = Text::read(&path)?.split(0.1)?;
/// assert_eq!(&train[..], b"twenty bytes of te");
/// assert_eq!(&validation[..], b"xt");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Text {
    path: PathBuf,
    bytes: Arc<Bytes>,
    range: Range<usize>,
}

impl Text {
    /// Reads a file into memory; later changes of the file have no effect.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it cannot be read, [`TextError::Length`] if it is empty.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let bytes = fs::read(&path).map_err(Error::io(&path))?;
        Self::of(path, bytes.len(), Bytes::Read(bytes))
    }

    /// A text that a program has made; its [path](Self::path) is empty.
    ///
    /// # Errors
    ///
    /// [`TextError::Length`] if it is empty.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Error> {
        Self::read_as(Path::new(""), bytes)
    }

    /// A text made from a file.
    pub(super) fn read_as(path: &Path, bytes: Vec<u8>) -> Result<Self, Error> {
        Self::of(path.to_owned(), bytes.len(), Bytes::Read(bytes))
    }

    /// Maps a file into memory, without reading it: for texts that are larger than memory.
    ///
    /// # Safety
    ///
    /// No process may change or truncate the file while this text or a clone of it exists. Its bytes are handed out as `&[u8]`, and
    /// reading beyond a new end of the file ends the program.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    #[expect(unsafe_code, reason = "a file that others can change is no safe slice; the caller vouches for it")]
    pub unsafe fn map(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let file = File::open(&path).map_err(Error::io(&path))?;
        if file.metadata().map_err(Error::io(&path))?.len() == 0 {
            return Self::of(path, 0, Bytes::Read(Vec::new()));
        }
        // SAFETY: the map is read-only, and by this function's contract nobody changes the file while it is there.
        let map = unsafe { Mmap::map(&file) }.map_err(Error::io(&path))?;
        Self::of(path, map.len(), Bytes::Mapped(map))
    }

    fn of(path: PathBuf, len: usize, bytes: Bytes) -> Result<Self, Error> {
        if len == 0 {
            return Err(TextError::Length { path, len, reason: "it is empty".into() }.into());
        }
        Ok(Self { path, range: 0..len, bytes: Arc::new(bytes) })
    }

    /// Splits off the last `share`, rounded to whole bytes, for validation: `(training, validation)`.
    ///
    /// # Errors
    ///
    /// [`TextError::ValidationShare`] if `share` is not between 0 and 1; [`TextError::Length`] if one part has fewer than two bytes, of
    /// which the first predicts the second.
    pub fn split(&self, share: f64) -> Result<(Self, Self), Error> {
        if !(share > 0.0 && share < 1.0) {
            return Err(TextError::ValidationShare(share).into());
        }
        let validation = (self.len() as f64 * share).round() as usize;
        let training = self.len() - validation;
        if training < 2 || validation < 2 {
            return Err(
                self.error(format!("split into {training} for training and {validation} for validation; each needs 2"))
            );
        }
        Ok((self.part(0..training), self.part(training..self.len())))
    }

    /// The first `len` bytes, or all if they are fewer.
    pub fn head(&self, len: usize) -> Self {
        self.part(0..len.min(self.len()))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The error that this text cannot be used.
    pub(crate) fn error(&self, reason: String) -> Error {
        TextError::Length { path: self.path.clone(), len: self.len(), reason }.into()
    }

    fn part(&self, range: Range<usize>) -> Self {
        Self { range: self.range.start + range.start..self.range.start + range.end, ..self.clone() }
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let bytes: &[u8] = match &*self.bytes {
            Bytes::Read(bytes) => bytes,
            Bytes::Mapped(map) => map,
        };
        &bytes[self.range.clone()]
    }
}
