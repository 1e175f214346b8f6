//! Operators on Python's values.

use super::ast::Operator;
use super::error::{Result, TemplateError, fail};
use super::format::percent;
use super::meter::{Buffer, room, step};
use super::value::Value;
use std::cmp::Ordering;
use std::rc::Rc;

const WIDE: &str = "an integer of more than 127 bits is not supported";

fn checked(value: Option<i128>) -> Result<Value> {
    value.map(Value::Int).ok_or_else(|| TemplateError(WIDE.into()))
}

/// Two values with an operator between them, other than `and`, `or` and comparisons.
pub(super) fn binary(operator: Operator, left: &Value, right: &Value) -> Result<Value> {
    use Value::{List, Markup, Str, Tuple};
    step(1)?;
    for value in [left, right] {
        if let Value::Undefined(name) = value
            && !matches!((operator, left), (Operator::Modulo, Str(_)))
        {
            return fail(format!("{name:?} is undefined"));
        }
        if matches!(value, Markup(_)) {
            return fail("texts marked as safe can only be printed here");
        }
    }
    match (operator, left, right) {
        (Operator::Modulo, Str(text), _) => return percent(&text.text, right),
        (Operator::Add, Str(left), Str(right)) => {
            let mut text = Buffer::default();
            text.push(&left.text)?;
            text.push(&right.text)?;
            return text.value();
        }
        (Operator::Add, List(left), List(right)) => {
            room((left.values.len() + right.values.len()).saturating_mul(size_of::<Value>()))?;
            return Value::list([left.values.as_slice(), &right.values].concat());
        }
        (Operator::Add, Tuple(left), Tuple(right)) => {
            room((left.values.len() + right.values.len()).saturating_mul(size_of::<Value>()))?;
            return Value::tuple([left.values.as_slice(), &right.values].concat());
        }
        (Operator::Multiply, _, _) => {
            let repeated = [(left, right), (right, left)].into_iter().find_map(|(value, count)| {
                Some((value, count.as_int()?)).filter(|(value, _)| matches!(value, Str(_) | List(_) | Tuple(_)))
            });
            if let Some((value, count)) = repeated {
                return repeat(value, usize::try_from(count.max(0)).unwrap_or(usize::MAX));
            }
        }
        _ => {}
    }
    if let (Some(left), Some(right)) = (left.as_int(), right.as_int()) {
        return integers(operator, left, right);
    }
    let (Some(x), Some(y)) = (left.as_number(), right.as_number()) else {
        return fail(format!("unsupported operands {} and {}", left.kind(), right.kind()));
    };
    let divides = matches!(operator, Operator::Divide | Operator::FloorDivide | Operator::Modulo);
    if divides && y == 0.0 {
        return fail("division by zero");
    }
    let modulo = || {
        let rest = x % y;
        if rest != 0.0 && (rest < 0.0) != (y < 0.0) {
            rest + y
        } else {
            rest.abs().copysign(if rest == 0.0 { y } else { rest })
        }
    };
    Ok(Value::Float(match operator {
        Operator::Add => x + y,
        Operator::Subtract => x - y,
        Operator::Multiply => x * y,
        Operator::Divide => x / y,
        Operator::FloorDivide => {
            let quotient = (x - modulo()) / y;
            let floor = quotient.floor();
            if quotient - floor > 0.5 { floor + 1.0 } else { floor }
        }
        Operator::Modulo => modulo(),
        Operator::Power => power(x, y)?,
        _ => return fail("not an operator of numbers"),
    }))
}

fn power(x: f64, y: f64) -> Result<f64> {
    let value = x.powf(y);
    if x == 0.0 && y < 0.0 {
        return fail("zero to a negative power");
    }
    if value.is_nan() && !x.is_nan() && !y.is_nan() {
        return fail("complex numbers are not supported");
    }
    if value.is_infinite() && x.is_finite() && y.is_finite() {
        return fail("numerical result out of range");
    }
    Ok(value)
}

fn integers(operator: Operator, x: i128, y: i128) -> Result<Value> {
    if y == 0 && matches!(operator, Operator::Divide | Operator::FloorDivide | Operator::Modulo) {
        return fail("division by zero");
    }
    checked(match operator {
        Operator::Add => x.checked_add(y),
        Operator::Subtract => x.checked_sub(y),
        Operator::Multiply => x.checked_mul(y),
        Operator::Divide => {
            // Exact in floats, or not rounded once.
            let exact = |value: i128| value.unsigned_abs() <= 1 << 53;
            return if exact(x) && exact(y) { Ok(Value::Float(x as f64 / y as f64)) } else { fail(WIDE) };
        }
        Operator::FloorDivide => {
            let quotient = x.checked_div(y);
            quotient.map(|quotient| if x % y != 0 && (x < 0) != (y < 0) { quotient - 1 } else { quotient })
        }
        Operator::Modulo => {
            x.checked_rem(y).map(|rest| if rest != 0 && (rest < 0) != (y < 0) { rest + y } else { rest })
        }
        Operator::Power if y < 0 => return power(x as f64, y as f64).map(Value::Float),
        Operator::Power => match u32::try_from(y) {
            Ok(y) => x.checked_pow(y),
            Err(_) if matches!(x, 0 | 1) => Some(x),
            Err(_) => None,
        },
        _ => return fail("not an operator of numbers"),
    })
}

