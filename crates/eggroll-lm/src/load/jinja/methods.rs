//! Methods of Python's texts.

use super::args::{CallArgs, integer, needed, text};
use super::classes::{Class, matches};
use super::error::{Result, fail};
use super::format::braces;
use super::meter::{Buffer, room, step};
use super::token::is_space;
use super::value::Value;
use std::collections::HashSet;

pub(super) const METHODS: [&str; 41] = [
    "capitalize",
    "casefold",
    "center",
    "count",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "islower",
    "isnumeric",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
];
/// Other methods of Python.
pub(super) const REFUSED: [&str; 6] = ["encode", "format_map", "isidentifier", "isprintable", "maketrans", "translate"];

/// Calls a method of a text.
pub(super) fn call(it: &str, name: &str, args: CallArgs) -> Result<Value> {
    step(it.len() / 16)?;
    match name {
        "format" => return braces(it, &args),
        "split" | "rsplit" => {
            let [separator, most] = args.bind(name, ["sep", "maxsplit"])?;
            let most = most.map_or(Ok(-1), |most| integer(&most, name))?;
            let separator = match &separator {
                None | Some(Value::None) => None,
                Some(separator) => Some(text(separator, name)?),
            };
            return texts(split(it, separator, most, name == "rsplit")?);
        }
        "splitlines" => {
            let [keep] = args.bind(name, ["keepends"])?;
            return texts(lines(it, keep.is_some_and(|keep| keep.is_true()))?);
        }
        "expandtabs" => {
            let [size] = args.bind(name, ["tabsize"])?;
            return expand_tabs(it, size.map_or(Ok(8), |size| integer(&size, name))?);
        }
        _ => {}
    }
    let (least, most) = match name {
        "strip" | "lstrip" | "rstrip" => (0, 1),
        "center" | "ljust" | "rjust" => (1, 2),
        "replace" => (2, 3),
        "join" | "partition" | "rpartition" | "removeprefix" | "removesuffix" | "zfill" => (1, 1),
        "count" | "endswith" | "find" | "index" | "rfind" | "rindex" | "startswith" => (1, 3),
        _ => (0, 0),
    };
    let values = args.positional(name, least, most)?;
    let first = || values.first().map_or_else(|| fail(format!("{name} lacks an argument")), |value| text(value, name));
    let new = |text: &str| Value::text(text);
    match name {
        "strip" | "lstrip" | "rstrip" => {
            let characters = match values.first() {
                None | Some(Value::None) => None,
                Some(value) => Some(text(value, name)?),
            };
            new(strip(it, characters, name != "rstrip", name != "lstrip"))
        }
        "upper" => change(it, str::to_uppercase),
        "lower" => change(it, str::to_lowercase),
        "casefold" if it.is_ascii() => change(it, str::to_lowercase),
        "casefold" => fail("casefold of characters beyond ASCII is not supported"),
        "capitalize" => change(it, capitalized),
        "title" => change(it, titled),
        "swapcase" => change(it, |text| {
            let swap =
                |c: char| if c.is_uppercase() { c.to_lowercase().to_string() } else { c.to_uppercase().to_string() };
            text.chars().map(swap).collect()
        }),
        "replace" => {
            let count = values.get(2).map_or(Ok(-1), |count| integer(count, name))?;
            replace(it, first()?, text(&values[1], name)?, count)
        }
        "join" => join(it, &values[0].iterate()?),
        "startswith" | "endswith" | "find" | "index" | "rfind" | "rindex" | "count" => search(it, name, &values),
        "partition" | "rpartition" => {
            let separator = first()?;
            if separator.is_empty() {
                return fail("empty separator");
            }
            let found = if name == "partition" { it.split_once(separator) } else { it.rsplit_once(separator) };
            let parts = match found {
                Some((before, after)) => [before, separator, after],
                None if name == "partition" => [it, "", ""],
                None => ["", "", it],
            };
            Value::tuple(parts.into_iter().map(new).collect::<Result<_>>()?)
        }
        "removeprefix" => new(it.strip_prefix(first()?).unwrap_or(it)),
        "removesuffix" => new(it.strip_suffix(first()?).unwrap_or(it)),
        "center" | "ljust" | "rjust" => {
            let fill = values.get(1).map_or(Ok(" "), |fill| text(fill, name))?;
            justify(it, name, integer(&values[0], name)?, fill)
        }
        "zfill" => {
            let width = integer(&values[0], name)?;
            let (sign, digits) = it.split_at(usize::from(it.starts_with(['+', '-'])));
            let missing = width - it.chars().count() as i128;
            let mut padded = Buffer::default();
            padded.push(sign)?;
            padded.repeat("0", usize::try_from(missing.max(0)).unwrap_or(usize::MAX))?;
            padded.push(digits)?;
            padded.value()
        }
        _ => class(it, name).map(Value::Bool),
    }
}

