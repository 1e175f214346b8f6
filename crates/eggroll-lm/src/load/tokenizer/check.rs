//! Checks of a `tokenizer.json` for crate `tokenizers`, which trusts the file.

use super::super::error::LoadError;
use super::added::content;
use super::guard::guarded;
use super::{limits, splits};
use serde_json::{Map, Value};
use std::path::Path;
use tokenizers::tokenizer::{NormalizedString, Normalizer};

/// Largest id of a token: writing a tokenizer iterates over all ids below.
const LARGEST_ID: u64 = (1 << 24) - 1;

const NORMALIZERS: &[&str] = &["Sequence", "NFC", "NFD", "NFKC", "NFKD", "Prepend", "Replace", "Lowercase", "Strip"];
const PRE_TOKENIZERS: &[&str] =
    &["Sequence", "Split", "ByteLevel", "Digits", "Metaspace", "Whitespace", "WhitespaceSplit", "Punctuation"];
const DECODERS: &[&str] = &["Sequence", "ByteLevel", "Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"];
const POST_PROCESSORS: &[&str] = &["Sequence", "ByteLevel", "TemplateProcessing"];

/// Checks the file before the crate reads it.
pub(super) fn before(path: &Path, json: &Value) -> Result<(), LoadError> {
    parts(path, json, "normalizer", "normalizers", NORMALIZERS)?;
    parts(path, json, "pre_tokenizer", "pretokenizers", PRE_TOKENIZERS)?;
    parts(path, json, "decoder", "decoders", DECODERS)?;
    parts(path, json, "post_processor", "processors", POST_PROCESSORS)?;
    limits::check(path, json)?;
    let malformed = |reason: String| LoadError::malformed(path, "JSON of a tokenizer", reason);
    for token in json.get("added_tokens").and_then(Value::as_array).into_iter().flatten() {
        let (Some(id), Some(_)) = (token.get("id").and_then(Value::as_u64), content(token)) else {
            return Err(malformed("an added token has no id or no content".into()));
        };
        check_id(id).map_err(malformed)?;
    }
    let model = json.get("model").and_then(Value::as_object);
    check_model(path, model.ok_or_else(|| malformed("it has no object \"model\"".into()))?)
}

fn check_id(id: u64) -> Result<(), String> {
    if id <= LARGEST_ID { Ok(()) } else { Err(format!("a token has id {id}, expected {LARGEST_ID} at most")) }
}

/// Refuses steps that are not in a list of known ones.
fn parts(path: &Path, json: &Value, key: &str, inner: &str, known: &[&str]) -> Result<(), LoadError> {
    let Some(step) = json.get(key).filter(|step| !step.is_null()) else { return Ok(()) };
    check_step(path, key, step, inner, known)
}

fn check_step(path: &Path, key: &str, step: &Value, inner: &str, known: &[&str]) -> Result<(), LoadError> {
    let kind = step.get("type").and_then(Value::as_str).unwrap_or("without a type");
    if !known.contains(&kind) {
        return Err(LoadError::unsupported(path, key, kind, known.join(", ")));
    }
    check_use(path, key, kind, step)?;
    let mut steps = step.get(inner).and_then(Value::as_array).into_iter().flatten();
    steps.try_for_each(|step| check_step(path, key, step, inner, known))
}

/// Refuses settings with which steps panic, or misread the remainder of a text.
fn check_use(path: &Path, key: &str, kind: &str, step: &Value) -> Result<(), LoadError> {
    let refuse = |what: &str, found: &Value, supported: &str| {
        Err(LoadError::unsupported(path, format!("{what} of {key} {kind}"), found, supported))
    };
    match kind {
        "Prepend" if step["prepend"] == "" => refuse("prepend", &step["prepend"], "one character at least"),
        "Strip" if key == "decoder" && step["stop"].as_u64() != Some(0) => refuse("stop", &step["stop"], "0"),
        "Replace" if step["pattern"]["Regex"].as_str().is_some_and(splits::gives_up) => {
            refuse("pattern", &step["pattern"], "patterns without looking around and references")
        }
        _ => Ok(()),
    }
}

