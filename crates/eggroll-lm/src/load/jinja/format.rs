//! `%` and `format` of Python's texts.

use super::args::CallArgs;
use super::error::{Result, TemplateError, fail};
use super::meter::Buffer;
use super::text::float;
use super::value::Value;

/// How a value fills its place.
#[derive(Default)]
struct Spec {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    alternate: bool,
    zeros: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

/// Reads digits; more than nine are too many.
fn count(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Option<usize>> {
    let mut digits = String::new();
    while let Some(digit) = characters.next_if(char::is_ascii_digit) {
        digits.push(digit);
        if digits.len() > 9 {
            return fail("a width of more than nine digits");
        }
    }
    Ok(digits.parse().ok())
}

impl Spec {
    /// `[[fill]align][sign][#][0][width][,][.precision][type]`.
    fn parse(text: &str) -> Result<Self> {
        let mut spec = Self::default();
        let mut characters = text.chars().peekable();
        let is_align = |c: char| matches!(c, '<' | '>' | '^' | '=');
        let mut ahead = text.chars();
        let (first, second) = (ahead.next(), ahead.next());
        if second.is_some_and(is_align) {
            (spec.fill, spec.align) = (first, second);
            characters.by_ref().take(2).for_each(drop);
        } else if first.is_some_and(is_align) {
            spec.align = characters.next();
        }
        spec.sign = characters.next_if(|c| matches!(c, '+' | '-' | ' '));
        spec.alternate = characters.next_if_eq(&'#').is_some();
        spec.zeros = characters.next_if_eq(&'0').is_some();
        spec.width = count(&mut characters)?.unwrap_or(0);
        spec.grouping = characters.next_if(|c| matches!(c, ',' | '_'));
        if characters.next_if_eq(&'.').is_some() {
            spec.precision = Some(
                count(&mut characters)?.ok_or_else(|| TemplateError("format specifier missing precision".into()))?,
            );
        }
        spec.kind = characters.next();
        if characters.next().is_some() || spec.alternate {
            return fail(format!("the format {text:?} is not supported"));
        }
        Ok(spec)
    }

    /// Fills up to the width; numbers keep their sign in front of zeros.
    fn place(&self, sign: &str, body: &str, is_number: bool, to: &mut Buffer) -> Result<()> {
        let length = sign.chars().count() + body.chars().count();
        let missing = self.width.saturating_sub(length);
        let zeros = self.zeros && self.fill.is_none();
        let fill = self.fill.unwrap_or(if zeros { '0' } else { ' ' }).to_string();
        let align = self.align.unwrap_or(if zeros && is_number {
            '='
        } else if is_number {
            '>'
        } else {
            '<'
        });
        let (before, inner, after) = match align {
            '<' => (0, 0, missing),
            '^' => (missing / 2, 0, missing - missing / 2),
            '=' if is_number => (0, missing, 0),
            '=' => return fail("'=' alignment of a text"),
            _ => (missing, 0, 0),
        };
        to.repeat(&fill, before)?;
        to.push(sign)?;
        to.repeat(&fill, inner)?;
        to.push(body)?;
        to.repeat(&fill, after)
    }

    fn write(&self, value: &Value, to: &mut Buffer) -> Result<()> {
        let refuse = || fail(format!("the format {:?} of {} is not supported", self.kind, value.kind()));
        if let Value::Str(text) = value {
            if !matches!(self.kind, None | Some('s')) || self.sign.is_some() || self.grouping.is_some() {
                return refuse();
            }
            let end = self
                .precision
                .and_then(|most| text.text.char_indices().nth(most))
                .map_or(text.text.len(), |(end, _)| end);
            return self.place("", &text.text[..end], false, to);
        }
        let (negative, body) = match (value.as_int(), value.as_number(), self.kind) {
            (Some(value), _, None | Some('d' | 'x' | 'X' | 'o' | 'b')) if self.precision.is_none() => {
                let absolute = value.unsigned_abs();
                let digits = match self.kind {
                    Some('x') => format!("{absolute:x}"),
                    Some('X') => format!("{absolute:X}"),
                    Some('o') => format!("{absolute:o}"),
                    Some('b') => format!("{absolute:b}"),
                    _ => absolute.to_string(),
                };
                (value < 0, digits)
            }
            (_, Some(value), Some(kind @ ('f' | 'F' | 'e' | 'E' | 'g' | 'G' | '%'))) => {
                let scaled = if kind == '%' { value.abs() * 100.0 } else { value.abs() };
                let digits = number(scaled, kind, self.precision.unwrap_or(6))?;
                (value.is_sign_negative() && !value.is_nan(), digits + if kind == '%' { "%" } else { "" })
            }
            (None, Some(value), None) if self.precision.is_none() => {
                (value.is_sign_negative() && !value.is_nan(), float(value.abs()))
            }
            _ => return refuse(),
        };
        let sign = match (negative, self.sign) {
            (true, _) => "-",
            (false, Some('+')) => "+",
            (false, Some(' ')) => " ",
            _ => "",
        };
        let body = match self.grouping {
            Some(mark) if !self.zeros && matches!(self.kind, None | Some('d' | 'f' | 'F' | '%')) => {
                grouped(&body, mark)
            }
            Some(_) => return refuse(),
            None => body,
        };
        self.place(sign, &body, true, to)
    }
}

fn grouped(body: &str, mark: char) -> String {
    let end = body.find(|c: char| !c.is_ascii_digit()).unwrap_or(body.len());
    let mut grouped = String::new();
    for (place, digit) in body[..end].chars().enumerate() {
        if place > 0 && (end - place).is_multiple_of(3) {
            grouped.push(mark);
        }
        grouped.push(digit);
    }
    grouped + &body[end..]
}

/// A float that is not negative, in a form of C.
fn number(value: f64, kind: char, precision: usize) -> Result<String> {
    if precision > 10_000 {
        return fail("a precision of more than 10000 digits");
    }
    if !value.is_finite() {
        let text = if value.is_nan() { "nan" } else { "inf" };
        return Ok(if kind.is_ascii_uppercase() { text.to_uppercase() } else { text.into() });
    }
    let scientific = |precision: usize| {
        let text = format!("{value:.precision$e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        (digits.to_owned(), exponent)
    };
    let written =
        |digits: &str, exponent: i32| format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
    let text = match kind {
        'e' | 'E' => {
            let (digits, exponent) = scientific(precision);
            written(&digits, exponent)
        }
        'g' | 'G' => {
            let precision = precision.max(1);
            let (digits, exponent) = scientific(precision - 1);
            let trim = |text: &str| match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text.to_owned(),
            };
            if (-4..precision as i32).contains(&exponent) {
                let places = (precision as i32 - 1 - exponent).max(0) as usize;
                trim(&format!("{value:.places$}"))
            } else {
                written(&trim(&digits), exponent)
            }
        }
        _ => format!("{value:.precision$}"),
    };
    Ok(if kind.is_ascii_uppercase() { text.to_uppercase() } else { text })
}

/// `text % values`.
pub(super) fn percent(text: &str, values: &Value) -> Result<Value> {
    let mut out = Buffer::default();
    let mut characters = text.chars().peekable();
    let all = match values {
        Value::Tuple(items) | Value::Group(items) => items.values.clone(),
        one => vec![one.clone()],
    };
    let mut left = all.iter();
    let mut named = false;
    while let Some(character) = characters.next() {
        if character != '%' {
            out.push_char(character)?;
            continue;
        }
        let mut one = None;
        if characters.next_if_eq(&'(').is_some() {
            let name: String = characters.by_ref().take_while(|&c| c != ')').collect();
            let Value::Dict(dict) = values else { return fail("format requires a mapping") };
            one = Some(
                dict.get_text(&name)
                    .cloned()
                    .ok_or_else(|| TemplateError(format!("there is no {name:?} to format")))?,
            );
            named = true;
        }
        let mut spec = Spec::default();
        let mut flags = String::new();
        while let Some(flag) = characters.next_if(|c| matches!(c, '-' | '+' | ' ' | '0' | '#')) {
            flags.push(flag);
        }
        let mut next =
            || left.next().cloned().ok_or_else(|| TemplateError("not enough arguments for format string".into()));
        spec.width = match characters.next_if_eq(&'*') {
            Some(_) => return fail("a width * is not supported"),
            None => count(&mut characters)?.unwrap_or(0),
        };
        if characters.next_if_eq(&'.').is_some() {
            spec.precision = Some(count(&mut characters)?.unwrap_or(0));
        }
        let Some(kind) = characters.next() else { return fail("incomplete format") };
        if kind == '%' {
            out.push("%")?;
            continue;
        }
        let value = match one {
            Some(value) => value,
            None => next()?,
        };
        spec.align = Some(if flags.contains('-') { '<' } else { '>' });
        spec.sign = ['+', ' '].into_iter().find(|sign| flags.contains(*sign));
        if flags.contains('#') {
            return fail("the flag # of a format is not supported");
        }
        match kind {
            's' | 'r' => {
                let mut text = Buffer::default();
                if kind == 's' {
                    value.print(&mut text)?
                } else {
                    value.represent(&mut text)?
                }
                (spec.sign, spec.kind) = (None, None);
                spec.write(&text.value()?, &mut out)?;
            }
            'd' | 'i' | 'u' | 'f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'x' | 'X' | 'o' => {
                let whole = matches!(kind, 'd' | 'i' | 'u');
                let value = match &value {
                    Value::Float(value) if whole && value.is_finite() && value.abs() < 1e38 => {
                        Value::Int(*value as i128)
                    }
                    Value::Undefined(name) => return fail(format!("{name:?} is undefined")),
                    value if value.as_number().is_none() => {
                        return fail(format!("%{kind} format: a real number is required, not {}", value.kind()));
                    }
                    value => value.clone(),
                };
                if flags.contains('0') && !flags.contains('-') {
                    (spec.zeros, spec.align) = (true, None);
                }
                let integer = whole || matches!(kind, 'x' | 'X' | 'o');
                if integer && spec.precision.is_some() {
                    return fail("a precision of an integer is not supported");
                }
                spec.kind = Some(if whole { 'd' } else { kind });
                spec.write(&value, &mut out)?;
            }
            'c' if value.as_str().is_some_and(|text| text.chars().count() == 1) => {
                spec.sign = None;
                spec.precision = None;
                spec.write(&value, &mut out)?;
            }
            _ => return fail(format!("the format %{kind} is not supported")),
        }
    }
    let is_mapping = matches!(values, Value::Dict(_) | Value::List(_) | Value::Undefined(_));
    if left.next().is_some() && !named && !is_mapping {
        return fail("not all arguments converted during string formatting");
    }
    out.value()
}

/// `text.format(…)`.
pub(super) fn braces(text: &str, args: &CallArgs) -> Result<Value> {
    let mut out = Buffer::default();
    let mut counter = Some(0usize);
    write(text, args, &mut counter, 0, &mut out)?;
    out.value()
}

fn write(text: &str, args: &CallArgs, counter: &mut Option<usize>, depth: usize, out: &mut Buffer) -> Result<()> {
    let mut rest = text;
    while let Some(place) = rest.find(['{', '}']) {
        out.push(&rest[..place])?;
        let brace = &rest[place..=place];
        rest = &rest[place + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            out.push(brace)?;
            rest = after;
            continue;
        }
        if brace == "}" {
            return fail("Single '}' encountered in format string");
        }
        let mut open = 1;
        let end = rest.char_indices().find_map(|(place, c)| {
            open += i32::from(c == '{') - i32::from(c == '}');
            (open == 0).then_some(place)
        });
        let Some(end) = end else { return fail("expected '}' before end of string") };
        field(&rest[..end], args, counter, depth, out)?;
        rest = &rest[end + 1..];
    }
    out.push(rest)
}

/// What stands between braces: a name, a conversion, a format.
fn field(field: &str, args: &CallArgs, counter: &mut Option<usize>, depth: usize, out: &mut Buffer) -> Result<()> {
    let end = field.find(['!', ':']).unwrap_or(field.len());
    let (name, rest) = field.split_at(end);
    let (conversion, format) = match rest.strip_prefix('!') {
        Some(rest) => (rest.split(':').next(), rest.split_once(':').map_or("", |(_, format)| format)),
        None => (None, rest.strip_prefix(':').unwrap_or("")),
    };
    let first = name.find(['.', '[']).unwrap_or(name.len());
    let is_index = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    if name.is_empty() {
        let place =
            counter.ok_or_else(|| TemplateError("cannot switch from manual to automatic field numbering".into()))?;
        *counter = Some(place + 1);
    } else if is_index(name) && counter.is_some_and(|count| count > 0) {
        return fail("cannot switch from automatic field numbering to manual");
    } else if is_index(name) {
        *counter = None;
    }
    let mut value = match &name[..first] {
        "" if name.is_empty() => counter.and_then(|count| args.positional.get(count - 1).cloned()),
        index if is_index(index) => index.parse().ok().and_then(|place: usize| args.positional.get(place).cloned()),
        name => args.named.iter().find(|(other, _)| &**other == name).map(|(_, value)| value.clone()),
    }
    .ok_or_else(|| TemplateError(format!("there is no argument for {{{name}}}")))?;
    let mut path = &name[first..];
    while !path.is_empty() {
        let (part, after) = match path.strip_prefix('.') {
            Some(path) => path.split_at(path.find(['.', '[']).unwrap_or(path.len())),
            None => path[1..].split_once(']').ok_or_else(|| TemplateError("missing ']' in format string".into()))?,
        };
        value = match (path.starts_with('.'), part.parse::<i128>()) {
            (true, _) => value.attribute(part)?,
            (false, Ok(index)) => value.item(&Value::Int(index))?,
            (false, Err(_)) => value.item(&Value::text(part)?)?,
        };
        if matches!(value, Value::Undefined(_)) {
            return fail(format!("there is no {part:?} to format"));
        }
        path = after;
    }
    let mut converted = Buffer::default();
    match conversion {
        None => {}
        Some("r") => value.represent(&mut converted)?,
        Some("s") => value.print(&mut converted)?,
        Some(other) => return fail(format!("the conversion !{other} is not supported")),
    }
    if conversion.is_some() {
        value = converted.value()?;
    }
    if depth > 1 {
        return fail("Max string recursion exceeded");
    }
    let mut spec = Buffer::default();
    write(format, args, counter, depth + 1, &mut spec)?;
    if spec.as_str().is_empty() {
        return value.print(out);
    }
    if matches!(value, Value::Undefined(_)) {
        return fail("a format of what is undefined");
    }
    Spec::parse(spec.as_str())?.write(&value, out)
}