fn texts<'a>(parts: impl IntoIterator<Item = &'a str>) -> Result<Value> {
    let mut values = Vec::new();
    for part in parts {
        values.push(Value::text(part)?);
        room(values.len() * size_of::<Value>())?;
    }
    Value::list(values)
}

fn change(it: &str, change: impl FnOnce(&str) -> String) -> Result<Value> {
    room(it.len().saturating_mul(4))?;
    Value::text(change(it))
}

/// The first character as in a title.
fn first_upper(character: char) -> String {
    let code = u32::from(character);
    match code {
        // Three letters of two, each in three forms.
        0x1c4..=0x1cc => char::from_u32(0x1c5 + (code - 0x1c4) / 3 * 3).unwrap_or(character).to_string(),
        0x1f1..=0x1f3 => '\u{1f2}'.to_string(),
        // Letters whose capital stands for whole words only, or takes a mark along.
        0x10d0..=0x10ff => character.to_string(),
        0x149 => character.to_uppercase().collect(),
        0x1f80..=0x1faf => char::from_u32(code | 8).unwrap_or(character).to_string(),
        0x1fb3 | 0x1fc3 | 0x1ff3 => char::from_u32(code + 9).unwrap_or(character).to_string(),
        0x1fb2..=0x1fb7 | 0x1fc2..=0x1fc7 | 0x1ff2..=0x1ff7 => {
            character.to_uppercase().map(|upper| if upper == '\u{399}' { '\u{345}' } else { upper }).collect()
        }
        _ => {
            let mut upper = character.to_uppercase();
            let first = upper.next().unwrap_or(character);
            std::iter::once(first).chain(upper.flat_map(char::to_lowercase)).collect()
        }
    }
}

/// Python's `capitalize`.
pub(super) fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first_upper(first) + &characters.as_str().to_lowercase()).unwrap_or_default()
}

/// Python's `title`: a capital after all that has no case.
fn titled(text: &str) -> String {
    let mut inside = false;
    let mut title = String::new();
    for character in text.chars() {
        if inside {
            title.extend(character.to_lowercase());
        } else {
            title += &first_upper(character);
        }
        inside = character.is_lowercase() || character.is_uppercase();
    }
    title
}

/// Python's `strip`.
pub(super) fn strip<'a>(mut it: &'a str, characters: Option<&str>, left: bool, right: bool) -> &'a str {
    let set = characters.map(|all| all.chars().collect::<HashSet<char>>());
    let is_in = |character: char| set.as_ref().map_or_else(|| is_space(character), |set| set.contains(&character));
    if left {
        it = it.trim_start_matches(is_in);
    }
    if right {
        it = it.trim_end_matches(is_in);
    }
    it
}

/// Python's `replace`; a negative count is no bound.
pub(super) fn replace(it: &str, old: &str, new: &str, count: i128) -> Result<Value> {
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let found = it.matches(old).count().min(most);
    step(found)?;
    room((it.len() + found.saturating_mul(new.len())).saturating_sub(found * old.len()))?;
    Value::text(it.replacen(old, new, most))
}

/// Python's `join`.
fn join(between: &str, values: &[Value]) -> Result<Value> {
    let mut joined = Buffer::default();
    for (place, value) in values.iter().enumerate() {
        joined.push(if place > 0 { between } else { "" })?;
        joined.push(text(value, "join")?)?;
    }
    joined.value()
}

pub(super) fn justify(it: &str, how: &str, width: i128, fill: &str) -> Result<Value> {
    if fill.chars().count() != 1 {
        return fail("the fill character must be exactly one character long");
    }
    let length = it.chars().count() as i128;
    let missing = usize::try_from((width - length).max(0)).unwrap_or(usize::MAX);
    let left = match how {
        "ljust" => 0,
        "rjust" => missing,
        // Python puts the odd one to the left where the width is odd.
        _ => missing / 2 + (missing & usize::try_from(width.max(0)).unwrap_or(0) & 1),
    };
    let mut text = Buffer::default();
    text.repeat(fill, left)?;
    text.push(it)?;
    text.repeat(fill, missing - left)?;
    text.value()
}

fn expand_tabs(it: &str, size: i128) -> Result<Value> {
    let mut text = Buffer::default();
    let mut column = 0i128;
    for character in it.chars() {
        match character {
            '\t' => {
                let spaces = if size > 0 { size - column % size } else { 0 };
                text.repeat(" ", usize::try_from(spaces).unwrap_or(usize::MAX))?;
                column += spaces;
            }
            _ => {
                column = if matches!(character, '\n' | '\r') { 0 } else { column + 1 };
                text.push_char(character)?;
            }
        }
    }
    text.value()
}

