//! Typed fields of a `config.json`. A field that is null counts as missing.

use super::super::error::LoadError;
use serde_json::{Map, Value};
use std::path::Path;

pub(super) struct ConfigFields<'a> {
    path: &'a Path,
    map: &'a Map<String, Value>,
}

impl<'a> ConfigFields<'a> {
    pub(super) fn new(path: &'a Path, json: &'a Value) -> Result<Self, LoadError> {
        let map = json.as_object();
        let map = map.ok_or_else(|| LoadError::malformed(path, "JSON of a configuration", "it is not an object"))?;
        Ok(Self { path, map })
    }

    /// The fields of an object in a field.
    pub(super) fn inner(&self, key: &str) -> Result<Option<ConfigFields<'a>>, LoadError> {
        self.get(key, "an object", Value::as_object).map(|map| map.map(|map| ConfigFields { path: self.path, map }))
    }

    fn get<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, LoadError> {
        let Some(value) = self.map.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
        let malformed = || LoadError::config(format!("{key} in {}", self.path.display()), short(value), expected);
        read(value).map(Some).ok_or_else(malformed)
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, LoadError> {
        self.get(key, "a string", Value::as_str)
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, LoadError> {
        self.get(key, "true or false", Value::as_bool)
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, LoadError> {
        self.get(key, "a number", Value::as_f64)
    }

    pub(super) fn optional_size(&self, key: &str) -> Result<Option<usize>, LoadError> {
        self.get(key, "a whole number", |value| value.as_u64().and_then(|size| usize::try_from(size).ok()))
    }

    pub(super) fn size(&self, key: &str) -> Result<usize, LoadError> {
        let missing = || LoadError::config(format!("{key} in {}", self.path.display()), "missing", "a whole number");
        self.optional_size(key)?.ok_or_else(missing)
    }

    /// A size, or an array of sizes.
    pub(super) fn sizes(&self, key: &str) -> Result<Vec<usize>, LoadError> {
        let size = |value: &Value| value.as_u64().and_then(|size| usize::try_from(size).ok());
        let sizes = self.get(key, "whole numbers", |value| match value {
            Value::Array(values) => values.iter().map(size).collect(),
            value => size(value).map(|size| vec![size]),
        })?;
        Ok(sizes.unwrap_or_default())
    }

    /// Whether a field is there, and not null.
    pub(super) fn has(&self, key: &str) -> bool {
        self.map.get(key).is_some_and(|value| !value.is_null())
    }

    /// Whether a field exists, even if it is null.
    pub(super) fn is_named(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The first field that is an object itself.
    pub(super) fn nested(&self) -> Option<&'a str> {
        self.map.iter().find(|(_, value)| value.is_object()).map(|(key, _)| key.as_str())
    }

    /// Texts of an array.
    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<&'a str>>, LoadError> {
        self.get(key, "an array of strings", |value| value.as_array()?.iter().map(Value::as_str).collect())
    }

    /// Refuses any value of a field except the supported one, which is also the meaning of a missing field.
    pub(super) fn only(&self, key: &str, supported: impl Into<Value>) -> Result<(), LoadError> {
        let supported = supported.into();
        match self.map.get(key) {
            // 1 and 1.0 are the same.
            Some(found) if !found.is_null() && *found != supported && !is_same_number(found, &supported) => {
                Err(self.unsupported(key, short(found), supported))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn unsupported(&self, what: &str, found: impl ToString, supported: impl ToString) -> LoadError {
        LoadError::unsupported(self.path, what, found, supported)
    }
}

fn is_same_number(a: &Value, b: &Value) -> bool {
    a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| a == b)
}

/// A value, cut off where it is long.
fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
