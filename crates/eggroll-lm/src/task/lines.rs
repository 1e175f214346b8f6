//! Files of lines.

use super::TaskError;
use super::distinct::Distinct;
use crate::reward::Prompt;
use serde::de::DeserializeOwned;
use std::fs;
use std::path::Path;

/// Characters of a line that an error shows.
const SHOWN: usize = 60;

/// A file that has to be decompressed.
pub(super) const COMPRESSED: TaskError =
    TaskError::Kind { found: "a compressed file", expected: "text: decompress it first" };

const PROMPT: &str = r#"a JSON object such as {"prompt": "2 + 2 = ", "reference": "4"}"#;

/// Reads prompts from a file of JSON lines (JSONL), as [`parse_prompts`] does.
///
/// # Errors
///
/// [`TaskError::Io`] if the file cannot be read, [`TaskError::File`] with an error of [`parse_prompts`].
pub fn read_prompts(path: impl AsRef<Path>) -> Result<Vec<Prompt>, TaskError> {
    read(path.as_ref(), parse_prompts)
}

/// Prompts from JSON lines (JSONL): one object a line, with the fields of a [`Prompt`]. Blank lines are skipped.
///
/// # Errors
///
/// [`TaskError::Line`] if a line is no prompt, or has a field twice, [`TaskError::Empty`] if there is none.
///
/// # Example
///
/// ```
/// use eggroll_lm::task::parse_prompts;
///
/// # fn main() -> Result<(), eggroll_lm::task::TaskError> {
/// let prompts = parse_prompts("{\"prompt\": \"2 + 2 = \", \"reference\": \"4\", \"level\": 1}\n")?;
/// assert_eq!(prompts[0].text(), "2 + 2 = ");
/// assert_eq!(prompts[0].fact::<u32>("level", "a level"), Ok(1));
/// # Ok(())
/// # }
/// ```
pub fn parse_prompts(text: &str) -> Result<Vec<Prompt>, TaskError> {
    parse_json_lines(text, PROMPT)
}

/// What `parse` makes of a file of UTF-8; its errors name the file.
pub(super) fn read<T>(path: &Path, parse: impl FnOnce(&str) -> Result<T, TaskError>) -> Result<T, TaskError> {
    let bytes = fs::read(path).map_err(|source| TaskError::Io { path: path.into(), source })?;
    let parsed = match std::str::from_utf8(&bytes) {
        _ if bytes.starts_with(&[0x1f, 0x8b]) => Err(COMPRESSED),
        Ok(text) => parse(text),
        Err(error) => {
            let valid = &bytes[..error.valid_up_to()];
            let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
            let found = format!("the byte 0x{:02X}", bytes[valid.len()]);
            Err(TaskError::Line { line, found, expected: "text in UTF-8: convert the file".into() })
        }
    };
    parsed.map_err(|error| TaskError::File { path: path.into(), source: Box::new(error) })
}

/// The lines that are not blank, with their numbers from 1, without a byte order mark.
pub(super) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().enumerate().map(|(index, line)| (index + 1, line)).filter(|(_, line)| !line.trim().is_empty())
}

/// One value from each line that is not blank, at least one.
pub(super) fn parse_json_lines<T: DeserializeOwned>(text: &str, expected: &str) -> Result<Vec<T>, TaskError> {
    let parsed = numbered(text).map(|(line, json)| {
        serde_json::from_str::<Distinct>(json).and_then(|_| serde_json::from_str(json)).map_err(|error| {
            let found = format!("{} ({})", shown(json), reason(&error));
            TaskError::Line { line, found, expected: expected.into() }
        })
    });
    let values: Vec<T> = parsed.collect::<Result<_, _>>()?;
    if values.is_empty() {
        return Err(TaskError::Empty { expected: expected.into() });
    }
    Ok(values)
}

/// The start of a line.
pub(super) fn shown(line: &str) -> String {
    let start: String = line.chars().take(SHOWN).collect();
    if start.len() < line.len() { format!("{start:?}…") } else { format!("{start:?}") }
}

/// A JSON error with its column alone: every one is on line 1 of its line.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((reason, _)) => format!("{reason} at column {}", error.column()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        parse_prompts(text).unwrap_err().to_string()
    }

    #[test]
    fn errors_have_the_line_of_the_file() {
        let good = "{\"prompt\":\"a\"}\r\n\n";
        let found = message(&format!("{good}{{\"prompt\": 3}}"));
        assert!(found.starts_with("line 3: found \"{\\\"prompt\\\": 3}\" (invalid type: integer `3`"), "{found}");
        assert!(found.ends_with(&format!("expected {PROMPT}")), "{found}");
        assert!(message(&format!("{good}{{\"text\":\"a\"}}")).contains("missing field `prompt`"));
        assert!(message("{\"prompt\":").contains("EOF while parsing a value at column 10"));
        assert!(message("[1]").starts_with("line 1: "));
        let twice = message(&format!("{good}{{\"prompt\":\"a\",\"facts\":[{{\"level\":1,\"level\":2}}]}}"));
        assert!(twice.starts_with("line 3: ") && twice.contains("duplicate field `level` at column"), "{twice}");
        let long = message(&"x".repeat(1000));
        assert!(long.len() < 250 && long.contains("x\"… ("), "{long}");
        assert!(message(" \n\n").starts_with("found no data"));
    }

    #[test]
    fn a_byte_order_mark_is_not_text() {
        assert_eq!(parse_prompts("\u{feff}{\"prompt\":\"a\"}").unwrap(), [Prompt::new("a")]);
    }

    #[test]
    fn errors_of_files_name_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prompts.jsonl");
        let missing = read_prompts(&path).unwrap_err();
        assert!(matches!(&missing, TaskError::Io { path: found, .. } if *found == path), "{missing}");
        fs::write(&path, b"{\"prompt\":\"a\"}\n{\"prompt\":\"\xff\"}").unwrap();
        let found = read_prompts(&path).unwrap_err().to_string();
        let expected = "line 2: found the byte 0xFF, expected text in UTF-8: convert the file";
        assert_eq!(found, format!("{}: {expected}", path.display()));
        fs::write(&path, b"\x1f\x8b\x08\0").unwrap();
        let compressed = format!("{}: found a compressed file, expected text: decompress it first", path.display());
        assert_eq!(read_prompts(&path).unwrap_err().to_string(), compressed);
        fs::write(&path, "{\"prompt\":\"a\"}").unwrap();
        assert_eq!(read_prompts(&path).unwrap().len(), 1);
    }
}
