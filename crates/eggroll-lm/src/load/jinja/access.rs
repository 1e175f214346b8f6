//! Attributes, items and slices.

use super::args::{CallArgs, needed};
use super::error::{Result, fail};
use super::meter::{room, step};
use super::methods;
use super::operators::equal;
use super::value::{Items, Loop, Value};
use std::rc::Rc;

const OF_LISTS: [&str; 3] = ["index", "count", "copy"];
const OF_DICTS: [&str; 5] = ["keys", "values", "items", "get", "copy"];
/// Attributes of Python that exist here but cannot be called, because of the sandbox or this crate.
const REFUSED: [&str; 18] = [
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
    "remove",
    "reverse",
    "sort",
    "popitem",
    "setdefault",
    "update",
    "fromkeys",
    "bit_length",
    "bit_count",
    "is_integer",
    "as_integer_ratio",
    "to_bytes",
    "conjugate",
];

impl Value {
    fn method(&self, name: &str) -> Self {
        Self::Method(Rc::new((self.clone(), name.into())))
    }

    /// The attribute that Python's type has, if it has one of this name.
    fn own_attribute(&self, name: &str) -> Result<Option<Self>> {
        let refused = || fail(format!("the attribute {name:?} of {} is not supported", self.kind()));
        Ok(match self {
            Self::Undefined(what) => return fail(format!("{what:?} is undefined")),
            Self::Str(_) if methods::METHODS.contains(&name) => Some(self.method(name)),
            Self::Str(_) if methods::REFUSED.contains(&name) => return refused(),
            Self::Markup(_) => return fail("texts marked as safe can only be printed here"),
            Self::List(_) if OF_LISTS.contains(&name) => Some(self.method(name)),
            Self::Tuple(_) | Self::Group(_) if OF_LISTS[..2].contains(&name) => Some(self.method(name)),
            Self::Group(items) if name == "grouper" => items.values.first().cloned(),
            Self::Group(items) if name == "list" => items.values.get(1).cloned(),
            Self::Dict(_) if OF_DICTS.contains(&name) => Some(self.method(name)),
            Self::List(_) if REFUSED[..8].contains(&name) => return refused(),
            Self::Dict(_) if ["clear", "pop"].contains(&name) || REFUSED[8..12].contains(&name) => return refused(),
            Self::Bool(_) | Self::Int(_) | Self::Float(_)
                if REFUSED[12..].contains(&name) || ["real", "imag", "numerator", "denominator"].contains(&name) =>
            {
                return refused();
            }
            Self::Range(..) if ["start", "stop", "step", "index", "count"].contains(&name) => return refused(),
            Self::View(..) if ["isdisjoint", "mapping"].contains(&name) => return refused(),
            Self::Namespace(names) => {
                names.0.borrow().iter().find(|(other, _)| &**other == name).map(|(_, value)| value.clone())
            }
            Self::Loop(state) => of_loop(self, state, name)?,
            Self::Macro(value) if name == "name" => Some(Self::text(&*value.body.name)?),
            Self::Macro(_) if ["arguments", "catch_kwargs", "catch_varargs", "caller", "defaults"].contains(&name) => {
                return refused();
            }
            _ => None,
        })
    }

    /// `value.name`: an attribute, else an item.
    pub(super) fn attribute(&self, name: &str) -> Result<Self> {
        if let Some(value) = self.own_attribute(name)? {
            return Ok(value);
        }
        let item = if let Self::Dict(dict) = self { dict.get_text(name).cloned() } else { None };
        Ok(item.unwrap_or_else(|| Self::undefined(name)))
    }

    /// `value[key]`: an item, else an attribute.
    pub(super) fn item(&self, key: &Self) -> Result<Self> {
        let index = |length: usize| {
            let index = key.as_int()?;
            let index = if index < 0 { index + length as i128 } else { index };
            usize::try_from(index).ok().filter(|&index| index < length)
        };
        let found = match self {
            Self::Undefined(name) => return fail(format!("{name:?} is undefined")),
            Self::Dict(dict) => match key {
                // A key that cannot be one is not there.
                Self::List(_) | Self::Dict(_) => None,
                _ => dict.get(key)?.cloned(),
            },
            Self::List(items) | Self::Tuple(items) | Self::Group(items) => {
                index(items.values.len()).map(|index| items.values[index].clone())
            }
            Self::Str(text) => {
                step(text.text.len() / 64)?;
                let place = if key.as_int().is_some() { index(self.length().unwrap_or(0)) } else { None };
                match place.and_then(|place| text.text.chars().nth(place)) {
                    Some(character) => Some(Self::text(character)?),
                    None => None,
                }
            }
            Self::Range(start, _, by) => {
                index(self.length().unwrap_or(0)).map(|index| Self::Int(start + by * index as i128))
            }
            _ => None,
        };
        match (found, key.as_str()) {
            (Some(value), _) => Ok(value),
            (None, Some(name)) => Ok(self.own_attribute(name)?.unwrap_or_else(|| Self::undefined(name))),
            (None, None) => Ok(Self::undefined("an item that is not there")),
        }
    }

