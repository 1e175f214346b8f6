//! Supervised fine-tuning (SFT): completions from a file.

use super::lines::{numbered, read, shown};
use super::{Example, Splits};
use crate::Failure;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::Path;

/// Examples below which a tenth of them would be none.
const FEWEST: usize = 10;

/// A line of a file; other fields are ignored.
#[derive(Deserialize)]
struct SftLine {
    prompt: String,
    completion: String,
}

/// The examples of a file. A name that ends in `.jsonl`, `.ndjson` or `.json` has an object `{"prompt": …,
/// "completion": …}` in each line. Any other file is a text: each line is a completion without a prompt. Blank lines
/// are skipped. The last tenth is the test, the tenth before it dev.
///
/// # Errors
///
/// The file, the line, what was found and what was expected.
pub fn examples(path: &Path) -> Result<Splits<Example>, Failure> {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    let mut train = match ending.as_deref() {
        Some("jsonl" | "ndjson" | "json") => read(path, parse_json_lines),
        _ => read(path, parse_text_lines),
    }?;
    let count = train.len();
    if count < FEWEST {
        return Err(
            format!("{count} examples: sft needs {FEWEST} at least, a tenth of them for dev and test each").into()
        );
    }
    let test = train.split_off(count - count / 10);
    let dev = train.split_off(train.len() - count / 10);
    Ok(Splits { train: vec![train], dev, test })
}

fn parse_json_lines(text: &str) -> Result<Vec<Example>, Failure> {
    let parse = |(line, json): (usize, &str)| -> Result<Example, Failure> {
        let refused = |reason: &dyn std::fmt::Display| {
            let expected = r#"a JSON object such as {"prompt": "2 + 2 = ", "completion": "4"}"#;
            format!("line {line}: found {} ({reason}), expected {expected}", shown(json))
        };
        let SftLine { prompt, completion } = serde_json::from_str(json).map_err(|error| refused(&error))?;
        if completion.is_empty() {
            return Err(refused(&"the completion is empty").into());
        }
        Ok(Example { prompt, completion, line })
    };
    numbered(text).map(parse).collect()
}

fn parse_text_lines(text: &str) -> Result<Vec<Example>, Failure> {
    if numbered(text).next().is_some_and(|(_, line)| serde_json::from_str::<Map<String, Value>>(line).is_ok()) {
        return Err("found JSON in the first line, expected text, or a name that ends in .jsonl".into());
    }
    let example = |(line, text): (usize, &str)| Example { prompt: String::new(), completion: text.into(), line };
    Ok(numbered(text).map(example).collect())
}
