//! Examples for supervised fine-tuning.

use super::TaskError;
use super::lines::{COMPRESSED, numbered, parse_json_lines, read};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;

const EXAMPLE: &str = r#"a JSON object such as {"prompt": "2 + 2 = ", "completion": "4"}"#;

/// An example for likelihood training, also called supervised fine-tuning (SFT): the model learns the completion, given the prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SftExample {
    /// What the model reads; empty for text without a prompt.
    pub prompt: String,
    /// What it learns to write; not empty.
    pub completion: String,
    /// Its line in the file that it was read from, from 1; 0 for one that was not read.
    #[serde(skip)]
    pub line: usize,
}

impl SftExample {
    /// Reads a file by its name: as JSON lines if that ends in `.jsonl`, `.ndjson` or `.json`, in small or capital letters, and as text lines
    /// otherwise.
    ///
    /// # Errors
    ///
    /// As [`read_json_lines`](Self::read_json_lines) and [`read_text_lines`](Self::read_text_lines); [`TaskError::Kind`] for a name of
    /// compressed files, and for JSON lines in a file with another name.
    pub fn read(path: impl AsRef<Path>) -> Result<Vec<Self>, TaskError> {
        let path = path.as_ref();
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("jsonl" | "ndjson" | "json") => Self::read_json_lines(path),
            Some("gz" | "zst" | "bz2" | "xz" | "zip") => read(path, |_| Err(COMPRESSED)),
            _ => read(path, |text| match numbered(text).next() {
                Some((_, line)) if serde_json::from_str::<Map<String, Value>>(line).is_ok() => Err(TaskError::Kind {
                    found: "JSON in the first line",
                    expected: "text, or a name that ends in .jsonl",
                }),
                _ => Self::parse_text_lines(text),
            }),
        }
    }

    /// Reads a file of JSON lines (JSONL), as [`parse_json_lines`](Self::parse_json_lines) does.
    ///
    /// # Errors
    ///
    /// [`TaskError::Io`] if the file cannot be read, [`TaskError::File`] with an error of [`parse_json_lines`](Self::parse_json_lines).
    pub fn read_json_lines(path: impl AsRef<Path>) -> Result<Vec<Self>, TaskError> {
        read(path.as_ref(), Self::parse_json_lines)
    }

    /// Reads a text whose every line is an example, as [`parse_text_lines`](Self::parse_text_lines) does.
    ///
    /// # Errors
    ///
    /// [`TaskError::Io`] if the file cannot be read, [`TaskError::File`] with an error of [`parse_text_lines`](Self::parse_text_lines).
    pub fn read_text_lines(path: impl AsRef<Path>) -> Result<Vec<Self>, TaskError> {
        read(path.as_ref(), Self::parse_text_lines)
    }

    /// One example for each line `{"prompt": …, "completion": …}`. Blank lines are skipped, and other fields are ignored.
    ///
    /// # Errors
    ///
    /// [`TaskError::Line`] if a line is no such object, has a field twice, or its completion is empty; [`TaskError::Empty`] if there is no line.
    ///
    /// # Example
    ///
    /// ```
    /// use eggroll_lm::task::SftExample;
    ///
    /// let examples = SftExample::parse_json_lines(r#"{"prompt": "2 + 2 = ", "completion": "4"}"#)?;
    /// assert_eq!(examples[0].completion, "4");
    ///
    /// let error = SftExample::parse_json_lines(r#"{"prompt": "2 + 2 = "}"#).unwrap_err();
    /// assert!(error.to_string().starts_with("line 1: "));
    /// # Ok::<(), eggroll_lm::task::TaskError>(())
    /// ```
    pub fn parse_json_lines(text: &str) -> Result<Vec<Self>, TaskError> {
        let mut examples: Vec<Self> = parse_json_lines(text, EXAMPLE)?;
        examples.iter_mut().zip(numbered(text)).for_each(|(example, (line, _))| example.line = line);
        if let Some(Self { line, .. }) = examples.iter().find(|example| example.completion.is_empty()) {
            let (found, expected) = ("an empty completion".into(), "a completion to learn: remove the line".into());
            return Err(TaskError::Line { line: *line, found, expected });
        }
        Ok(examples)
    }

    /// One example for each line of a text: no prompt, and the line, without its end, as the completion. Blank lines are skipped.
    ///
    /// # Errors
    ///
    /// [`TaskError::Empty`] if there is no line.
    ///
    /// # Example
    ///
    /// ```
    /// use eggroll_lm::task::SftExample;
    ///
    /// let examples = SftExample::parse_text_lines("Twelve eggs.\n\nOne roll.\n")?;
    /// assert_eq!(examples[1], SftExample { prompt: String::new(), completion: "One roll.".into(), line: 3 });
    /// # Ok::<(), eggroll_lm::task::TaskError>(())
    /// ```
    pub fn parse_text_lines(text: &str) -> Result<Vec<Self>, TaskError> {
        let example = |(line, text): (usize, &str)| Self { prompt: String::new(), completion: text.into(), line };
        let examples: Vec<Self> = numbered(text).map(example).collect();
        if examples.is_empty() {
            return Err(TaskError::Empty { expected: "text".into() });
        }
        Ok(examples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_text_lines() {
        let text =
            "{\"prompt\":\"a\",\"completion\":\" b\\n\",\"source\":1}\n\n{\"completion\":\"d\",\"prompt\":\"\"}\n";
        let examples = SftExample::parse_json_lines(text).unwrap();
        assert_eq!(
            examples,
            [("a", " b\n", 1), ("", "d", 3)].map(|(prompt, completion, line)| SftExample {
                prompt: prompt.into(),
                completion: completion.into(),
                line
            })
        );
        let lines = SftExample::parse_text_lines("\u{feff} a \r\nb").unwrap();
        assert_eq!(lines.iter().map(|line| &line.completion[..]).collect::<Vec<_>>(), [" a ", "b"]);
    }

    #[test]
    fn errors_have_the_line_of_the_file() {
        let good = "\n{\"prompt\":\"a\",\"completion\":\"b\"}\n\n";
        let message = |bad: &str| SftExample::parse_json_lines(&format!("{good}{bad}")).unwrap_err().to_string();
        let empty = message("{\"prompt\":\"a\",\"completion\":\"\"}");
        assert_eq!(empty, "line 4: found an empty completion, expected a completion to learn: remove the line");
        let typo = message("{\"prompt\":\"a\",\"completions\":\"b\"}");
        assert!(typo.starts_with("line 4: ") && typo.contains("missing field `completion`"), "{typo}");
        assert!(message("{\"prompt\":null,\"completion\":\"b\"}").contains("invalid type: null"));
        let twice = message("{\"prompt\":\"a\",\"completion\":\"b\",\"source\":1,\"source\":2}");
        assert!(twice.starts_with("line 4: ") && twice.contains("duplicate field `source`"), "{twice}");
        assert!(message("nonsense").starts_with("line 4: found \"nonsense\" (expected"));
        assert!(matches!(SftExample::parse_json_lines("\n"), Err(TaskError::Empty { .. })));
        assert!(matches!(SftExample::parse_text_lines(" \n"), Err(TaskError::Empty { .. })));
    }

    #[test]
    fn files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("examples");
        assert!(matches!(SftExample::read_json_lines(&path), Err(TaskError::Io { .. })));
        std::fs::write(&path, "{\"prompt\":\"a\",\"completion\":\"b\"}").unwrap();
        assert_eq!(SftExample::read_json_lines(&path).unwrap().len(), 1);
        assert_eq!(SftExample::read_text_lines(&path).unwrap()[0].prompt, "");
    }

    #[test]
    fn names_tell_the_kind() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str, text: &[u8]| {
            std::fs::write(folder.path().join(name), text).unwrap();
            SftExample::read(folder.path().join(name)).map_err(|error| error.to_string())
        };
        let json =
            b"\xef\xbb\xbf{\"prompt\":\"a\",\"completion\":\"b\"}\r\n\r\n{\"prompt\":\"c\",\"completion\":\"d\"}";
        for name in ["x.jsonl", "x.JSONL", "x.ndjson", "x.Json", "x.tar.jsonl"] {
            let examples = read(name, json).unwrap();
            let found = examples.iter().map(|example| (&example.prompt[..], &example.completion[..], example.line));
            assert!(found.eq([("a", "b", 1), ("c", "d", 3)]), "{name}: {examples:?}");
        }
        for name in ["x.jsonl.gz", "x.txt.GZ", "x.json.zst"] {
            assert!(
                read(name, json).unwrap_err().ends_with("found a compressed file, expected text: decompress it first")
            );
        }
        for name in ["x.txt", "x", "x.jsonl.bak"] {
            assert!(read(name, json).unwrap_err().contains("found JSON in the first line, expected text"), "{name}");
        }
        assert_eq!(read("x.txt", b"{one}\r\ntwo").unwrap()[0].completion, "{one}");
        assert!(read("x.jsonl", b"\x1f\x8b\x08").unwrap_err().contains("found a compressed file"));
    }
}
