//! Typed values of a GGUF file's metadata.

use super::super::error::LoadError;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MetadataValue {
    Unsigned(u64),
    Signed(i64),
    Float(f32),
    Double(f64),
    Bool(bool),
    Text(String),
    List(List),
}

/// Values of one type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum List {
    Unsigned(Vec<u64>),
    Signed(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bool(Vec<bool>),
    Text(Vec<String>),
    Nested(Vec<List>),
}

impl MetadataValue {
    fn kind(&self) -> &'static str {
        match self {
            Self::Unsigned(_) | Self::Signed(_) => "an integer",
            Self::Float(_) | Self::Double(_) => "a float",
            Self::Bool(_) => "a bool",
            Self::Text(_) => "a string",
            Self::List(_) => "an array",
        }
    }

    fn unsigned(&self) -> Option<u64> {
        match self {
            Self::Unsigned(value) => Some(*value),
            Self::Signed(value) => u64::try_from(*value).ok(),
            // One for each layer, but the same in all of them.
            Self::List(List::Unsigned(values)) => same(values).copied(),
            Self::List(List::Signed(values)) => same(values).and_then(|value| u64::try_from(*value).ok()),
            _ => None,
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            // The decimal that was meant: 1e-5 rather than 9.999999747378752e-6.
            Self::Float(value) => value.to_string().parse().ok(),
            Self::Double(value) => Some(*value),
            _ => self.unsigned().map(|value| value as f64),
        }
    }
}

fn same<T: PartialEq>(values: &[T]) -> Option<&T> {
    values.first().filter(|first| values.iter().all(|value| value == *first))
}

/// The values of a file, by key.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(super) path: PathBuf,
    pub(super) values: BTreeMap<String, MetadataValue>,
}

impl Metadata {
    fn get<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a MetadataValue) -> Option<T>,
    ) -> Result<Option<T>, LoadError> {
        let Some(value) = self.values.get(key) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| self.malformed(format!("{key} is {}, expected {expected}", value.kind())))
    }

    pub(crate) fn malformed(&self, reason: impl ToString) -> LoadError {
        LoadError::malformed(&self.path, "GGUF", reason)
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.path
    }

    pub(crate) fn text(&self, key: &str) -> Result<Option<&str>, LoadError> {
        self.get(
            key,
            "a string",
            |value| if let MetadataValue::Text(text) = value { Some(text.as_str()) } else { None },
        )
    }

    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, LoadError> {
        self.get(key, "a bool", |value| if let MetadataValue::Bool(flag) = value { Some(*flag) } else { None })
    }

    pub(crate) fn size(&self, key: &str) -> Result<Option<usize>, LoadError> {
        self.get(key, "one size for all layers", |value| value.unsigned().and_then(|size| usize::try_from(size).ok()))
    }

    pub(crate) fn id(&self, key: &str) -> Result<Option<u32>, LoadError> {
        self.get(key, "a token", |value| value.unsigned().and_then(|id| u32::try_from(id).ok()))
    }

    pub(crate) fn number(&self, key: &str) -> Result<Option<f64>, LoadError> {
        self.get(key, "a number", MetadataValue::number)
    }

    pub(crate) fn texts(&self, key: &str) -> Result<Option<&[String]>, LoadError> {
        self.get(key, "an array of strings", |value| match value {
            MetadataValue::List(List::Text(texts)) => Some(texts.as_slice()),
            _ => None,
        })
    }

    pub(crate) fn floats(&self, key: &str) -> Result<Option<&[f32]>, LoadError> {
        self.get(key, "an array of floats", |value| match value {
            MetadataValue::List(List::Float(values)) => Some(values.as_slice()),
            _ => None,
        })
    }

    pub(crate) fn integers(&self, key: &str) -> Result<Option<Vec<i64>>, LoadError> {
        self.get(key, "an array of integers", |value| match value {
            MetadataValue::List(List::Signed(values)) => Some(values.clone()),
            MetadataValue::List(List::Unsigned(values)) => {
                values.iter().map(|&value| i64::try_from(value).ok()).collect()
            }
            _ => None,
        })
    }

    /// Fails for a key that must be there.
    pub(crate) fn required<T>(&self, key: &str, value: Option<T>) -> Result<T, LoadError> {
        value.ok_or_else(|| self.malformed(format!("it has no {key}, which this model needs")))
    }
}
