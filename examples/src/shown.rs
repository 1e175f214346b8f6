//! Settings as a program prints them.

use serde::Serialize;
use serde_json::{Map, Value};

/// Columns of a line: a terminal has as many at least.
const WIDTH: usize = 80;

/// The settings in lines that fit 80 columns: names and values, without what is off or not set. Something that has a name, as a noiser,
/// is shown by it, and a group of settings by what is in it; `hidden` names fields that another choice makes meaningless.
pub fn lines(settings: &impl Serialize, hidden: &[&str]) -> String {
    let mut words = Vec::new();
    // Settings that are not written are in no file either, and refused there.
    if let Ok(Value::Object(fields)) = serde_json::to_value(settings) {
        collect(&fields, hidden, &mut words);
    }
    let mut lines = String::new();
    let mut column = 0;
    for (index, word) in words.iter().enumerate() {
        let end = if index + 1 < words.len() { "," } else { "" };
        let length = word.chars().count() + end.len();
        let starts = index == 0 || column + 1 + length > WIDTH;
        lines.push_str(if index > 0 && starts {
            "\n  "
        } else if starts {
            "  "
        } else {
            " "
        });
        column = if starts { 2 + length } else { column + 1 + length };
        lines.push_str(&format!("{word}{end}"));
    }
    lines
}

fn collect(fields: &Map<String, Value>, hidden: &[&str], words: &mut Vec<String>) {
    for (name, value) in fields.iter().filter(|(name, _)| !hidden.contains(&name.as_str())) {
        let label = name.replace('_', " ");
        match value {
            Value::Null | Value::Bool(false) => {}
            Value::Bool(true) => words.push(label),
            Value::Object(inner) => match inner.get("name") {
                Some(named) => words.push(format!("{label} {}", text(named))),
                None => collect(inner, hidden, words),
            },
            value => words.push(format!("{label} {}", text(value))),
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join("-"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::lines;
    use serde_json::json;

    #[test]
    fn settings_are_short_and_narrow() {
        let settings = json!({
            "batch": 128, "by_image": true, "convolutions": { "kernel": 5 }, "hidden": [64, 32], "lr": 0.002, "noiser": { "name": "eggroll", "rank": 1 },
            "rademacher": false, "seed": 0, "shaping": null, "votes": { "alpha": 3.0 },
        });
        let text = lines(&settings, &["convolutions"]);
        assert_eq!(text, "  batch 128, by image, hidden 64-32, lr 0.002, noiser eggroll, seed 0, alpha 3.0");
        let many: serde_json::Map<_, _> = (0..40).map(|index| (format!("setting_{index}"), json!(index))).collect();
        let text = lines(&many, &[]);
        assert!(text.lines().count() > 5 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.lines().rev().skip(1).all(|line| line.ends_with(',') && line.starts_with("  s")), "{text}");
    }
}
