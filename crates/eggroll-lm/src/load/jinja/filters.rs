//! Jinja's filters of texts and single values; filters of lists are in `lists`.

use super::args::{CallArgs, integer, needed, text};
use super::classes::{Class, matches};
use super::error::{Result, TemplateError, fail};
use super::format::percent;
use super::json::to_json;
use super::meter::{Buffer, room, step};
use super::methods::{capitalized, justify, lines, replace, strip};
use super::names::{OF_LISTS, REFUSED};
use super::render::Renderer;
use super::token::is_space;
use super::value::Value;

impl Renderer {
    /// Applies a filter.
    pub(super) fn filter(&self, name: &str, value: Value, args: CallArgs) -> Result<Value> {
        if let Value::Markup(_) = value
            && !["safe", "string", "length", "count", "default", "d", "tojson"].contains(&name)
        {
            return fail("texts marked as safe can only be printed here");
        }
        if OF_LISTS.contains(&name) {
            return self.list_filter(name, value, args);
        }
        if REFUSED.contains(&name) {
            return fail(format!("the filter {name:?} is not supported in chat templates"));
        }
        match name {
            "tojson" => to_json(&value, args),
            "d" | "default" => {
                let [default, boolean] = args.bind(name, ["default_value", "boolean"])?;
                let falls = matches!(value, Value::Undefined(_))
                    || (boolean.is_some_and(|boolean| boolean.is_true()) && !value.is_true());
                if falls { default.map_or_else(|| Value::text(""), Ok) } else { Ok(value) }
            }
            "length" | "count" => {
                args.positional(name, 0, 0)?;
                let length = value.length().ok_or_else(|| TemplateError(format!("{} has no length", value.kind())))?;
                Ok(Value::Int(length as i128))
            }
            "list" => {
                args.positional(name, 0, 0)?;
                Value::list(value.iterate()?)
            }
            "string" => {
                args.positional(name, 0, 0)?;
                if matches!(value, Value::Markup(_)) { Ok(value) } else { Value::text(value.printed()?) }
            }
            "safe" => {
                args.positional(name, 0, 0)?;
                let Value::Str(text) = Value::text(value.printed()?)? else { return Ok(value) };
                Ok(Value::Markup(text))
            }
            "e" | "escape" | "forceescape" => {
                args.positional(name, 0, 0)?;
                let mut escaped = Buffer::default();
                for character in value.printed()?.chars() {
                    match character {
                        '&' => escaped.push("&amp;")?,
                        '<' => escaped.push("&lt;")?,
                        '>' => escaped.push("&gt;")?,
                        '"' => escaped.push("&#34;")?,
                        '\'' => escaped.push("&#39;")?,
                        _ => escaped.push_char(character)?,
                    }
                }
                let Value::Str(text) = escaped.value()? else { return Ok(value) };
                Ok(Value::Markup(text))
            }
            "items" => match &value {
                Value::Undefined(_) => Value::stream(Vec::new()),
                Value::Dict(dict) => {
                    let pair = |(key, value): &(Value, Value)| Value::tuple(vec![key.clone(), value.clone()]);
                    Value::stream(dict.pairs.iter().map(pair).collect::<Result<_>>()?)
                }
                _ => fail("can only get item pairs from a mapping"),
            },
            "reverse" => {
                args.positional(name, 0, 0)?;
                let mut values = value.iterate()?;
                values.reverse();
                if value.as_str().is_some() {
                    let mut text = Buffer::default();
                    values.iter().try_for_each(|value| value.print(&mut text))?;
                    return text.value();
                }
                match value {
                    Value::Stream(_) => Value::list(values),
                    _ => Value::stream(values),
                }
            }
            "attr" => {
                let [attribute] = args.bind(name, ["name"])?;
                let attribute = needed(attribute, name)?;
                match &value {
                    // Attributes only, not items.
                    Value::Dict(_) => fail("the filter attr of a dictionary is not supported"),
                    _ => value.attribute(text(&attribute, name)?),
                }
            }
            "abs" | "int" | "float" | "round" => numeric(name, &value, args),
            "truncate" if matches!(value, Value::Undefined(_)) => Ok(value),
            "indent" | "truncate" if value.as_str().is_none() => {
                fail(format!("{name} needs a text, not {}", value.kind()))
            }
            "urlencode" if value.as_str().is_none() && self.test("iterable", &value, CallArgs::default())? => {
                fail("urlencode of more than a text is not supported")
            }
            _ => textual(name, &value.printed()?, args),
        }
    }
}

