//! Jinja's tests, after `is`.

use super::args::{CallArgs, integer};
use super::ast::Operator;
use super::error::{Result, fail};
use super::methods;
use super::names::{is_filter, is_test};
use super::operators::{compare, contains};
use super::render::Renderer;
use super::value::Value;
use std::rc::Rc;

impl Renderer {
    /// Whether a test holds.
    pub(super) fn test(&self, name: &str, value: &Value, args: CallArgs) -> Result<bool> {
        let operator = match name {
            "==" | "eq" | "equalto" => Some(Operator::Equal),
            "!=" | "ne" => Some(Operator::NotEqual),
            ">" | "gt" | "greaterthan" => Some(Operator::Greater),
            ">=" | "ge" => Some(Operator::GreaterEqual),
            "<" | "lt" | "lessthan" => Some(Operator::Less),
            "<=" | "le" => Some(Operator::LessEqual),
            _ => None,
        };
        let with_other = operator.is_some() || ["in", "sameas", "divisibleby"].contains(&name);
        let count = usize::from(with_other);
        let others = args.positional(name, count, count)?;
        let other = || others.first().cloned().unwrap_or(Value::None);
        if let Some(operator) = operator {
            return compare(operator, value, &other());
        }
        if let Value::Undefined(what) = value
            && ["odd", "even", "divisibleby"].contains(&name)
        {
            return fail(format!("{what:?} is undefined"));
        }
        Ok(match name {
            "defined" => !matches!(value, Value::Undefined(_)),
            "undefined" => matches!(value, Value::Undefined(_)),
            "none" => matches!(value, Value::None),
            "boolean" => matches!(value, Value::Bool(_)),
            "true" => matches!(value, Value::Bool(true)),
            "false" => matches!(value, Value::Bool(false)),
            "integer" => matches!(value, Value::Int(_)),
            "float" => matches!(value, Value::Float(_)),
            "number" => value.as_number().is_some(),
            "string" => value.as_str().is_some(),
            "mapping" => matches!(value, Value::Dict(_)),
            "sequence" => matches!(
                value,
                Value::Str(_)
                    | Value::Markup(_)
                    | Value::List(_)
                    | Value::Tuple(_)
                    | Value::Group(_)
                    | Value::Dict(_)
                    | Value::Range(..)
                    | Value::Undefined(_)
            ),
            "iterable" => matches!(
                value,
                Value::Undefined(_)
                    | Value::Str(_)
                    | Value::Markup(_)
                    | Value::List(_)
                    | Value::Tuple(_)
                    | Value::Group(_)
                    | Value::Dict(_)
                    | Value::View(..)
                    | Value::Range(..)
                    | Value::Stream(_)
                    | Value::Loop(_)
            ),
            "callable" => matches!(
                value,
                Value::Undefined(_) | Value::Macro(_) | Value::Loop(_) | Value::Method(_) | Value::Function(_)
            ),
            "escaped" => matches!(value, Value::Markup(_)),
            "lower" => methods::call(&value.printed()?, "islower", CallArgs::default())?.is_true(),
            "upper" => methods::call(&value.printed()?, "isupper", CallArgs::default())?.is_true(),
            "filter" => value.as_str().is_some_and(is_filter),
            "test" => value.as_str().is_some_and(is_test),
            "in" => contains(&other(), value)?,
            "sameas" => same(value, &other())?,
            "odd" | "even" | "divisibleby" => {
                let by = if name == "divisibleby" { integer(&other(), name)? } else { 2 };
                let Some(number) = value.as_int() else { return fail(format!("{name} needs an integer")) };
                let Some(rest) = number.checked_rem(by) else { return fail("division by zero") };
                (rest == 0) != (name == "odd")
            }
            _ => return fail(format!("no test named {name:?}")),
        })
    }
}

/// Python's `is`, where it is not a matter of how Python keeps its values.
fn same(left: &Value, right: &Value) -> Result<bool> {
    Ok(match (left, right) {
        (Value::None, Value::None) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::List(left), Value::List(right)) | (Value::Tuple(left), Value::Tuple(right)) => Rc::ptr_eq(left, right),
        (Value::Dict(left), Value::Dict(right)) => Rc::ptr_eq(left, right),
        (Value::Namespace(left), Value::Namespace(right)) => Rc::ptr_eq(left, right),
        _ if std::mem::discriminant(left) != std::mem::discriminant(right) => false,
        _ => return fail(format!("sameas of two values of type {} is not supported", left.kind())),
    })
}
