//! Jinja's filters of lists.

use super::args::{CallArgs, integer, needed, text};
use super::ast::Operator;
use super::error::{Result, TemplateError, fail};
use super::meter::{Buffer, room, step};
use super::names::is_filter;
use super::operators::{binary, equal, order, sort};
use super::render::Renderer;
use super::value::{Items, Value};
use std::cmp::Ordering;
use std::collections::HashSet;

/// Texts in lower case, where case does not count.
fn folded(value: Value, is_folded: bool) -> Result<Value> {
    match value.as_str() {
        Some(text) if is_folded => Value::text(text.to_lowercase()),
        _ => Ok(value),
    }
}

/// The attribute `a.b.0` of a value.
fn attribute(value: &Value, path: &Value, default: Option<&Value>) -> Result<Value> {
    let mut found = value.clone();
    let fill = |found: Value| match (found, default) {
        (Value::Undefined(_), Some(default)) => default.clone(),
        (found, _) => found,
    };
    if let Some(index) = path.as_int() {
        return Ok(fill(found.item(&Value::Int(index))?));
    }
    for part in text(path, "attribute")?.split('.') {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let key = match part.parse() {
            Ok(index) if digits => Value::Int(index),
            _ => Value::text(part)?,
        };
        found = fill(found.item(&key)?);
    }
    Ok(found)
}

fn is_true(value: Option<&Value>) -> bool {
    value.is_some_and(Value::is_true)
}

/// `None` as an argument is none.
fn given(value: Option<Value>) -> Option<Value> {
    value.filter(|value| !matches!(value, Value::None))
}