fn textual(name: &str, it: &str, args: CallArgs) -> Result<Value> {
    step(it.len() / 16)?;
    let plain = |args: CallArgs| args.positional(name, 0, 0).map(drop);
    match name {
        "upper" | "lower" | "capitalize" | "title" | "wordcount" => {
            plain(args)?;
            room(it.len().saturating_mul(4))?;
            match name {
                "upper" => Value::text(it.to_uppercase()),
                "lower" => Value::text(it.to_lowercase()),
                "capitalize" => Value::text(capitalized(it)),
                "title" => Value::text(title(it)),
                _ => {
                    step(it.len() / 2)?;
                    let is_word = |c: char| matches(Class::Words, &c.to_string());
                    Ok(Value::Int(it.split(|c| !is_word(c)).filter(|word| !word.is_empty()).count() as i128))
                }
            }
        }
        "trim" => {
            let [characters] = args.bind(name, ["chars"])?;
            let characters = characters.filter(|value| !matches!(value, Value::None));
            let characters = characters.as_ref().map(|value| text(value, name)).transpose()?;
            Value::text(strip(it, characters, true, true))
        }
        "center" => {
            let [width] = args.bind(name, ["width"])?;
            justify(it, name, width.map_or(Ok(80), |width| integer(&width, name))?, " ")
        }
        "replace" => {
            let [old, new, count] = args.bind(name, ["old", "new", "count"])?;
            let (old, new) = (needed(old, name)?, needed(new, name)?);
            let count = count.filter(|count| !matches!(count, Value::None));
            replace(it, &old.printed()?, &new.printed()?, count.map_or(Ok(-1), |count| integer(&count, name))?)
        }
        "format" => {
            if !args.named.is_empty() && !args.positional.is_empty() {
                return fail("can't handle positional and keyword arguments at the same time");
            }
            let values = if args.named.is_empty() {
                Value::tuple(args.positional)?
            } else {
                let mut pairs = Vec::new();
                for (name, value) in args.named {
                    pairs.push((Value::text(&*name)?, value));
                }
                Value::dict(pairs)?
            };
            percent(it, &values)
        }
        "indent" => {
            let [width, first, blank] = args.bind(name, ["width", "first", "blank"])?;
            let mut with = Buffer::default();
            match &width {
                Some(Value::Str(text)) => with.push(&text.text)?,
                width => {
                    let width = width.as_ref().map_or(Ok(4), |width| integer(width, name))?.max(0);
                    with.repeat(" ", usize::try_from(width).unwrap_or(usize::MAX))?;
                }
            }
            let is_true = |value: Option<Value>| value.is_some_and(|value| value.is_true());
            indent(it, with.as_str(), is_true(first), is_true(blank))
        }
        "truncate" => {
            let [length, kill, end, leeway] = args.bind(name, ["length", "killwords", "end", "leeway"])?;
            let number = |value: Option<Value>, default: i128| match value {
                None | Some(Value::None) => Ok(default),
                Some(value) => integer(&value, name),
            };
            let (length, leeway) = (number(length, 255)?, number(leeway, 5)?);
            let end = end.map_or_else(|| Ok("...".to_owned()), |end| text(&end, name).map(str::to_owned))?;
            let kept = length - end.chars().count() as i128;
            if kept < 0 || leeway < 0 {
                return fail("truncate: the length is less than that of the end, or the leeway is negative");
            }
            if it.chars().count() as i128 <= length.saturating_add(leeway) {
                return Value::text(it);
            }
            let cut: String = it.chars().take(kept as usize).collect();
            let kill = kill.is_some_and(|kill| kill.is_true());
            let cut = if kill { &cut } else { cut.rsplit_once(' ').map_or(&*cut, |(words, _)| words) };
            Value::text(format!("{cut}{end}"))
        }
        "urlencode" => {
            plain(args)?;
            let mut encoded = Buffer::default();
            for byte in it.bytes() {
                match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' | b'/' => {
                        encoded.push_char(byte.into())?;
                    }
                    _ => encoded.push(&format!("%{byte:02X}"))?,
                }
            }
            encoded.value()
        }
        _ => fail(format!("no filter named {name:?}")),
    }
}

/// Jinja's `title`: a capital after white space, hyphens and opening brackets.
fn title(it: &str) -> String {
    let mut title = String::new();
    let is_mark = |c: char| is_space(c) || matches!(c, '-' | '(' | '{' | '[' | '<');
    for part in it.split_inclusive(is_mark) {
        let mut letters = part.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        title.extend(first.chain(letters.flat_map(char::to_lowercase)));
    }
    title
}

