//! Arguments of calls, filters and tests.

use super::error::{Result, TemplateError, fail};
use super::value::Value;
use std::sync::Arc;

/// Values of a call.
#[derive(Debug, Default)]
pub(super) struct CallArgs {
    pub(super) positional: Vec<Value>,
    pub(super) named: Vec<(Arc<str>, Value)>,
}

impl CallArgs {
    /// The values of parameters by place or by name.
    pub(super) fn bind<const COUNT: usize>(self, what: &str, names: [&str; COUNT]) -> Result<[Option<Value>; COUNT]> {
        if self.positional.len() > COUNT {
            return fail(format!("{what} takes at most {COUNT} arguments, not {}", self.positional.len()));
        }
        let mut values = [const { None }; COUNT];
        values.iter_mut().zip(self.positional).for_each(|(place, value)| *place = Some(value));
        for (name, value) in self.named {
            let place = names.iter().position(|other| **other == *name && !other.is_empty());
            match place {
                Some(place) if values[place].is_none() => values[place] = Some(value),
                Some(_) => return fail(format!("{what} has two values for argument {name:?}")),
                None => return fail(format!("{what} has no argument {name:?}")),
            }
        }
        Ok(values)
    }

    /// Values by place, between two numbers of them.
    pub(super) fn positional(self, what: &str, least: usize, most: usize) -> Result<Vec<Value>> {
        if let Some((name, _)) = self.named.first() {
            return fail(format!("{what} has no argument {name:?}"));
        }
        if !(least..=most).contains(&self.positional.len()) {
            return fail(format!("{what} takes {least} to {most} arguments, not {}", self.positional.len()));
        }
        Ok(self.positional)
    }
}

/// An argument that must be there.
pub(super) fn needed(value: Option<Value>, what: &str) -> Result<Value> {
    value.ok_or_else(|| TemplateError(format!("{what} lacks an argument")))
}

/// An argument that is an integer.
pub(super) fn integer(value: &Value, what: &str) -> Result<i128> {
    value.as_int().ok_or_else(|| TemplateError(format!("{what} needs an integer, not {}", value.kind())))
}

/// An argument that is a text.
pub(super) fn text<'a>(value: &'a Value, what: &str) -> Result<&'a str> {
    value.as_str().ok_or_else(|| TemplateError(format!("{what} needs a text, not {}", value.kind())))
}