/// Python's `split` and `rsplit`.
pub(super) fn split<'a>(it: &'a str, separator: Option<&str>, most: i128, right: bool) -> Result<Vec<&'a str>> {
    let most = usize::try_from(most).map_or(usize::MAX, |most| most.saturating_add(1));
    let mut parts: Vec<&str> = match separator {
        Some("") => return fail("empty separator"),
        Some(separator) => {
            let count = it.matches(separator).count();
            step(count)?;
            room(count.saturating_mul(size_of::<&str>()))?;
            if right { it.rsplitn(most, separator).collect() } else { it.splitn(most, separator).collect() }
        }
        None => {
            let mut parts = Vec::new();
            let mut rest = strip(it, None, !right, right);
            while !rest.is_empty() {
                let split = if right { rest.rsplit_once(is_space) } else { rest.split_once(is_space) };
                let last = parts.len() + 1 >= most;
                step(1)?;
                room(parts.len() * size_of::<&str>())?;
                let Some((before, after)) = split.filter(|_| !last) else {
                    // What stays keeps the white space of its other side.
                    parts.push(rest);
                    break;
                };
                let (part, next) = if right { (after, before) } else { (before, after) };
                parts.push(part);
                rest = strip(next, None, !right, right);
            }
            parts
        }
    };
    if right {
        parts.reverse();
    }
    step(parts.len())?;
    Ok(parts)
}

/// Python's `splitlines`.
pub(super) fn lines(it: &str, keep: bool) -> Result<Vec<&str>> {
    let ends = ['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];
    let mut lines = Vec::new();
    let mut rest = it;
    while !rest.is_empty() {
        step(1)?;
        room(lines.len() * size_of::<&str>())?;
        let Some(place) = rest.find(ends) else {
            lines.push(rest);
            break;
        };
        let length =
            if rest[place..].starts_with("\r\n") { 2 } else { rest[place..].chars().next().map_or(0, char::len_utf8) };
        lines.push(&rest[..if keep { place + length } else { place }]);
        rest = &rest[place + length..];
    }
    Ok(lines)
}

/// Methods that look for a text, between two places.
fn search(it: &str, name: &str, values: &[Value]) -> Result<Value> {
    let length = it.chars().count() as i128;
    let bound = |value: Option<&Value>, default: i128| -> Result<i128> {
        let index = match value {
            None | Some(Value::None) => return Ok(default),
            Some(value) => integer(value, name)?,
        };
        Ok(if index < 0 { index.saturating_add(length).max(0) } else { index })
    };
    let (start, end) = (bound(values.get(1), 0)?, bound(values.get(2), length)?.min(length));
    let byte = |place: i128| it.char_indices().nth(place as usize).map_or(it.len(), |(byte, _)| byte);
    let inside = start <= end;
    let part = if inside { &it[byte(start)..byte(end)] } else { "" };
    if let ("startswith" | "endswith", Value::Tuple(all)) = (name, &values[0]) {
        for one in &all.values {
            let one = text(one, name)?;
            if inside && if name == "startswith" { part.starts_with(one) } else { part.ends_with(one) } {
                return Ok(Value::Bool(true));
            }
        }
        return Ok(Value::Bool(false));
    }
    let what = text(&values[0], name)?;
    let place = |found: Option<usize>| match found.filter(|_| inside) {
        Some(found) => Ok(Value::Int(start + part[..found].chars().count() as i128)),
        None if name.ends_with("index") => fail("substring not found"),
        None => Ok(Value::Int(-1)),
    };
    match name {
        "startswith" => Ok(Value::Bool(inside && part.starts_with(what))),
        "endswith" => Ok(Value::Bool(inside && part.ends_with(what))),
        "find" | "index" => place(part.find(what)),
        "count" if !inside => Ok(Value::Int(0)),
        "count" => Ok(Value::Int(part.matches(what).count() as i128)),
        _ => place(part.rfind(what)),
    }
}

/// Methods `is…`.
fn class(it: &str, name: &str) -> Result<bool> {
    let cased = |c: char| c.is_lowercase() || c.is_uppercase();
    Ok(match name {
        "isascii" => it.is_ascii(),
        "isspace" => !it.is_empty() && it.chars().all(is_space),
        "islower" => it.chars().any(cased) && !it.chars().any(char::is_uppercase),
        "isupper" => it.chars().any(cased) && !it.chars().any(char::is_lowercase),
        "istitle" => it.chars().any(cased) && titled(it) == it,
        "isalpha" => matches(Class::Letters, it),
        "isalnum" => matches(Class::LettersAndNumbers, it),
        "isdecimal" => matches(Class::Decimals, it),
        "isdigit" if matches(Class::Decimals, it) => true,
        "isnumeric" if matches(Class::Numbers, it) => true,
        "isdigit" | "isnumeric" => {
            // Superscripts and numerals: tables that this crate has not.
            let unclear =
                it.chars().any(|c| !c.is_ascii() && c.is_alphanumeric() && !matches(Class::Decimals, &c.to_string()));
            if unclear && !it.chars().any(|c| c.is_ascii() && !c.is_ascii_digit()) {
                return fail(format!("{name} of characters beyond ASCII is not supported"));
            }
            false
        }
        _ => return needed(None, name).map(|_| false),
    })
}
