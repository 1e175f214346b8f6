//! Bounds on the steps of a `tokenizer.json`: compiled patterns and growing texts.

use super::super::error::LoadError;
use serde_json::Value;
use std::path::Path;

/// Steps of normalizer, pre-tokenizer and decoder.
const STEPS: usize = 64;
/// Regular expressions of all steps.
const PATTERNS: usize = 16;
/// Bytes of all patterns: a class of Unicode characters takes some 50 KB.
const PATTERN_BYTES: usize = 4096;
/// Product of the counts of one pattern, as in `{1,3}`: the compiled pattern repeats what is counted.
const REPEATS: u64 = 128;
/// How many times as long steps may make a text.
const GROWTH: u64 = 256;

/// Checks the steps of a file.
pub(super) fn check(path: &Path, json: &Value) -> Result<(), LoadError> {
    let of = |keys: &[&str]| {
        let mut steps = Vec::new();
        keys.iter().filter_map(|key| json.get(*key)).for_each(|step| flatten(step, &mut steps));
        steps
    };
    let (before, after) = (of(&["normalizer", "pre_tokenizer"]), of(&["decoder"]));
    let refuse = |what: &str, found: String, most: String| Err(LoadError::unsupported(path, what, found, most));
    let count = before.len() + after.len();
    if count > STEPS {
        return refuse("number of steps of a tokenizer", count.to_string(), format!("{STEPS} at most"));
    }
    let patterns: Vec<(&str, bool)> = before.iter().chain(&after).filter_map(|step| pattern(step)).collect();
    let regular = patterns.iter().filter(|(_, is_regular)| *is_regular).count();
    if regular > PATTERNS {
        return refuse("number of patterns of a tokenizer", regular.to_string(), format!("{PATTERNS} at most"));
    }
    let bytes: usize = patterns.iter().map(|(pattern, _)| pattern.len()).sum();
    if bytes > PATTERN_BYTES {
        return refuse("length of a tokenizer's patterns", bytes.to_string(), format!("{PATTERN_BYTES} bytes at most"));
    }
    let repeated = patterns.iter().find(|(pattern, is_regular)| *is_regular && repeats(pattern) > REPEATS);
    if let Some((pattern, _)) = repeated {
        return refuse("pattern of a tokenizer", (*pattern).to_owned(), format!("counts of product {REPEATS} at most"));
    }
    for steps in [before, after] {
        let growth = steps.iter().fold(1u64, |growth, step| growth.saturating_mul(factor(step)));
        if growth > GROWTH {
            let found = format!("that can make texts {growth} times as long");
            return refuse("steps of a tokenizer", found, format!("{GROWTH} times at most"));
        }
    }
    Ok(())
}

fn flatten<'a>(step: &'a Value, steps: &mut Vec<&'a Value>) {
    let inner = ["normalizers", "pretokenizers", "decoders"].iter().find_map(|key| step.get(*key)?.as_array());
    match inner {
        Some(inner) => inner.iter().for_each(|step| flatten(step, steps)),
        None => steps.push(step),
    }
}

/// The pattern of a step, and whether it is a regular expression.
fn pattern(step: &Value) -> Option<(&str, bool)> {
    let pattern = step.get("pattern")?;
    let text = |key: &str| pattern.get(key).and_then(Value::as_str);
    text("Regex").map(|pattern| (pattern, true)).or_else(|| text("String").map(|pattern| (pattern, false)))
}

/// Product of all counts of any kind.
fn repeats(pattern: &str) -> u64 {
    let mut product = 1u64;
    for part in pattern.split('{').skip(1) {
        let counts = part.split('}').next().unwrap_or_default();
        let largest = counts.split(',').filter_map(|count| count.trim().parse::<u64>().ok()).max();
        product = product.saturating_mul(largest.unwrap_or(1).max(1));
    }
    product
}

/// How many times as long a step can make a text.
fn factor(step: &Value) -> u64 {
    let length = |key: &str| step.get(key).and_then(Value::as_str).map_or(0, str::len) as u64;
    match step.get("type").and_then(Value::as_str).unwrap_or_default() {
        // A pattern that matches nothing is found between all characters.
        "Replace" => match pattern(step) {
            Some((pattern, false)) if !pattern.is_empty() => length("content").div_ceil(pattern.len() as u64).max(1),
            _ => length("content") + 1,
        },
        // In front of each piece between added tokens.
        "Prepend" => length("prepend") + 1,
        "Metaspace" => length("replacement") + 1,
        // Arabic ligatures are the longest.
        "NFKC" | "NFKD" => 11,
        "NFD" | "NFC" => 4,
        "ByteLevel" | "Lowercase" => 2,
        _ => 1,
    }
}
