//! Appends to a log.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// A file that holds whole entries only, as far as the system allows. Entries that could not be written wait for the next
/// attempt.
#[derive(Debug)]
pub(crate) struct Tail {
    file: File,
    /// Bytes of whole entries.
    len: u64,
    /// Whether a part of an entry follows them.
    torn: bool,
    pending: Vec<u8>,
}

impl Tail {
    /// Opens a file, or creates it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let len = file.metadata()?.len();
        Ok(Self { file, len, torn: false, pending: Vec::new() })
    }

    /// Opens a file that is cut to `len` bytes.
    pub fn open_at(path: &Path, len: u64) -> io::Result<Self> {
        let tail = Self::open(path)?;
        tail.file.set_len(len)?;
        tail.file.sync_all()?;
        Ok(Self { len, ..tail })
    }

    /// Adds an entry to the pending ones.
    pub fn push(&mut self, entry: &[u8]) {
        self.pending.extend(entry);
    }

    /// Hands everything to the system; after an error it is still pending.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.len)?;
            self.torn = false;
        }
        if let Err(error) = self.file.write_all(&self.pending) {
            // The written part must not remain before the next entry.
            self.torn = self.file.set_len(self.len).is_err();
            return Err(error);
        }
        self.len += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Drops the pending entries.
    #[cfg(feature = "csv")]
    pub fn discard(&mut self) {
        self.pending.clear();
    }

    /// Flushes everything to disk.
    pub fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        self.file.sync_data()
    }
}
