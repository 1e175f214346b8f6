//! Settings of any shape as names with values.

use serde_json::{Number, Value};

/// Longest list that is shown in full.
const SHOWN: usize = 300;

/// The leaves of a value, by the names on the way to them joined by dots. Lists are one value.
pub(super) fn flat(value: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect("", value, &mut found);
    found
}

fn collect(name: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {}
        Value::Object(fields) if !fields.is_empty() => {
            for (field, value) in fields {
                let inner = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
                collect(&inner, value, found);
            }
        }
        other => found.push((name.to_owned(), text(other))),
    }
}

/// A value in one line; a string without its quotes.
pub(super) fn text(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        // A number of 32 bits, with its own digits.
        Value::Number(number) if number.is_f64() && is_short(number) => {
            (number.as_f64().unwrap_or(0.0) as f32).to_string()
        }
        other => other.to_string(),
    };
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn is_short(number: &Number) -> bool {
    number.as_f64().is_some_and(|number| f64::from(number as f32) == number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_are_flat() {
        let settings = json!({ "a": { "b": 1, "c": [1, 2] }, "d": "x", "e": null, "f": {} });
        assert_eq!(text(&json!(0.9f32)), "0.9");
        assert_eq!(text(&json!(0.9)), "0.9");
        let named = [("a.b", "1"), ("a.c", "[1,2]"), ("d", "x"), ("f", "{}")];
        assert_eq!(flat(&settings), named.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
