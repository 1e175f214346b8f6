//! Values as Python prints them.

use super::classes::{Class, matches};
use super::error::{Result, fail};
use super::meter::{Buffer, step};
use super::token::is_space;
use super::value::Value;

impl Value {
    /// Python's `str` of a value, which is how templates print it.
    pub(super) fn print(&self, to: &mut Buffer) -> Result<()> {
        match self {
            Self::Undefined(_) => Ok(()),
            Self::Str(text) | Self::Markup(text) => to.push(&text.text),
            _ => self.represent(to),
        }
    }

    pub(super) fn printed(&self) -> Result<String> {
        let mut text = Buffer::default();
        self.print(&mut text)?;
        Ok(text.text())
    }

    /// Python's `repr` of a value.
    pub(super) fn represent(&self, to: &mut Buffer) -> Result<()> {
        step(1)?;
        match self {
            Self::Undefined(_) => to.push("Undefined"),
            Self::None => to.push("None"),
            Self::Bool(value) => to.push(if *value { "True" } else { "False" }),
            Self::Int(value) => to.push(&value.to_string()),
            Self::Float(value) => to.push(&float(*value)),
            Self::Str(text) => quoted(&text.text, to),
            Self::List(items) => {
                to.push("[")?;
                row(&items.values, to)?;
                to.push("]")
            }
            Self::Tuple(items) | Self::Group(items) => {
                to.push("(")?;
                row(&items.values, to)?;
                to.push(if items.values.len() == 1 { ",)" } else { ")" })
            }
            Self::Dict(dict) => {
                to.push("{")?;
                pairs(dict.pairs.iter().map(|(key, value)| (key, value)), to)?;
                to.push("}")
            }
            Self::View(name, items) => {
                to.push(name)?;
                to.push("([")?;
                row(&items.values, to)?;
                to.push("])")
            }
            Self::Range(start, stop, 1) => to.push(&format!("range({start}, {stop})")),
            Self::Range(start, stop, by) => to.push(&format!("range({start}, {stop}, {by})")),
            Self::Namespace(names) => {
                to.push("<Namespace {")?;
                for (place, (name, value)) in names.0.borrow().iter().enumerate() {
                    to.push(if place > 0 { ", " } else { "" })?;
                    quoted(name, to)?;
                    to.push(": ")?;
                    value.represent(to)?;
                }
                to.push("}>")
            }
            Self::Macro(value) => {
                to.push("<Macro ")?;
                if &*value.body.name == "caller" {
                    to.push("anonymous")?;
                } else {
                    quoted(&value.body.name, to)?;
                }
                to.push(">")
            }
            Self::Loop(state) => {
                to.push(&format!("<LoopContext {}/{}>", state.index.get() + 1, state.items.values.len()))
            }
            Self::Markup(_) => fail("Python's repr of a text marked as safe is not supported"),
            Self::Stream(_) | Self::Method(_) | Self::Function(_) => {
                fail(format!("a {} prints an address, which is another each time", self.kind()))
            }
        }
    }
}

fn row(values: &[Value], to: &mut Buffer) -> Result<()> {
    values.iter().enumerate().try_for_each(|(place, value)| {
        to.push(if place > 0 { ", " } else { "" })?;
        value.represent(to)
    })
}

fn pairs<'a>(pairs: impl Iterator<Item = (&'a Value, &'a Value)>, to: &mut Buffer) -> Result<()> {
    for (place, (key, value)) in pairs.enumerate() {
        to.push(if place > 0 { ", " } else { "" })?;
        key.represent(to)?;
        to.push(": ")?;
        value.represent(to)?;
    }
    Ok(())
}

/// A text in quotes, double ones where only single ones are in it.
fn quoted(text: &str, to: &mut Buffer) -> Result<()> {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    step(text.len() / 4)?;
    to.push_char(quote)?;
    for character in text.chars() {
        match character {
            '\n' => to.push("\\n")?,
            '\r' => to.push("\\r")?,
            '\t' => to.push("\\t")?,
            '\\' => to.push("\\\\")?,
            _ if character == quote => {
                to.push("\\")?;
                to.push_char(character)?;
            }
            _ if is_printable(character) => to.push_char(character)?,
            _ => {
                let code = u32::from(character);
                to.push(&match code {
                    0..=0xff => format!("\\x{code:02x}"),
                    0x100..=0xffff => format!("\\u{code:04x}"),
                    _ => format!("\\U{code:08x}"),
                })?;
            }
        }
    }
    to.push_char(quote)
}

/// Whether Python's `repr` writes a character as it is.
fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return !character.is_ascii_control();
    }
    let hidden = character.is_control() || is_space(character);
    // Formats, surrogates, private use and code points without a character.
    let mut text = [0; 4];
    let text: &str = character.encode_utf8(&mut text);
    !hidden && !matches(Class::Other, text)
}

/// Python's shortest text of a float.
pub(super) fn float(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.into();
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let text = value.to_string();
        return if text.contains('.') { text } else { text + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