fn repeat(value: &Value, count: usize) -> Result<Value> {
    if let Some(text) = value.as_str() {
        let mut repeated = Buffer::default();
        repeated.repeat(text, if text.is_empty() { 0 } else { count })?;
        return repeated.value();
    }
    let values = value.iterate()?;
    let size = values.len().saturating_mul(count);
    room(size.saturating_mul(size_of::<Value>()))?;
    step(size)?;
    let count = if values.is_empty() { 0 } else { count };
    let repeated = std::iter::repeat_n(values, count).flatten().collect();
    if matches!(value, Value::Tuple(_)) { Value::tuple(repeated) } else { Value::list(repeated) }
}

/// Whether two values are equal.
pub(super) fn equal(left: &Value, right: &Value) -> Result<bool> {
    step(1)?;
    let rows = |left: &[Value], right: &[Value]| -> Result<bool> {
        if left.len() != right.len() {
            return Ok(false);
        }
        for (left, right) in left.iter().zip(right) {
            if !equal(left, right)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    Ok(match (left, right) {
        (Value::Undefined(_), Value::Undefined(_)) | (Value::None, Value::None) => true,
        (Value::List(left), Value::List(right)) => rows(&left.values, &right.values)?,
        (Value::Tuple(left) | Value::Group(left), Value::Tuple(right) | Value::Group(right)) => {
            rows(&left.values, &right.values)?
        }
        (Value::Dict(left), Value::Dict(right)) => {
            if left.pairs.len() != right.pairs.len() {
                return Ok(false);
            }
            for (key, value) in &left.pairs {
                match right.get(key)? {
                    Some(other) if equal(value, other)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        (Value::Range(..), Value::Range(..)) => rows(&left.iterate()?, &right.iterate()?)?,
        (Value::View(..), Value::View(..)) => return fail("comparing views of dictionaries is not supported"),
        (Value::Namespace(left), Value::Namespace(right)) => Rc::ptr_eq(left, right),
        (Value::Macro(left), Value::Macro(right)) => Rc::ptr_eq(left, right),
        _ => match (left.as_str(), right.as_str()) {
            (Some(left), Some(right)) => {
                step(left.len().min(right.len()) / 64)?;
                left == right
            }
            _ => order_numbers(left, right) == Some(Some(Ordering::Equal)),
        },
    })
}

/// The order of two numbers; `Some(None)` with one that is NaN.
fn order_numbers(left: &Value, right: &Value) -> Option<Option<Ordering>> {
    if let (Some(left), Some(right)) = (left.as_int(), right.as_int()) {
        return Some(Some(left.cmp(&right)));
    }
    Some(left.as_number()?.partial_cmp(&right.as_number()?))
}

/// The order of two values, `None` with NaN.
pub(super) fn order(left: &Value, right: &Value) -> Result<Option<Ordering>> {
    step(1)?;
    if let Some(order) = order_numbers(left, right) {
        return Ok(order);
    }
    if let (Some(left), Some(right)) = (left.as_str(), right.as_str()) {
        return Ok(Some(left.cmp(right)));
    }
    match (left, right) {
        (Value::List(x), Value::List(y)) | (Value::Tuple(x) | Value::Group(x), Value::Tuple(y) | Value::Group(y)) => {
            for (left, right) in x.values.iter().zip(&y.values) {
                if !equal(left, right)? {
                    return order(left, right);
                }
            }
            Ok(Some(x.values.len().cmp(&y.values.len())))
        }
        (Value::Undefined(name), _) | (_, Value::Undefined(name)) => fail(format!("{name:?} is undefined")),
        _ => fail(format!("{} and {} have no order", left.kind(), right.kind())),
    }
}

/// Whether a value is in another.
pub(super) fn contains(all: &Value, one: &Value) -> Result<bool> {
    match all {
        Value::Str(text) => {
            let Some(one) = one.as_str() else {
                return fail(format!("only texts can be in a text, not {}", one.kind()));
            };
            step(text.text.len() / 64)?;
            Ok(text.text.contains(one))
        }
        Value::Dict(dict) => Ok(dict.get(one)?.is_some()),
        Value::Namespace(_) | Value::Markup(_) | Value::Loop(_) => fail(format!("nothing can be in a {}", all.kind())),
        _ => {
            for value in all.iterate()? {
                if equal(&value, one)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

/// One comparison.
pub(super) fn compare(operator: Operator, left: &Value, right: &Value) -> Result<bool> {
    let ordered = |holds: fn(Ordering) -> bool| Ok(order(left, right)?.is_some_and(holds));
    match operator {
        Operator::Equal => equal(left, right),
        Operator::NotEqual => equal(left, right).map(|equal| !equal),
        Operator::Less => ordered(Ordering::is_lt),
        Operator::LessEqual => ordered(Ordering::is_le),
        Operator::Greater => ordered(Ordering::is_gt),
        Operator::GreaterEqual => ordered(Ordering::is_ge),
        Operator::In => contains(right, left),
        _ => contains(right, left).map(|found| !found),
    }
}

/// Sorts by a key; an error of a comparison ends it. The order of equal ones stays.
pub(super) fn sort<T>(values: &mut [T], key: impl Fn(&T) -> Result<Value>, reverse: bool) -> Result<()> {
    let mut failed = None;
    values.sort_by(|left, right| {
        if failed.is_some() {
            return Ordering::Equal;
        }
        let found = key(left).and_then(|left| Ok((left, key(right)?))).and_then(|(left, right)| order(&left, &right));
        let found = found.unwrap_or_else(|error| {
            failed = Some(error);
            None
        });
        let found = found.unwrap_or(Ordering::Equal);
        if reverse { found.reverse() } else { found }
    });
    failed.map_or(Ok(()), Err)
}
