//! Splits texts before merges. Patterns run here: if a pattern gives up, crate `tokenizers` would take the remainder of a text as one
//! piece.

use super::super::error::LoadError;
use fancy_regex::Regex;
use serde_json::Value;
use std::path::Path;
use tokenizers::pattern::Invert;
use tokenizers::tokenizer::{
    PreTokenizedString, PreTokenizer, PreTokenizerWrapper, Result as StepResult, SplitDelimiterBehavior,
};

/// One step.
#[derive(Clone, Debug)]
enum SplitStep {
    Pattern { regex: Regex, behavior: SplitDelimiterBehavior, invert: bool },
    Other(PreTokenizerWrapper),
}

/// All steps of a pre-tokenizer.
#[derive(Clone, Debug, Default)]
pub(super) struct Splits(Vec<SplitStep>);

impl Splits {
    /// Reads the pre-tokenizer of a `tokenizer.json`.
    pub(super) fn new(path: &Path, json: &Value) -> Result<Self, LoadError> {
        let mut splits = Self::default();
        if let Some(step) = json.get("pre_tokenizer").filter(|step| !step.is_null()) {
            splits.add(step).map_err(|reason| LoadError::malformed(path, "JSON of a tokenizer", reason))?;
        }
        Ok(splits)
    }

    fn add(&mut self, step: &Value) -> Result<(), String> {
        if let Some(steps) = step.get("pretokenizers").and_then(Value::as_array) {
            return steps.iter().try_for_each(|step| self.add(step));
        }
        let pattern = step.get("pattern").and_then(|pattern| pattern.get("Regex")).and_then(Value::as_str);
        let read = |key: &str| step.get(key).cloned().unwrap_or_default();
        self.0.push(match pattern {
            Some(pattern) => SplitStep::Pattern {
                regex: regex(pattern)?,
                behavior: serde_json::from_value(read("behavior")).map_err(|error| error.to_string())?,
                invert: read("invert").as_bool().unwrap_or(false),
            },
            None => SplitStep::Other(serde_json::from_value(step.clone()).map_err(|error| error.to_string())?),
        });
        Ok(())
    }

    /// Splits a text.
    pub(super) fn run(&self, text: &mut PreTokenizedString) -> StepResult<()> {
        self.0.iter().try_for_each(|step| match step {
            SplitStep::Pattern { regex, behavior, invert: false } => {
                text.split(|_, piece| piece.split(regex, *behavior))
            }
            SplitStep::Pattern { regex, behavior, invert: true } => {
                text.split(|_, piece| piece.split(Invert(regex), *behavior))
            }
            SplitStep::Other(step) => step.pre_tokenize(text),
        })
    }
}

/// A pattern as Hugging Face's regular expressions read it: `^` and `$` match at every line. `{n,m}+`, which repeats a repeat there and is possessive
/// here, is refused.
fn regex(pattern: &str) -> Result<Regex, String> {
    let counts = pattern.split('{').skip(1).filter_map(|rest| rest.split_once("}+"));
    let is_count = |count: &str| !count.is_empty() && count.chars().all(|c| c.is_ascii_digit() || c == ',');
    if counts.map(|(count, _)| count).any(is_count) {
        return Err(format!("the pattern {pattern:?} repeats a repeat, `}}+`"));
    }
    Regex::new(&format!("(?m){pattern}")).map_err(|error| error.to_string())
}

/// Whether a regular expression may give up: lookaround, backreferences and atomic groups need backtracking.
pub(super) fn gives_up(pattern: &str) -> bool {
    const MARKS: [&str; 13] =
        ["(?=", "(?!", "(?<=", "(?<!", "(?>", "(?(", "(?P=", "++", "*+", "?+", "}+", "\\k", "\\G"];
    let refers_back =
        pattern.split('\\').skip(1).any(|rest| rest.starts_with(|first: char| ('1'..='9').contains(&first)));
    refers_back || pattern.contains("\\K") || pattern.contains("\\g") || MARKS.iter().any(|mark| pattern.contains(mark))
}