    /// `value[start:stop:step]`.
    pub(super) fn slice(&self, bounds: &[Self; 3]) -> Result<Self> {
        if let Self::Undefined(name) = self {
            return fail(format!("{name:?} is undefined"));
        }
        if matches!(self, Self::Markup(_)) {
            return fail("texts marked as safe can only be printed here");
        }
        let of_row = matches!(self, Self::List(_) | Self::Tuple(_) | Self::Group(_) | Self::Str(_) | Self::Range(..));
        let whole = |bound: &Self| matches!(bound, Self::None) || bound.as_int().is_some();
        if !of_row || !bounds.iter().all(whole) {
            return fail(format!("{} has no slices of this kind", self.kind()));
        }
        let by = bounds[2].as_int().unwrap_or(1);
        if by == 0 {
            return fail("a slice with a step of zero");
        }
        let length = self.length().unwrap_or(0);
        room(length.saturating_mul(2 * size_of::<usize>()))?;
        step(length / 4)?;
        let length = length as i128;
        let (low, high) = if by > 0 { (0, length) } else { (-1, length - 1) };
        let bound = |bound: &Self, default: i128| match bound.as_int() {
            Some(index) => (if index < 0 { index.saturating_add(length) } else { index }).clamp(low, high),
            None => default,
        };
        let start = bound(&bounds[0], if by > 0 { low } else { high });
        let stop = bound(&bounds[1], if by > 0 { high } else { low });
        let mut places = Vec::new();
        let mut place = start;
        while (by > 0 && place < stop) || (by < 0 && place > stop) {
            places.push(place as usize);
            place = place.saturating_add(by);
        }
        step(places.len())?;
        if let Self::Str(text) = self {
            room(text.text.len().saturating_mul(5))?;
            step(text.text.len() / 64)?;
            let characters: Vec<char> = text.text.chars().collect();
            return Self::text(places.into_iter().map(|place| characters[place]).collect::<String>());
        }
        if let Self::Range(first, _, each) = self {
            return Ok(Self::Range(first + each * start, first + each * stop, each * by));
        }
        let values = self.iterate()?;
        let values = places.into_iter().map(|place| values[place].clone()).collect();
        if matches!(self, Self::List(_)) { Self::list(values) } else { Self::tuple(values) }
    }
}

/// Attributes of `loop`.
fn of_loop(value: &Value, state: &Loop, name: &str) -> Result<Option<Value>> {
    let (index, length) = (state.index.get(), state.items.values.len());
    let int = |value: usize| Value::Int(value as i128);
    let at = |place: Option<usize>, name: &str| {
        place.and_then(|place| state.items.values.get(place).cloned()).unwrap_or_else(|| Value::undefined(name))
    };
    Ok(Some(match name {
        "index" => int(index + 1),
        "index0" => int(index),
        "revindex" => int(length - index),
        "revindex0" => int(length - index - 1),
        "first" => Value::Bool(index == 0),
        "last" => Value::Bool(index + 1 == length),
        "length" => int(length),
        "depth" => int(state.depth + 1),
        "depth0" => int(state.depth),
        "previtem" => at(index.checked_sub(1), "there is no previous item"),
        "nextitem" => at(Some(index + 1), "there is no next item"),
        "cycle" | "changed" => value.method(name),
        _ => return Ok(None),
    }))
}

/// Calls a method.
pub(super) fn call_method(value: &Value, name: &str, args: CallArgs) -> Result<Value> {
    match value {
        Value::Str(text) => methods::call(&text.text, name, args),
        Value::List(items) | Value::Tuple(items) | Value::Group(items) => of_list(items, name, args),
        Value::Dict(dict) => match name {
            "get" => {
                let values = args.positional("get", 1, 2)?;
                let found = dict.get(&values[0])?.cloned();
                Ok(found.or_else(|| values.get(1).cloned()).unwrap_or(Value::None))
            }
            "copy" => args.positional("copy", 0, 0).map(|_| value.clone()),
            _ => {
                args.positional(name, 0, 0)?;
                let pairs = dict.pairs.iter();
                let (kind, values) = match name {
                    "keys" => ("dict_keys", pairs.map(|(key, _)| Ok(key.clone())).collect::<Result<_>>()?),
                    "values" => ("dict_values", pairs.map(|(_, value)| Ok(value.clone())).collect::<Result<_>>()?),
                    _ => {
                        let pair = |(key, value): &(Value, Value)| Value::tuple(vec![key.clone(), value.clone()]);
                        ("dict_items", pairs.map(pair).collect::<Result<_>>()?)
                    }
                };
                Ok(Value::View(kind, Items::new(values)?))
            }
        },
        Value::Loop(state) if name == "cycle" => {
            let count = args.positional.len();
            let chosen = args.positional.into_iter().nth(state.index.get() % count.max(1));
            needed(chosen, "loop.cycle")
        }
        Value::Loop(state) => {
            let now = Value::tuple(args.positional)?;
            let before = state.changed.replace(Some(now.clone()));
            let same = before.map_or(Ok(false), |before| equal(&before, &now))?;
            Ok(Value::Bool(!same))
        }
        _ => fail(format!("{} has no method {name:?}", value.kind())),
    }
}

fn of_list(items: &Items, name: &str, args: CallArgs) -> Result<Value> {
    if name == "copy" {
        args.positional("copy", 0, 0)?;
        return Value::list(items.values.clone());
    }
    let values = args.positional(name, 1, 1)?;
    let mut count = 0;
    for (place, value) in items.values.iter().enumerate() {
        if equal(value, &values[0])? {
            if name == "index" {
                return Ok(Value::Int(place as i128));
            }
            count += 1;
        }
    }
    if name == "index" { fail("the value is not in the list") } else { Ok(Value::Int(count)) }
}
