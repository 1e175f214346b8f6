//! A file of bytes, or a part of one.

use crate::error::{Error, TextError};
use std::fs;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The bytes of a file, or a part of them. Clones share the bytes.
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
    bytes: Arc<[u8]>,
    range: Range<usize>,
}

impl Text {
    /// Reads a file into memory: what happens to the file afterwards changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it cannot be read, [`TextError::Length`] if it is empty.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let bytes: Arc<[u8]> = fs::read(&path).map_err(Error::io(&path))?.into();
        if bytes.is_empty() {
            return Err(TextError::Length { path, len: 0, reason: "it is empty".into() }.into());
        }
        Ok(Self { path, range: 0..bytes.len(), bytes })
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

    /// The error that this text does not do.
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
        &self.bytes[self.range.clone()]
    }
}
