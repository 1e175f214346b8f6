//! The filter `tojson`, which is Python's `json.dumps` in transformers.

use super::args::{CallArgs, integer};
use super::error::{Result, fail};
use super::meter::{Buffer, Deeper, room, step};
use super::operators::sort;
use super::text::float;
use super::value::Value;

struct Style {
    ascii: bool,
    /// Of each level, if lines are broken.
    indent: Option<String>,
    comma: String,
    colon: String,
    sorted: bool,
}

/// The text of a value.
pub(super) fn to_json(value: &Value, args: CallArgs) -> Result<Value> {
    let [ascii, indent, separators, sorted] =
        args.bind("tojson", ["ensure_ascii", "indent", "separators", "sort_keys"])?;
    let is_true = |value: Option<Value>| value.is_some_and(|value| value.is_true());
    let indent = match indent {
        None | Some(Value::None) => None,
        Some(Value::Str(text)) => Some(text.text.to_string()),
        Some(value) => {
            let count = integer(&value, "indent of tojson")?.max(0);
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            room(count)?;
            Some(" ".repeat(count))
        }
    };
    let (comma, colon) = match separators {
        None | Some(Value::None) => (if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()),
        Some(separators) => match separators.iterate()?.as_slice() {
            [comma, colon] => match (comma.as_str(), colon.as_str()) {
                (Some(comma), Some(colon)) => (comma.to_owned(), colon.to_owned()),
                _ => return fail("separators of tojson must be texts"),
            },
            _ => return fail("separators of tojson must be two"),
        },
    };
    let style = Style { ascii: is_true(ascii), indent, comma, colon, sorted: is_true(sorted) };
    let mut text = Buffer::default();
    style.write(value, 0, &mut text)?;
    text.value()
}

impl Style {
    fn write(&self, value: &Value, level: usize, to: &mut Buffer) -> Result<()> {
        let _deeper = Deeper::new()?;
        match value {
            Value::None => to.push("null"),
            Value::Bool(value) => to.push(if *value { "true" } else { "false" }),
            Value::Int(value) => to.push(&value.to_string()),
            Value::Float(value) => to.push(&number(*value)),
            Value::Str(text) | Value::Markup(text) => self.text(&text.text, to),
            Value::List(items) | Value::Tuple(items) | Value::Group(items) => {
                if items.values.is_empty() {
                    return to.push("[]");
                }
                to.push("[")?;
                for (place, value) in items.values.iter().enumerate() {
                    self.separate(place > 0, level + 1, to)?;
                    self.write(value, level + 1, to)?;
                }
                self.end(level, to)?;
                to.push("]")
            }
            Value::Dict(dict) => {
                if dict.pairs.is_empty() {
                    return to.push("{}");
                }
                let mut pairs: Vec<&(Value, Value)> = dict.pairs.iter().collect();
                if self.sorted {
                    sort(&mut pairs, |pair| Ok(pair.0.clone()), false)?;
                }
                to.push("{")?;
                for (place, (key, value)) in pairs.into_iter().enumerate() {
                    self.separate(place > 0, level + 1, to)?;
                    match key {
                        Value::Str(text) | Value::Markup(text) => self.text(&text.text, to)?,
                        Value::None => to.push("\"null\"")?,
                        Value::Bool(value) => to.push(if *value { "\"true\"" } else { "\"false\"" })?,
                        Value::Int(value) => to.push(&format!("\"{value}\""))?,
                        Value::Float(value) => to.push(&format!("\"{}\"", number(*value)))?,
                        _ => return fail(format!("keys of JSON cannot be {}", key.kind())),
                    }
                    to.push(&self.colon)?;
                    self.write(value, level + 1, to)?;
                }
                self.end(level, to)?;
                to.push("}")
            }
            _ => fail(format!("{} is not JSON serializable", value.kind())),
        }
    }

    fn separate(&self, further: bool, level: usize, to: &mut Buffer) -> Result<()> {
        if further {
            to.push(&self.comma)?;
        }
        self.end(level, to)
    }

    /// A new line, where lines are broken.
    fn end(&self, level: usize, to: &mut Buffer) -> Result<()> {
        let Some(indent) = &self.indent else { return Ok(()) };
        to.push("\n")?;
        to.repeat(indent, level)
    }

    fn text(&self, text: &str, to: &mut Buffer) -> Result<()> {
        step(text.len() / 16)?;
        to.push("\"")?;
        for character in text.chars() {
            match character {
                '"' => to.push("\\\"")?,
                '\\' => to.push("\\\\")?,
                '\n' => to.push("\\n")?,
                '\r' => to.push("\\r")?,
                '\t' => to.push("\\t")?,
                '\u{8}' => to.push("\\b")?,
                '\u{c}' => to.push("\\f")?,
                '\0'..'\u{20}' => to.push(&format!("\\u{:04x}", u32::from(character)))?,
                _ if self.ascii && character > '~' => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        to.push(&format!("\\u{unit:04x}"))?;
                    }
                }
                _ => to.push_char(character)?,
            }
        }
        to.push("\"")
    }
}

fn number(value: f64) -> String {
    match value {
        _ if value.is_nan() => "NaN".into(),
        _ if value.is_infinite() => if value > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        _ => float(value),
    }
}