fn indent(it: &str, with: &str, first: bool, blank: bool) -> Result<Value> {
    let mut text = Buffer::default();
    let whole = format!("{it}\n");
    for (place, line) in lines(&whole, false)?.into_iter().enumerate() {
        text.push(if place > 0 { "\n" } else { "" })?;
        let indented = if place == 0 { first } else { blank || !line.is_empty() };
        text.push(if indented { with } else { "" })?;
        text.push(line)?;
    }
    text.value()
}

fn numeric(name: &str, value: &Value, args: CallArgs) -> Result<Value> {
    if let Value::Undefined(what) = value {
        return fail(format!("{what:?} is undefined"));
    }
    match name {
        "abs" => {
            args.positional(name, 0, 0)?;
            match (value.as_int(), value.as_number()) {
                (Some(value), _) => Ok(Value::Int(value.checked_abs().unwrap_or(i128::MAX))),
                (None, Some(value)) => Ok(Value::Float(value.abs())),
                _ => fail(format!("{} has no absolute value", value.kind())),
            }
        }
        "int" => {
            let [default, base] = args.bind(name, ["default", "base"])?;
            let base = base.map_or(Ok(10), |base| integer(&base, name))?;
            let as_int = |value: f64| (value.is_finite() && value.abs() < 1e38).then_some(value as i128);
            let found = match (value.as_str(), value.as_int(), value.as_number()) {
                (Some(text), ..) => whole(text, base)?.or_else(|| as_int(real(text)?)),
                (_, Some(value), _) => Some(value),
                (_, _, Some(value)) if value.is_infinite() => return fail("cannot convert float infinity to integer"),
                (_, _, Some(value)) => as_int(value),
                _ => None,
            };
            Ok(found.map(Value::Int).or(default).unwrap_or(Value::Int(0)))
        }
        "float" => {
            let [default] = args.bind(name, ["default"])?;
            let found = value.as_str().map_or_else(|| value.as_number(), real);
            Ok(found.map(Value::Float).or(default).unwrap_or(Value::Float(0.0)))
        }
        _ => {
            let [precision, method] = args.bind(name, ["precision", "method"])?;
            let precision = precision.map_or(Ok(0), |precision| integer(&precision, name))?;
            let method = method.map_or_else(|| Ok("common".into()), |method| method.printed())?;
            let Some(number) = value.as_number() else { return fail(format!("{} cannot be rounded", value.kind())) };
            if !(0..=300).contains(&precision) {
                return fail("round: only a precision of 0 to 300 is supported");
            }
            let power = 10f64.powi(precision as i32);
            match method.as_str() {
                "common" => match value.as_int() {
                    Some(value) => Ok(Value::Int(value)),
                    None => {
                        let text = format!("{number:.*}", precision as usize);
                        Ok(Value::Float(text.parse().unwrap_or(number)))
                    }
                },
                "ceil" => Ok(Value::Float((number * power).ceil() / power)),
                "floor" => Ok(Value::Float((number * power).floor() / power)),
                _ => fail("method must be common, ceil or floor"),
            }
        }
    }
}

/// Python's `int` of a text.
fn whole(it: &str, base: i128) -> Result<Option<i128>> {
    let text = strip(it, None, true, true);
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let Ok(radix @ 2..=36) = u32::try_from(base) else { return fail("int: only bases of 2 to 36 are supported") };
    let lower = digits.to_ascii_lowercase();
    let prefix = match radix {
        16 => "0x",
        8 => "0o",
        2 => "0b",
        _ => "\0",
    };
    let digits = lower.strip_prefix(prefix).map_or(&*lower, |digits| digits.trim_start_matches('_'));
    let valid =
        !digits.is_empty() && digits.split('_').all(|part| !part.is_empty() && part.chars().all(|c| c.is_digit(radix)));
    if !valid {
        return Ok(None);
    }
    let number = i128::from_str_radix(&format!("{sign}{}", digits.replace('_', "")), radix);
    number.map(Some).or_else(|_| fail("an integer of more than 127 bits"))
}

/// Python's `float` of a text.
fn real(it: &str) -> Option<f64> {
    let text = strip(it, None, true, true);
    if text.split('_').any(str::is_empty) {
        return None;
    }
    text.replace('_', "").parse().ok()
}
