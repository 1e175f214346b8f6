//! The header of a GGUF file, versions 2 and 3: counts, metadata, tensor descriptions; then the tensors, aligned.
//!
//! A count or a length is compared with the remaining bytes before anything is allocated for it. So a file can make the
//! reader allocate at most a small multiple of its own size.

use super::super::encoding::Encoding;
use super::super::error::LoadError;
use super::super::source::SourceFile;
use super::value::{List, Metadata, MetadataValue};
use std::collections::{BTreeMap, HashSet};
use std::io::Read;

/// Where the parts of a file are.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Bytes from the beginning to the descriptions of tensors.
    pub(crate) head: u64,
    /// Alignment of tensors.
    pub(crate) alignment: u64,
    /// In the order of the file.
    pub(crate) tensors: Vec<TensorInfo>,
}

/// Description of a tensor, with the shape in row-major order, the longest stride first.
#[derive(Clone, Debug)]
pub(crate) struct TensorInfo {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) encoding: Encoding,
    /// The encoding's number in the file.
    pub(crate) kind: u32,
    /// From the beginning of the file.
    pub(crate) offset: u64,
}

/// Arrays of arrays may be nested this deep.
const DEEPEST: usize = 4;
const MOST_DIMENSIONS: u32 = 4;

/// Reads the header.
pub(crate) fn parse(source: &SourceFile) -> Result<(Metadata, Layout), LoadError> {
    source.read_header(|reader| Header { source, reader, position: 0 }.parse())
}

struct Header<'a> {
    source: &'a SourceFile,
    reader: &'a mut dyn Read,
    position: u64,
}

