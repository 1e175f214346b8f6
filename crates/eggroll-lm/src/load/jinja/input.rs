//! Values that a template is given, in the order in which they were written.

use super::error::Result;
use super::value::Value;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A value of JSON.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    Array(Vec<Input>),
    Object(Vec<(String, Input)>),
}

impl Input {
    /// Bytes of all texts, and some for each value.
    pub(super) fn bytes(&self) -> usize {
        16 + match self {
            Self::Text(text) => text.len(),
            Self::Array(values) => values.iter().map(Self::bytes).sum(),
            Self::Object(pairs) => pairs.iter().map(|(name, value)| name.len() + value.bytes()).sum(),
            _ => 0,
        }
    }

    /// The value in a template.
    pub(super) fn value(&self) -> Result<Value> {
        match self {
            Self::Null => Ok(Value::None),
            Self::Bool(value) => Ok(Value::Bool(*value)),
            Self::Int(value) => Ok(Value::Int(*value)),
            Self::Float(value) => Ok(Value::Float(*value)),
            Self::Text(text) => Value::text(text.as_str()),
            Self::Array(values) => Value::list(values.iter().map(Self::value).collect::<Result<_>>()?),
            Self::Object(pairs) => {
                let pair = |(name, value): &(String, Self)| Ok((Value::text(name.as_str())?, value.value()?));
                Value::dict(pairs.iter().map(pair).collect::<Result<Vec<_>>>()?)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(Read)
    }
}

struct Read;

impl<'de> Visitor<'de> for Read {
    type Value = Input;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> std::result::Result<Input, E> {
        Ok(Input::Null)
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Input, E> {
        Ok(Input::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<Input, E> {
        Ok(Input::Int(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Input, E> {
        Ok(Input::Int(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<Input, E> {
        Ok(Input::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> std::result::Result<Input, E> {
        Ok(Input::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> std::result::Result<Input, E> {
        Ok(Input::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> std::result::Result<Input, A::Error> {
        let mut array = Vec::new();
        while let Some(value) = values.next_element()? {
            array.push(value);
        }
        Ok(Input::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> std::result::Result<Input, A::Error> {
        let mut object = Vec::new();
        while let Some(pair) = pairs.next_entry()? {
            object.push(pair);
        }
        Ok(Input::Object(object))
    }
}