fn check_model(path: &Path, model: &Map<String, Value>) -> Result<(), LoadError> {
    let malformed = |reason: String| LoadError::malformed(path, "JSON of a tokenizer", reason);
    let kind = model.get("type").and_then(Value::as_str).unwrap_or("BPE");
    if kind != "BPE" {
        return Err(LoadError::unsupported(path, "model of a tokenizer", kind, "BPE"));
    }
    // Randomness, and prefixes that merges leave out.
    for (key, off) in [("dropout", Value::from(0.0)), ("continuing_subword_prefix", "".into())] {
        if let Some(found) = model.get(key).filter(|found| !found.is_null() && **found != off) {
            return Err(LoadError::unsupported(path, format!("{key} of a tokenizer"), found, "null"));
        }
    }
    let vocabulary = model.get("vocab").and_then(Value::as_object);
    let vocabulary = vocabulary.ok_or_else(|| malformed("its model has no object \"vocab\"".into()))?;
    for (token, id) in vocabulary {
        let id = id.as_u64().ok_or_else(|| malformed(format!("token {token:?} has id {id}")))?;
        check_id(id).map_err(malformed)?;
    }
    if let Some(token) = model.get("unk_token").and_then(Value::as_str).filter(|&token| !vocabulary.contains_key(token))
    {
        return Err(malformed(format!("its unknown token {token:?} is not in the vocabulary")));
    }
    let merges = model.get("merges").and_then(Value::as_array);
    for merge in merges.ok_or_else(|| malformed("its model has no array \"merges\"".into()))? {
        let (left, right) = pair(merge).ok_or_else(|| malformed(format!("a merge is {merge}, expected two tokens")))?;
        let merged = format!("{left}{right}");
        if let Some(token) = [left, right, &merged].into_iter().find(|&token| !vocabulary.contains_key(token)) {
            return Err(malformed(format!(
                "a merge of {left:?} and {right:?} needs {token:?}, which is not in the vocabulary"
            )));
        }
    }
    Ok(())
}

fn pair(merge: &Value) -> Option<(&str, &str)> {
    match merge {
        Value::String(pair) => pair.split_once(' '),
        Value::Array(pair) => match pair.as_slice() {
            [left, right] => left.as_str().zip(right.as_str()),
            _ => None,
        },
        _ => None,
    }
}

/// Checks that added tokens got the ids in the file: the crate itself numbers tokens that the vocabulary lacks.
pub(super) fn after(path: &Path, json: &Value, inner: &tokenizers::Tokenizer) -> Result<(), LoadError> {
    for token in json.get("added_tokens").and_then(Value::as_array).into_iter().flatten() {
        let (expected, content) = (token.get("id").and_then(Value::as_u64), content(token).unwrap_or_default());
        let found = inner.token_to_id(content).map(u64::from);
        if !content.is_empty() && found != expected {
            let reason = format!(
                "the added token {content:?} has id {}, but {} follows from the tokens before it",
                expected.unwrap_or_default(),
                found.unwrap_or_default()
            );
            return Err(LoadError::malformed(path, "JSON of a tokenizer", reason));
        }
        let is_normalized = token.get("normalized").and_then(Value::as_bool).unwrap_or(false);
        if let Some(normalizer) = inner.get_normalizer().filter(|_| is_normalized && !content.is_empty()) {
            let mut normalized = NormalizedString::from(content);
            let result = guarded(|| normalizer.normalize(&mut normalized));
            if result.is_err() || normalized.is_empty() {
                let reason = format!("its normalizer leaves nothing of the added token {content:?}");
                return Err(LoadError::malformed(path, "JSON of a tokenizer", reason));
            }
        }
    }
    Ok(())
}
