//! A file of bytes, or a part of one.

use crate::error::Error;
use memmap2::Mmap;
use std::fs::File;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The bytes of a file, or a part of them: mapped into memory, so that a file may be larger than it. Clones share the map.
///
/// # Example
///
/// ```
/// use eggroll_train::text::Text;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("text.txt");
/// std::fs::write(&path, "twenty bytes of text")?;
/// let (train, validation) = Text::open(&path)?.split(0.1)?;
/// assert_eq!(&train[..], b"twenty bytes of te");
/// assert_eq!(&validation[..], b"xt");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Text {
    path: PathBuf,
    map: Arc<Mmap>,
    range: Range<usize>,
}

impl Text {
    /// Opens a file. It must not be changed while it is open: what is read then is undefined, and reading beyond a new end
    /// ends the program.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it cannot be read, [`Error::Text`] if it is empty.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let file = File::open(&path).map_err(Error::io(&path))?;
        let len = file.metadata().map_err(Error::io(&path))?.len();
        if len == 0 {
            return Err(Error::Text { path, len: 0, reason: "it is empty".into() });
        }
        // SAFETY: the map is read-only, and that nobody changes the file is what this function asks for.
        let map = unsafe { Mmap::map(&file) }.map_err(Error::io(&path))?;
        Ok(Self { path, range: 0..map.len(), map: Arc::new(map) })
    }

    /// Splits off the last `share`, rounded to whole bytes, for validation: `(training, validation)`.
    ///
    /// # Errors
    ///
    /// [`Error::ValidationShare`] if `share` is not between 0 and 1; [`Error::Text`] if one part has fewer than two bytes, of
    /// which the first predicts the second.
    pub fn split(&self, share: f64) -> Result<(Self, Self), Error> {
        if !(share > 0.0 && share < 1.0) {
            return Err(Error::ValidationShare(share));
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
        Error::Text { path: self.path.clone(), len: self.len(), reason }
    }

    fn part(&self, range: Range<usize>) -> Self {
        Self { range: self.range.start + range.start..self.range.start + range.end, ..self.clone() }
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map[self.range.clone()]
    }
}