impl Renderer {
    pub(super) fn list_filter(&self, name: &str, value: Value, args: CallArgs) -> Result<Value> {
        match name {
            "first" => {
                args.positional(name, 0, 0)?;
                if let Value::Stream(stream) = &value {
                    let place = stream.next.get();
                    stream.next.set((place + 1).min(stream.items.values.len()));
                    let found = stream.items.values.get(place).cloned();
                    return Ok(found.unwrap_or_else(|| Value::undefined("No first item, sequence was empty.")));
                }
                let first = value.iterate()?.into_iter().next();
                Ok(first.unwrap_or_else(|| Value::undefined("No first item, sequence was empty.")))
            }
            "last" => {
                args.positional(name, 0, 0)?;
                if matches!(value, Value::Stream(_)) {
                    return fail(format!("{} is not reversible", value.kind()));
                }
                let last = value.iterate()?.pop();
                Ok(last.unwrap_or_else(|| Value::undefined("No last item, sequence was empty.")))
            }
            "join" => join(&value, args),
            "map" => self.map(&value, args),
            "select" | "reject" | "selectattr" | "rejectattr" => self.select(name, &value, args),
            "batch" | "slice" => cut(name, &value, args),
            "sum" => {
                let [path, start] = args.bind(name, ["attribute", "start"])?;
                let mut total = start.unwrap_or(Value::Int(0));
                if total.as_str().is_some() {
                    return fail("sum() can't sum strings");
                }
                let path = given(path);
                for value in value.iterate()? {
                    let value =
                        path.as_ref().map_or_else(|| Ok(value.clone()), |path| attribute(&value, path, None))?;
                    total = binary(Operator::Add, &total, &value)?;
                }
                Ok(total)
            }
            "max" | "min" => {
                let [case, path] = args.bind(name, ["case_sensitive", "attribute"])?;
                let (path, is_folded) = (given(path), !is_true(case.as_ref()));
                let key = |value: &Value| {
                    let value = path.as_ref().map_or_else(|| Ok(value.clone()), |path| attribute(value, path, None))?;
                    folded(value, is_folded)
                };
                let wanted = if name == "max" { Ordering::Greater } else { Ordering::Less };
                let mut best: Option<(Value, Value)> = None;
                for value in value.iterate()? {
                    let found = key(&value)?;
                    let better = match &best {
                        Some((_, best)) => order(&found, best)? == Some(wanted),
                        None => true,
                    };
                    if better {
                        best = Some((value, found));
                    }
                }
                Ok(best.map_or_else(|| Value::undefined("No aggregated item, sequence was empty."), |(value, _)| value))
            }
            "sort" => {
                let [reverse, case, path] = args.bind(name, ["reverse", "case_sensitive", "attribute"])?;
                let (path, is_folded) = (given(path), !is_true(case.as_ref()));
                let mut values = Vec::new();
                for value in value.iterate()? {
                    let key = match &path {
                        None => folded(value.clone(), is_folded)?,
                        Some(path) => {
                            let mut keys = Vec::new();
                            let paths = path.printed()?;
                            for part in paths.split(',') {
                                let part =
                                    path.as_int().map_or_else(|| Value::text(part), |index| Ok(Value::Int(index)))?;
                                keys.push(folded(attribute(&value, &part, None)?, is_folded)?);
                            }
                            Value::list(keys)?
                        }
                    };
                    values.push((key, value));
                }
                sort(&mut values, |(key, _)| Ok(key.clone()), is_true(reverse.as_ref()))?;
                Value::list(values.into_iter().map(|(_, value)| value).collect())
            }
            "unique" => {
                let [case, path] = args.bind(name, ["case_sensitive", "attribute"])?;
                let (path, is_folded) = (given(path), !is_true(case.as_ref()));
                let mut seen = HashSet::new();
                let mut kept = Vec::new();
                for value in value.iterate()? {
                    let key = path.as_ref().map_or_else(|| Ok(value.clone()), |path| attribute(&value, path, None))?;
                    if seen.insert(folded(key, is_folded)?.key()?) {
                        kept.push(value);
                    }
                }
                Value::stream(kept)
            }
            "dictsort" => {
                let [case, by, reverse] = args.bind(name, ["case_sensitive", "by", "reverse"])?;
                let Value::Dict(dict) = &value else { return fail(format!("{} is not a dictionary", value.kind())) };
                let by = by.map_or_else(|| Ok("key".into()), |by| by.printed())?;
                let place = match by.as_str() {
                    "key" => 0,
                    "value" => 1,
                    _ => return fail("dictsort: by must be key or value"),
                };
                let is_folded = !is_true(case.as_ref());
                let mut pairs: Vec<[Value; 2]> = dict.pairs.iter().cloned().map(|(key, value)| [key, value]).collect();
                sort(&mut pairs, |pair| folded(pair[place].clone(), is_folded), is_true(reverse.as_ref()))?;
                Value::list(pairs.into_iter().map(|pair| Value::tuple(pair.into())).collect::<Result<_>>()?)
            }
            _ => groups(&value, args),
        }
    }

    fn map(&self, value: &Value, mut args: CallArgs) -> Result<Value> {
        let mut mapped = Vec::new();
        if args.positional.is_empty() && args.named.iter().any(|(name, _)| &**name == "attribute") {
            let [path, default] = args.bind("map", ["attribute", "default"])?;
            let path = needed(path, "map")?;
            for value in value.iterate()? {
                mapped.push(attribute(&value, &path, default.as_ref())?);
            }
            return Value::stream(mapped);
        }
        if args.positional.is_empty() {
            return fail("map requires a filter argument");
        }
        let name = args.positional.remove(0);
        let name = text(&name, "map")?;
        if !is_filter(name) {
            return fail(format!("no filter named {name:?}"));
        }
        for value in value.iterate()? {
            let args = CallArgs { positional: args.positional.clone(), named: args.named.clone() };
            mapped.push(self.filter(name, value, args)?);
        }
        Value::stream(mapped)
    }

