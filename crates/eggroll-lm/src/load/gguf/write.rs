//! Writes a GGUF file with some tensors replaced.

use super::super::encoding::Encoding;
use super::super::error::LoadError;
use super::super::replacement::draft_in;
use super::super::source::SourceFile;
use super::parse::{Layout, TensorInfo};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

/// Bytes that are copied at once.
const PIECE: u64 = 1 << 20;

/// Writes `path`. If `encoding` names Q8_0, Q4_0 or BF16 for a tensor, `bytes` gives its new contents; metadata and all other tensors are copied. The file
/// gets its name once it is complete; after an error there is none, or the previous one.
///
/// # Errors
///
/// [`LoadError::Io`] if the source cannot be read or the file not be written.
pub(crate) fn write(
    (source, layout): (&SourceFile, &Layout),
    path: &Path,
    encoding: impl Fn(&TensorInfo) -> Option<Encoding>,
    bytes: impl Fn(&TensorInfo, Encoding) -> Vec<u8>,
) -> Result<(), LoadError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let mut draft = draft_in(folder, &name)?;
    let failed = LoadError::io(path, "write");
    let mut file = BufWriter::new(draft.as_file_mut());
    let mut write = || -> Result<(), WriteError> {
        let mut writer = Writer { source, file: &mut file, position: 0 };
        writer.copy(0, layout.head)?;
        let mut offset = 0;
        for tensor in &layout.tensors {
            let new = encoding(tensor);
            writer.text(&tensor.name)?;
            writer.put(&(tensor.shape.len() as u32).to_le_bytes())?;
            for size in tensor.shape.iter().rev() {
                writer.put(&(*size as u64).to_le_bytes())?;
            }
            writer.put(&new.map_or(tensor.kind, kind).to_le_bytes())?;
            writer.put(&u64::to_le_bytes(offset))?;
            offset += bytes_of(tensor, new.unwrap_or(tensor.encoding)).next_multiple_of(layout.alignment);
        }
        for tensor in &layout.tensors {
            writer.align(layout.alignment)?;
            match encoding(tensor) {
                Some(new) => writer.put(&bytes(tensor, new))?,
                None => writer.copy(tensor.offset, bytes_of(tensor, tensor.encoding))?,
            }
        }
        writer.align(layout.alignment)?;
        Ok(writer.file.flush()?)
    };
    match write() {
        Ok(()) => {}
        Err(WriteError::Read(error)) => return Err(error),
        Err(WriteError::Write(error)) => return Err(failed(error)),
    }
    drop(file);
    let persist = || -> io::Result<()> {
        draft.as_file().sync_all()?;
        if path.is_dir() {
            return Err(io::Error::new(ErrorKind::IsADirectory, "it is a folder, expected a file or nothing"));
        }
        draft.persist(path).map(drop).map_err(|error| error.error)
    };
    persist().map_err(failed)
}

enum WriteError {
    Read(LoadError),
    Write(io::Error),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

impl From<LoadError> for WriteError {
    fn from(error: LoadError) -> Self {
        Self::Read(error)
    }
}

/// The number of an encoding that is written.
fn kind(encoding: Encoding) -> u32 {
    match encoding {
        Encoding::Q4_0 => 2,
        Encoding::BF16 => 30,
        _ => 8,
    }
}

/// Bytes of a tensor in an encoding. Unreadable encodings have been refused.
fn bytes_of(tensor: &TensorInfo, encoding: Encoding) -> u64 {
    TensorInfo { encoding, ..tensor.clone() }.bytes().unwrap_or(0)
}

struct Writer<'a, W> {
    source: &'a SourceFile,
    file: &'a mut W,
    position: u64,
}

impl<W: Write> Writer<'_, W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.position += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        self.put(&(text.len() as u64).to_le_bytes())?;
        self.put(text.as_bytes())
    }

    /// Zeros up to the next multiple.
    fn align(&mut self, alignment: u64) -> io::Result<()> {
        let zeros = self.position.next_multiple_of(alignment) - self.position;
        self.put(&vec![0; zeros as usize])
    }

    /// Bytes of the source.
    fn copy(&mut self, mut offset: u64, mut len: u64) -> Result<(), WriteError> {
        let mut piece = vec![0; len.min(PIECE) as usize];
        while len > 0 {
            let piece = &mut piece[..len.min(PIECE) as usize];
            self.source.read_at(offset, piece)?;
            self.put(piece)?;
            offset += piece.len() as u64;
            len -= piece.len() as u64;
        }
        Ok(())
    }
}
