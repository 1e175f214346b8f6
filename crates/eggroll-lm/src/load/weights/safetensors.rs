//! Headers of SafeTensors files, and the index of a model in several files.

use super::super::encoding::Encoding;
use super::super::error::LoadError;
use super::super::source::{SourceFile, begin, read_json};
use super::{Tensor, Weights};
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use serde::Deserializer;
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

/// Longest header, as in crate `safetensors`.
const LONGEST_HEADER: u64 = 100_000_000;

impl Weights {
    pub(super) fn from_safetensors(path: &Path) -> Result<Self, LoadError> {
        let source = SourceFile::open(path)?;
        let tensors = header(&source, 0)?;
        Ok(Self { path: path.to_owned(), files: vec![source], tensors, layout: None, kind: None })
    }

    pub(super) fn from_index(index: &Path) -> Result<Self, LoadError> {
        let malformed = |reason: String| LoadError::malformed(index, "SafeTensors index", reason);
        let json = read_json(index)?.unwrap_or_default();
        let map = json.get("weight_map").and_then(|map| map.as_object());
        let map = map.ok_or_else(|| malformed("it has no object \"weight_map\"".into()))?;
        let mut files = Vec::new();
        let mut opened = BTreeMap::new();
        let mut tensors = BTreeMap::new();
        for (name, file) in map {
            let file = file.as_str().filter(|file| is_plain(file));
            let file = file.ok_or_else(|| malformed(format!("tensor {name:?} is not in a file of this folder")))?;
            if !opened.contains_key(file) {
                let path = index.with_file_name(file);
                if !path.exists() {
                    let advice = "model.safetensors.index.json names it; download it too";
                    return Err(LoadError::MissingFile { path, advice });
                }
                let source = SourceFile::open(&path)?;
                opened.insert(file, header(&source, files.len())?);
                files.push(source);
            }
            let tensor = opened.get_mut(file).and_then(|tensors| tensors.remove(name));
            let tensor = tensor.ok_or_else(|| malformed(format!("tensor {name:?} is not in {file}")))?;
            tensors.insert(name.clone(), tensor);
        }
        // The index would have to resolve duplicates.
        if let Some((file, name)) = opened.iter().find_map(|(file, tensors)| Some((file, tensors.keys().next()?))) {
            return Err(malformed(format!("tensor {name:?} of {file} is not in the index")));
        }
        Ok(Self { path: index.to_owned(), files, tensors, layout: None, kind: None })
    }
}

/// Whether this names a file, not a path that leads out of the folder.
fn is_plain(file: &str) -> bool {
    !file.is_empty() && !file.starts_with('.') && !file.contains(['/', '\\', ':'])
}

/// Eight bytes of length, a header in JSON, then the tensors without gaps.
fn header(source: &SourceFile, file: usize) -> Result<BTreeMap<String, Tensor>, LoadError> {
    let malformed = |reason: String| LoadError::malformed(source.path(), "SafeTensors", reason);
    let size = source.len();
    let length = source.range(0, 8)?.ok_or_else(|| malformed(format!("it has {size} bytes, expected 8 at least")))?;
    let length = length.try_into().map_or(0, u64::from_le_bytes);
    if length > LONGEST_HEADER {
        let begin = begin(&source.range(0, size.min(24))?.unwrap_or_default());
        return Err(malformed(format!(
            "it begins with {begin}, expected the length of a header, {LONGEST_HEADER} at most"
        )));
    }
    let json = source.range(8, length)?;
    let json = json.ok_or_else(|| malformed(format!("it has {size} bytes, too few for a header of {length}")))?;
    check_names(&json).map_err(malformed)?;
    let metadata: Metadata = serde_json::from_slice(&json).map_err(|error| malformed(error.to_string()))?;
    let data = 8 + length;
    if data.checked_add(metadata.data_len() as u64) != Some(size) {
        let expected = metadata.data_len();
        return Err(malformed(format!("it has {} bytes of tensors, expected {expected}", size - data)));
    }
    let tensor = |info: &safetensors::tensor::TensorInfo| Tensor {
        file,
        offset: data + info.data_offsets.0 as u64,
        shape: info.shape.clone(),
        encoding: encoding(info.dtype),
        interleaved: None,
        plus_one: false,
    };
    Ok(metadata.tensors().into_iter().map(|(name, info)| (name, tensor(info))).collect())
}

/// Refuses a name that occurs twice: of two tensors, the last one would count.
fn check_names(json: &[u8]) -> Result<(), String> {
    struct Names;

    impl<'de> Visitor<'de> for Names {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of tensors")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            let mut names = BTreeSet::new();
            while let Some((name, IgnoredAny)) = map.next_entry::<String, _>()? {
                if let Some(name) = names.replace(name) {
                    return Err(A::Error::custom(format!("the tensor {name:?} occurs twice")));
                }
            }
            Ok(())
        }
    }

    let mut json = serde_json::Deserializer::from_slice(json);
    json.deserialize_map(Names).map_err(|error| error.to_string())
}

fn encoding(dtype: Dtype) -> Encoding {
    match dtype {
        Dtype::F32 => Encoding::F32,
        Dtype::F16 => Encoding::F16,
        Dtype::BF16 => Encoding::BF16,
        Dtype::F64 => Encoding::Other("F64"),
        Dtype::BOOL => Encoding::Other("BOOL"),
        Dtype::U8 => Encoding::Other("U8"),
        Dtype::I8 => Encoding::Other("I8"),
        Dtype::U16 => Encoding::Other("U16"),
        Dtype::I16 => Encoding::Other("I16"),
        Dtype::U32 => Encoding::Other("U32"),
        Dtype::I32 => Encoding::Other("I32"),
        Dtype::U64 => Encoding::Other("U64"),
        Dtype::I64 => Encoding::Other("I64"),
        Dtype::F8_E4M3 => Encoding::Other("F8_E4M3"),
        Dtype::F8_E5M2 => Encoding::Other("F8_E5M2"),
        _ => Encoding::Other("of another kind"),
    }
}
