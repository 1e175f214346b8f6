//! Numbers and texts, as Python writes them.

use super::error::{Result, TemplateError, fail};
use super::token::Token;

/// Length of digits with single underscores between them.
fn digits(text: &str, is_digit: impl Fn(u8) -> bool) -> usize {
    let bytes = text.as_bytes();
    let mut length = 0;
    while length < bytes.len() {
        let next = length + usize::from(length > 0 && bytes[length] == b'_');
        if !bytes.get(next).is_some_and(|&byte| is_digit(byte)) {
            break;
        }
        length = next + 1;
    }
    length
}

/// The number at the beginning of a text, and its length.
pub(super) fn number(text: &str) -> Result<(Token, usize)> {
    let decimal = |text: &str| digits(text, |byte| byte.is_ascii_digit());
    let whole = decimal(text);
    let fraction = text[whole..].strip_prefix('.').map_or(0, decimal);
    let mut length = whole + if fraction > 0 { fraction + 1 } else { 0 };
    if let Some(exponent) = text[length..].strip_prefix(['e', 'E']) {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let count = decimal(&exponent[sign..]);
        length += if count > 0 { 1 + sign + count } else { 0 };
    }
    if length > whole {
        let value: f64 = text[..length].replace('_', "").parse().map_err(|_| TemplateError("not a number".into()))?;
        return Ok((Token::Float(value), length));
    }
    let radix = match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0b") => 2,
        Some("0o") => 8,
        Some("0x") => 16,
        _ => 10,
    };
    if radix != 10 {
        let body = text[2..].trim_start_matches('_');
        let skipped = text.len() - body.len();
        let count = digits(body, |byte| char::from(byte).is_digit(radix));
        if count > 0 && skipped <= 3 {
            return integer(&body[..count], radix).map(|value| (Token::Int(value), skipped + count));
        }
    }
    // No number but zero begins with a zero: `01` is two tokens.
    let length = if text.starts_with('0') { digits(text, |byte| byte == b'0') } else { whole };
    integer(&text[..length], 10).map(|value| (Token::Int(value), length))
}

fn integer(digits: &str, radix: u32) -> Result<i128> {
    i128::from_str_radix(&digits.replace('_', ""), radix).or_else(|_| fail("an integer of more than 127 bits"))
}

/// The quoted text at the beginning of a text, and its length.
pub(super) fn text(source: &str) -> Result<(String, usize)> {
    let quote = source.chars().next().unwrap_or('\'');
    let mut text = String::new();
    let mut characters = source[1..].char_indices();
    while let Some((place, character)) = characters.next() {
        if character == quote {
            return Ok((text, place + 2));
        }
        if character != '\\' {
            text.push(character);
            continue;
        }
        let Some((_, escaped)) = characters.next() else { break };
        let mut code = |first: &str, count: usize, radix: u32| -> Result<char> {
            let mut digits = first.to_owned();
            while digits.len() < count {
                let rest = characters.as_str();
                let digit = rest.chars().next().filter(|digit| digit.is_digit(radix));
                // Octal escapes have up to three digits, the others all of theirs.
                let Some(digit) = digit else {
                    if radix == 8 { break } else { return fail("an escape of too few digits") }
                };
                digits.push(digit);
                characters.next();
            }
            let code = u32::from_str_radix(&digits, radix).ok().and_then(char::from_u32);
            code.map_or_else(|| fail("an escape that is not a character"), Ok)
        };
        match escaped {
            '\n' => {}
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'a' => text.push('\u{7}'),
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            'v' => text.push('\u{b}'),
            '\\' | '\'' | '"' => text.push(escaped),
            'x' => text.push(code("", 2, 16)?),
            'u' => text.push(code("", 4, 16)?),
            'U' => text.push(code("", 8, 16)?),
            '0'..='7' => text.push(code(&escaped.to_string(), 3, 8)?),
            'N' => return fail("characters by name, \\N{…}, are not supported"),
            // Python writes characters beyond ASCII as escapes first, whose backslash this one then escapes.
            _ if !escaped.is_ascii() => return fail("a backslash before a character beyond ASCII is not supported"),
            _ => text.extend(['\\', escaped]),
        }
    }
    fail("a text without end")
}
