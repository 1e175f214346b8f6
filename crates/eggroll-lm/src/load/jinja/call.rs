//! Arguments, and what can be called.

use super::access;
use super::args::{CallArgs, integer, needed, text};
use super::error::{Result, fail};
use super::meter::room;
use super::render::Renderer;
use super::value::{Namespace, Value};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Functions that every template has.
pub(super) const FUNCTIONS: [&str; 9] =
    ["range", "dict", "namespace", "raise_exception", "strftime_now", "lipsum", "cycler", "joiner", "self"];
/// Python's sandbox has no longer range.
const LONGEST_RANGE: usize = 100_000;
/// Codes of dates that C and Python write alike.
const DATES: &str = "aAbBdDeFHIjmMpSTuUwWyY%";

impl Renderer {
    /// Calls a value.
    pub(super) fn call(&self, value: &Value, args: CallArgs) -> Result<Value> {
        match value {
            Value::Undefined(name) => fail(format!("{name:?} is undefined")),
            Value::Macro(body) => self.call_macro(body, args),
            Value::Function(name) => self.function(name, args),
            Value::Method(method) => access::call_method(&method.0, &method.1, args),
            Value::Loop(state) => {
                let [values] = args.bind("loop", ["iterable"])?;
                self.recurse(state, &needed(values, "loop")?)
            }
            _ => fail(format!("{} is not callable", value.kind())),
        }
    }

    fn function(&self, name: &'static str, args: CallArgs) -> Result<Value> {
        match name {
            "range" => {
                let values = args.positional("range", 1, 3)?;
                let mut bounds = values.iter().map(|value| integer(value, "range")).collect::<Result<Vec<_>>>()?;
                if bounds.len() == 1 {
                    bounds.insert(0, 0);
                }
                let (start, stop, by) = (bounds[0], bounds[1], bounds.get(2).copied().unwrap_or(1));
                if [start, stop, by].iter().any(|bound| bound.unsigned_abs() > 1 << 62) || by == 0 {
                    return fail("range has a step of zero or a bound beyond 62 bits");
                }
                let range = Value::Range(start, stop, by);
                match range.length() {
                    Some(0..=LONGEST_RANGE) => Ok(range),
                    _ => fail(format!("range is longer than {LONGEST_RANGE}, which Python's sandbox refuses")),
                }
            }
            "dict" => pairs(args).and_then(Value::dict),
            "namespace" => {
                let mut names: Vec<(Arc<str>, Value)> = Vec::new();
                for (name, value) in pairs(args)? {
                    let Some(name) = name.as_str() else { return fail("names of a namespace must be texts") };
                    if name.starts_with('_') {
                        return fail(format!("a namespace cannot have the attribute {name:?}"));
                    }
                    if !value.is_plain() {
                        return fail("a namespace within a namespace is not supported");
                    }
                    names.retain(|(other, _)| &**other != name);
                    names.push((name.into(), value));
                }
                Ok(Value::Namespace(Rc::new(Namespace(RefCell::new(names)))))
            }
            "raise_exception" => {
                let [message] = args.bind(name, ["message"])?;
                fail(format!("the template refuses this chat: {}", needed(message, name)?.printed()?))
            }
            "strftime_now" => {
                let [format] = args.bind(name, ["format"])?;
                self.date(text(&needed(format, name)?, name)?)
            }
            _ => fail(format!("the function {name:?} is not supported in chat templates")),
        }
    }

    /// The time of the rendering.
    fn date(&self, format: &str) -> Result<Value> {
        let mut characters = format.chars();
        while let Some(character) = characters.next() {
            if character == '%' {
                let code = characters.next().unwrap_or(' ');
                let code = if code == '-' { characters.next().unwrap_or(' ') } else { code };
                if !DATES.contains(code) {
                    return fail(format!("strftime_now: the code %{code} of {format:?} is not supported"));
                }
            }
        }
        room(format.len().saturating_mul(16))?;
        Value::text(self.now.format(format).to_string())
    }
}

/// The pairs of `dict(…)`, from a dictionary, from pairs, or by name.
fn pairs(args: CallArgs) -> Result<Vec<(Value, Value)>> {
    let mut pairs = Vec::new();
    match args.positional.as_slice() {
        [] => {}
        [Value::Dict(dict)] => pairs.extend(dict.pairs.iter().cloned()),
        [values] => {
            for pair in values.iterate()? {
                match <[Value; 2]>::try_from(pair.iterate()?) {
                    Ok([key, value]) => pairs.push((key, value)),
                    Err(_) => return fail("dict needs pairs"),
                }
            }
        }
        _ => return fail("dict takes at most 1 argument"),
    }
    for (name, value) in args.named {
        pairs.push((Value::text(&*name)?, value));
    }
    Ok(pairs)
}