    fn select(&self, name: &str, value: &Value, mut args: CallArgs) -> Result<Value> {
        let path = name.ends_with("attr").then(|| {
            if args.positional.is_empty() {
                fail("missing parameter for attribute name")
            } else {
                Ok(args.positional.remove(0))
            }
        });
        let path = path.transpose()?;
        let test = if args.positional.is_empty() { None } else { Some(args.positional.remove(0)) };
        let mut kept = Vec::new();
        for value in value.iterate()? {
            let tested = path.as_ref().map_or_else(|| Ok(value.clone()), |path| attribute(&value, path, None))?;
            let holds = match &test {
                None => tested.is_true(),
                Some(test) => {
                    let args = CallArgs { positional: args.positional.clone(), named: args.named.clone() };
                    self.test(text(test, name)?, &tested, args)?
                }
            };
            if holds == name.starts_with("select") {
                kept.push(value);
            }
        }
        Value::stream(kept)
    }
}

fn join(value: &Value, args: CallArgs) -> Result<Value> {
    let [between, path] = args.bind("join", ["d", "attribute"])?;
    let between = between.map_or_else(|| Ok(String::new()), |between| between.printed())?;
    let path = given(path);
    let mut joined = Buffer::default();
    for (place, value) in value.iterate()?.into_iter().enumerate() {
        let value = path.as_ref().map_or_else(|| Ok(value.clone()), |path| attribute(&value, path, None))?;
        joined.push(if place > 0 { &between } else { "" })?;
        value.print(&mut joined)?;
    }
    joined.value()
}

/// `batch` and `slice`.
fn cut(name: &str, value: &Value, args: CallArgs) -> Result<Value> {
    let [count, fill] = args.bind(name, [if name == "batch" { "linecount" } else { "slices" }, "fill_with"])?;
    let count = integer(&needed(count, name)?, name)?;
    let fill = given(fill);
    let values = value.iterate()?;
    let count = match usize::try_from(count) {
        Ok(count) if count > 0 => count,
        _ => return fail(format!("{name} needs a number above zero")),
    };
    let rows = if name == "batch" { values.len().div_ceil(count) } else { count };
    room(rows.saturating_mul(size_of::<Value>()).saturating_add(if fill.is_some() {
        count * size_of::<Value>()
    } else {
        0
    }))?;
    step(rows)?;
    let mut parts = Vec::new();
    if name == "batch" {
        for part in values.chunks(count) {
            let mut part = part.to_vec();
            if let Some(fill) = &fill {
                step(count)?;
                part.resize(count, fill.clone());
            }
            parts.push(Value::list(part)?);
        }
        return Value::stream(parts);
    }
    let (each, longer) = (values.len() / count, values.len() % count);
    let mut begin = 0;
    for place in 0..count {
        let end = begin + each + usize::from(place < longer);
        let mut part = values[begin..end].to_vec();
        if place >= longer {
            part.extend(fill.clone());
        }
        begin = end;
        parts.push(Value::list(part)?);
    }
    Value::stream(parts)
}

fn groups(value: &Value, args: CallArgs) -> Result<Value> {
    let [path, default, case] = args.bind("groupby", ["attribute", "default", "case_sensitive"])?;
    let (path, is_folded) = (needed(path, "groupby")?, !is_true(case.as_ref()));
    let default = given(default);
    let mut values = Vec::new();
    for value in value.iterate()? {
        let real = attribute(&value, &path, default.as_ref())?;
        values.push((folded(real.clone(), is_folded)?, real, value));
    }
    sort(&mut values, |(key, ..)| Ok(key.clone()), false)?;
    let mut groups: Vec<(Value, Value, Vec<Value>)> = Vec::new();
    for (key, real, value) in values {
        match groups.last_mut() {
            Some((last, _, members)) if equal(last, &key)? => members.push(value),
            _ => groups.push((key, real, vec![value])),
        }
    }
    let group = |(_, real, members): (Value, Value, Vec<Value>)| {
        Ok::<_, TemplateError>(Value::Group(Items::new(vec![real, Value::list(members)?])?))
    };
    Value::list(groups.into_iter().map(group).collect::<Result<_>>()?)
}