impl Header<'_> {
    fn parse(mut self) -> Result<(Metadata, Layout), LoadError> {
        let magic = self.array::<4>()?;
        if &magic != b"GGUF" {
            return Err(
                self.malformed(format!("it begins with {:?}, expected \"GGUF\"", magic.escape_ascii().to_string()))
            );
        }
        let version = self.u32()?;
        if !matches!(version, 2 | 3) {
            let found = if version.swap_bytes() <= 3 { "big-endian".into() } else { version.to_string() };
            return Err(LoadError::unsupported(self.source.path(), "GGUF version", found, "2 and 3, little-endian"));
        }
        let tensors = self.u64()?;
        let entries = self.u64()?;
        let values = self.metadata(entries)?;
        let metadata = Metadata { path: self.source.path().to_owned(), values };
        let layout = self.layout(tensors, &metadata)?;
        Ok((metadata, layout))
    }

    fn malformed(&self, reason: impl ToString) -> LoadError {
        LoadError::malformed(self.source.path(), "GGUF", reason)
    }

    fn left(&self) -> u64 {
        self.source.len().saturating_sub(self.position)
    }

    /// Refuses a count of things, of at least `bytes_each` bytes each, that the file cannot hold.
    fn check(&self, count: u64, bytes_each: u64, things: &str) -> Result<usize, LoadError> {
        match count.checked_mul(bytes_each) {
            Some(bytes) if bytes <= self.left() => Ok(usize::try_from(count).map_err(|error| self.malformed(error))?),
            _ => Err(self.malformed(format!(
                "{count} {things} are announced at byte {}, more than the {} bytes that are left can hold",
                self.position,
                self.left()
            ))),
        }
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), LoadError> {
        if buffer.len() as u64 > self.left() {
            return Err(self.malformed(format!("it ends at byte {}, within its header", self.source.len())));
        }
        self.reader.read_exact(buffer).map_err(LoadError::io(self.source.path(), "read"))?;
        self.position += buffer.len() as u64;
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], LoadError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, LoadError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, LoadError> {
        self.array().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Result<String, LoadError> {
        let len = self.u64()?;
        let mut bytes = vec![0; self.check(len, 1, "bytes of a string")?];
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|error| self.malformed(format!("a string is not UTF-8: {error}")))
    }

    fn flag(&mut self) -> Result<bool, LoadError> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [byte] => Err(self.malformed(format!("a bool is {byte}, expected 0 or 1"))),
        }
    }

    fn metadata(&mut self, entries: u64) -> Result<BTreeMap<String, MetadataValue>, LoadError> {
        // A length, a type and a value of one byte.
        self.check(entries, 13, "metadata values")?;
        let mut values = BTreeMap::new();
        for _ in 0..entries {
            let key = self.text()?;
            let kind = self.u32()?;
            let value = self.value(kind)?;
            if let Some(key) = values.insert(key.clone(), value).map(|_| key) {
                return Err(self.malformed(format!("the key {key:?} occurs twice")));
            }
        }
        Ok(values)
    }

    fn value(&mut self, kind: u32) -> Result<MetadataValue, LoadError> {
        Ok(match kind {
            0 | 2 | 4 | 10 => MetadataValue::Unsigned(self.unsigned(kind)?),
            1 | 3 | 5 | 11 => MetadataValue::Signed(self.signed(kind)?),
            6 => MetadataValue::Float(f32::from_le_bytes(self.array()?)),
            7 => MetadataValue::Bool(self.flag()?),
            8 => MetadataValue::Text(self.text()?),
            9 => MetadataValue::List(self.list(0)?),
            12 => MetadataValue::Double(f64::from_le_bytes(self.array()?)),
            _ => return Err(self.malformed(format!("a metadata value has type {kind}, expected 0 to 12"))),
        })
    }

    fn unsigned(&mut self, kind: u32) -> Result<u64, LoadError> {
        Ok(match kind {
            0 => u8::from_le_bytes(self.array()?).into(),
            2 => u16::from_le_bytes(self.array()?).into(),
            4 => self.u32()?.into(),
            _ => self.u64()?,
        })
    }

    fn signed(&mut self, kind: u32) -> Result<i64, LoadError> {
        Ok(match kind {
            1 => i8::from_le_bytes(self.array()?).into(),
            3 => i16::from_le_bytes(self.array()?).into(),
            5 => i32::from_le_bytes(self.array()?).into(),
            _ => i64::from_le_bytes(self.array()?),
        })
    }

    fn list(&mut self, depth: usize) -> Result<List, LoadError> {
        let kind = self.u32()?;
        let count = self.u64()?;
        let bytes_each = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            8 | 10..=12 => 8,
            9 if depth < DEEPEST => 12,
            9 => return Err(self.malformed(format!("arrays are nested deeper than {DEEPEST}"))),
            _ => return Err(self.malformed(format!("an array has elements of type {kind}, expected 0 to 12"))),
        };
        let count = self.check(count, bytes_each, "elements of an array")?;
        Ok(match kind {
            0 | 2 | 4 | 10 => List::Unsigned(self.repeat(count, |header| header.unsigned(kind))?),
            1 | 3 | 5 | 11 => List::Signed(self.repeat(count, |header| header.signed(kind))?),
            6 => List::Float(self.repeat(count, |header| header.array().map(f32::from_le_bytes))?),
            7 => List::Bool(self.repeat(count, Self::flag)?),
            8 => List::Text(self.repeat(count, Self::text)?),
            9 => List::Nested(self.repeat(count, |header| header.list(depth + 1))?),
            _ => List::Double(self.repeat(count, |header| header.array().map(f64::from_le_bytes))?),
        })
    }

    fn repeat<T>(
        &mut self,
        count: usize,
        mut read: impl FnMut(&mut Self) -> Result<T, LoadError>,
    ) -> Result<Vec<T>, LoadError> {
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            values.push(read(self)?);
        }
        Ok(values)
    }

    fn layout(&mut self, count: u64, metadata: &Metadata) -> Result<Layout, LoadError> {
        let head = self.position;
        // A length, a count of dimensions, a type and an offset.
        let count = self.check(count, 24, "tensors")?;
        let mut tensors = self.repeat(count, Self::tensor)?;
        let mut names = HashSet::new();
        if let Some(tensor) = tensors.iter().find(|tensor| !names.insert(tensor.name.as_str())) {
            return Err(self.malformed(format!("the tensor {:?} occurs twice", tensor.name)));
        }
        let alignment = metadata.size("general.alignment")?.unwrap_or(32) as u64;
        if !alignment.is_power_of_two() {
            return Err(self.malformed(format!("general.alignment is {alignment}, expected a power of 2")));
        }
        let data = self.position.checked_next_multiple_of(alignment);
        for tensor in &mut tensors {
            let start = data.and_then(|data| data.checked_add(tensor.offset));
            let start = start.filter(|_| tensor.offset % alignment == 0);
            tensor.offset = start.ok_or_else(|| {
                let (name, offset) = (&tensor.name, tensor.offset);
                self.malformed(format!(
                    "tensor {name:?} is at {offset}, expected a multiple of {alignment} within the file"
                ))
            })?;
        }
        self.check_data(&tensors)?;
        Ok(Layout { head, alignment, tensors })
    }

    fn tensor(&mut self) -> Result<TensorInfo, LoadError> {
        let name = self.text()?;
        let dimensions = self.u32()?;
        if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
            return Err(
                self.malformed(format!("tensor {name:?} has {dimensions} dimensions, expected 1 to {MOST_DIMENSIONS}"))
            );
        }
        let mut shape = Vec::with_capacity(MOST_DIMENSIONS as usize);
        for _ in 0..dimensions {
            let size = self.u64()?;
            let size = usize::try_from(size);
            shape.push(size.map_err(|_| self.malformed(format!("tensor {name:?} has a dimension beyond memory")))?);
        }
        // The file names the shortest stride first.
        shape.reverse();
        let kind = self.u32()?;
        let encoding = Encoding::from_ggml(kind).ok_or_else(|| {
            LoadError::unsupported(
                self.source.path(),
                format!("type of tensor {name:?}"),
                kind,
                super::super::encoding::SUPPORTED,
            )
        })?;
        let offset = self.u64()?;
        Ok(TensorInfo { name, shape, encoding, kind, offset })
    }

    /// Refuses tensors that do not fit into the file, or share bytes. Many descriptions of the same bytes would ask for more
    /// memory than the file has.
    fn check_data(&self, tensors: &[TensorInfo]) -> Result<(), LoadError> {
        let mut ranges = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            let Some((numbers, _)) = tensor.encoding.block() else { continue };
            if tensor.shape.last().is_none_or(|row| row % numbers != 0) {
                let (name, shape, encoding) = (&tensor.name, &tensor.shape, tensor.encoding.name());
                return Err(self.malformed(format!(
                    "tensor {name:?} of shape {shape:?} has rows that {encoding} blocks of {numbers} do not fill"
                )));
            }
            let end = tensor.bytes().and_then(|bytes| tensor.offset.checked_add(bytes));
            let Some(end) = end.filter(|&end| end <= self.source.len()) else {
                return Err(self.malformed(format!(
                    "it has {} bytes, too few for tensor {:?} of shape {:?} at byte {}",
                    self.source.len(),
                    tensor.name,
                    tensor.shape,
                    tensor.offset
                )));
            };
            if end > tensor.offset {
                ranges.push((tensor.offset, end, &tensor.name));
            }
        }
        ranges.sort_unstable();
        match ranges.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            Some(pair) => Err(self.malformed(format!("tensors {:?} and {:?} overlap", pair[0].2, pair[1].2))),
            None => Ok(()),
        }
    }
}

impl TensorInfo {
    /// Bytes in the file, or `None` if that many cannot be addressed or the encoding is not read.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let (numbers, bytes) = self.encoding.block()?;
        let count = self.shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size))?;
        // As many f32 values must be addressable too.
        count.checked_mul(size_of::<f32>()).filter(|&bytes| bytes <= isize::MAX as usize)?;
        (count as u64 / numbers as u64).checked_mul(bytes as u64)
    }
}
