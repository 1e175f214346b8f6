//! Text, tags and white space, with the rules of Jinja: `trim_blocks`, `lstrip_blocks`, and one trailing line end removed.

use super::error::{Result, TemplateError};
use super::literals;
use super::token::{Token, is_space};

/// Longest first.
const OPERATORS: [&str; 26] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".",
    ":", "|", ",", ";",
];

pub(super) struct Lexer<'a> {
    source: &'a str,
    at: usize,
    tokens: Vec<(Token, usize)>,
    /// Whether the text before ended a line.
    line_starts: bool,
    line: usize,
    counted: usize,
}

/// All tokens with their lines. The source has line ends `\n` only.
pub(super) fn tokens(source: &str) -> Result<Vec<(Token, usize)>> {
    let mut lexer = Lexer { source, at: 0, tokens: Vec::new(), line_starts: true, line: 1, counted: 0 };
    lexer.run()?;
    Ok(lexer.tokens)
}

/// The source as Jinja reads it.
pub(super) fn normalized(source: &str) -> String {
    let mut source = source.replace("\r\n", "\n").replace('\r', "\n");
    if source.ends_with('\n') {
        source.pop();
    }
    source
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn line_at(&mut self, place: usize) -> usize {
        if place > self.counted {
            self.line += self.source[self.counted..place].matches('\n').count();
            self.counted = place;
        }
        self.line
    }

    fn fail<T>(&mut self, reason: impl std::fmt::Display) -> Result<T> {
        let line = self.line_at(self.at);
        Err(TemplateError(format!("syntax error: {reason} (line {line})")))
    }

    fn push(&mut self, token: Token) {
        let line = self.line_at(self.at);
        self.tokens.push((token, line));
    }

    fn run(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            let tag = rest
                .match_indices('{')
                .map(|(place, _)| place)
                .find(|&place| matches!(rest.as_bytes().get(place + 1), Some(b'{' | b'%' | b'#')));
            let Some(place) = tag else {
                if !rest.is_empty() {
                    self.push(Token::Data(rest.to_owned()));
                }
                self.at = self.source.len();
                self.push(Token::End);
                return Ok(());
            };
            let kind = rest.as_bytes()[place + 1];
            let raw = (kind == b'%').then(|| raw_begin(&rest[place..])).flatten();
            let sign = rest[place + 2..].chars().next().filter(|sign| matches!(sign, '-' | '+'));
            self.data(&rest[..place], sign, kind != b'{');
            let begin = 2 + sign.map_or(0, char::len_utf8);
            self.at += place;
            if let Some(length) = raw {
                self.at += length;
                self.line_starts = self.source[..self.at].ends_with('\n');
                self.raw()?;
                continue;
            }
            match kind {
                b'#' => {
                    let Some(end) = rest[place + begin..].find("#}") else {
                        return self.fail("missing end of comment tag");
                    };
                    self.at += begin + end;
                    // The sign is part of the comment's text, so that it may follow the begin at once.
                    let sign = self.source[..self.at].chars().next_back().filter(|_| end > 0);
                    self.at += 2;
                    self.after_tag(sign, true);
                }
                b'%' => {
                    self.push(Token::BlockBegin);
                    self.at += begin;
                    self.inside("%}", Token::BlockEnd)?;
                }
                _ => {
                    self.push(Token::PrintBegin);
                    self.at += begin;
                    self.inside("}}", Token::PrintEnd)?;
                }
            }
        }
    }

    /// Text before a tag, with the white space that the tag removes.
    fn data(&mut self, text: &str, sign: Option<char>, is_block: bool) {
        let kept = match sign {
            Some('-') => text.trim_end_matches(is_space),
            None if is_block => {
                let begin = text.rfind('\n').map_or(0, |place| place + 1);
                let blank = begin < text.len() && text[begin..].chars().all(is_space);
                if blank && (begin > 0 || self.line_starts) { &text[..begin] } else { text }
            }
            _ => text,
        };
        if !kept.is_empty() {
            self.push(Token::Data(kept.to_owned()));
        }
    }

    /// White space that the end of a tag removes.
    fn after_tag(&mut self, sign: Option<char>, is_block: bool) {
        let rest = self.rest();
        self.at += match sign {
            Some('-') => rest.len() - rest.trim_start_matches(is_space).len(),
            Some('+') if is_block => 0,
            _ if is_block && rest.starts_with('\n') => 1,
            _ => 0,
        };
        self.line_starts = self.source[..self.at].ends_with('\n');
    }

    /// Text up to `{% endraw %}`.
    fn raw(&mut self) -> Result<()> {
        let rest = self.rest();
        for (place, _) in rest.match_indices("{%") {
            let sign = rest[place + 2..].chars().next().filter(|sign| matches!(sign, '-' | '+'));
            let inner = rest[place + 2 + sign.map_or(0, char::len_utf8)..].trim_start_matches(is_space);
            let Some(inner) = inner.strip_prefix("endraw").map(|inner| inner.trim_start_matches(is_space)) else {
                continue;
            };
            let end = inner.chars().next().filter(|sign| matches!(sign, '-' | '+'));
            let Some(after) = inner[end.map_or(0, char::len_utf8)..].strip_prefix("%}") else { continue };
            self.data(&rest[..place], sign, true);
            self.at = self.source.len() - after.len();
            self.after_tag(end, true);
            return Ok(());
        }
        self.fail("missing end of raw directive")
    }

    /// Tokens up to the end of a tag.
    fn inside(&mut self, end: &str, token: Token) -> Result<()> {
        let mut open: Vec<&'static str> = Vec::new();
        loop {
            let rest = self.rest();
            let Some(first) = rest.chars().next() else {
                return self.fail("unexpected end of template");
            };
            if open.is_empty() {
                let is_block = end == "%}";
                let sign = Some(first).filter(|&sign| sign == '-' || (sign == '+' && is_block));
                if rest[sign.map_or(0, char::len_utf8)..].starts_with(end) {
                    self.push(token);
                    self.at += sign.map_or(0, char::len_utf8) + end.len();
                    self.after_tag(sign, is_block);
                    return Ok(());
                }
            }
            if is_space(first) {
                self.at += first.len_utf8();
            } else if first.is_ascii_digit() {
                let (number, length) = literals::number(rest).or_else(|error| self.fail(error.0))?;
                self.push(number);
                self.at += length;
            } else if first == '_' || first.is_alphanumeric() {
                let length = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
                self.push(Token::Name(rest[..length].to_owned()));
                self.at += length;
            } else if matches!(first, '\'' | '"') {
                let (text, length) = literals::text(rest).or_else(|error| self.fail(error.0))?;
                self.push(Token::Text(text));
                self.at += length;
            } else {
                let Some(operator) = OPERATORS.into_iter().find(|operator| rest.starts_with(operator)) else {
                    return self.fail(format!("unexpected character {first:?}"));
                };
                match operator {
                    "(" => open.push(")"),
                    "[" => open.push("]"),
                    "{" => open.push("}"),
                    ")" | "]" | "}" if open.pop() != Some(operator) => {
                        return self.fail(format!("unexpected {operator:?}"));
                    }
                    _ => {}
                }
                self.push(Token::Operator(operator));
                self.at += operator.len();
            }
        }
    }
}

/// The length of `{% raw %}`, with the white space that it removes.
fn raw_begin(text: &str) -> Option<usize> {
    let inner = text[2..].trim_start_matches(['-', '+']);
    if text[2..].len() - inner.len() > 1 {
        return None;
    }
    let inner = inner.trim_start_matches(is_space).strip_prefix("raw")?.trim_start_matches(is_space);
    let after = match inner.strip_prefix("-%}") {
        Some(after) => after.trim_start_matches(is_space),
        None => inner.strip_prefix("%}")?,
    };
    Some(text.len() - after.len())
}
