//! The SentencePiece vocabulary of a GGUF file as a byte-pair encoding.
//!
//! SentencePiece repeatedly joins the two neighbors that make the token with the highest score. A byte-pair encoding does the same if every split of
//! a token into two others is a merge, in the order of the scores (Kudo and Richardson, arXiv 1808.06226).

use super::super::error::LoadError;
use super::super::gguf::Metadata;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Stands for a space.
const SPACE: &str = "▁";
/// Most characters of a token made by merges: all ways to split it are looked up.
const LONGEST: usize = 256;
/// Bytes of all merges, for each byte of the tokens: two or three in published vocabularies.
const GROWTH: usize = 32;

/// Merges of tokens, the best first.
pub(super) fn merges<'a>(
    metadata: &Metadata,
    tokens: &'a [String],
    is_made: impl Fn(usize) -> bool,
) -> Result<Vec<Value>, LoadError> {
    let key = "tokenizer.ggml.scores";
    let scores = metadata.required(key, metadata.floats(key)?)?;
    if scores.len() != tokens.len() || scores.iter().any(|score| score.is_nan()) {
        let (found, expected) = (scores.len(), tokens.len());
        return Err(metadata.malformed(format!("{key} has {found} values, expected {expected}, and no NaN")));
    }
    let ids: HashMap<&str, usize> = tokens.iter().enumerate().map(|(id, token)| (token.as_str(), id)).collect();
    let made = || tokens.iter().enumerate().filter(|(id, _)| is_made(*id));
    if let Some((_, token)) = made().find(|(_, token)| token.chars().nth(LONGEST).is_some()) {
        let (what, found) = ("token of a SentencePiece vocabulary", format!("of {} bytes", token.len()));
        return Err(LoadError::unsupported(metadata.path(), what, found, format!("{LONGEST} characters at most")));
    }
    let most = GROWTH * tokens.iter().map(String::len).sum::<usize>();
    let mut bytes = 0;
    let mut merges: Vec<(f32, usize, [usize; 2], [&'a str; 2])> = Vec::new();
    for (id, token) in made() {
        for (middle, _) in token.char_indices().skip(1) {
            let (left, right) = token.split_at(middle);
            if let (Some(&first), Some(&second)) = (ids.get(left), ids.get(right)) {
                merges.push((scores[id], id, [first, second], [left, right]));
                bytes += token.len();
            }
        }
        if bytes > most {
            let (what, found) = ("merges of a SentencePiece vocabulary", format!("of more than {most} bytes"));
            return Err(LoadError::unsupported(metadata.path(), what, found, format!("{GROWTH} times its tokens")));
        }
    }
    merges.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2))));
    Ok(merges.into_iter().map(|(.., pair)| json!(pair)).collect())
}

/// Spaces as `▁`, and one in front of a text if the model expects it.
pub(super) fn normalizer(adds_prefix: bool) -> Value {
    let spaces = json!({ "type": "Replace", "pattern": { "String": " " }, "content": SPACE });
    match adds_prefix {
        true => json!({ "type": "Sequence", "normalizers": [{ "type": "Prepend", "prepend": SPACE }, spaces] }),
        false => spaces,
    }
}

/// The way back: `▁` as spaces, tokens of bytes as characters, and no space in front.
pub(super) fn decoder(adds_prefix: bool) -> Value {
    let mut steps = vec![
        json!({ "type": "Replace", "pattern": { "String": SPACE }, "content": " " }),
        json!({ "type": "ByteFallback" }),
        json!({ "type": "Fuse" }),
    ];
    if adds_prefix {
        steps.push(json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 }));
    }
    json!({ "type": "Sequence", "decoders": steps })
}

/// The model of a byte-pair encoding with byte fallback.
pub(super) fn model(vocabulary: Map<String, Value>, merges: Vec<Value>, unknown: Option<&String>) -> Value {
    json!({
        "type": "BPE",
        "unk_token": unknown,
        "fuse_unk": true,
        "byte_fallback": true,
        "ignore_merges": false,
        "vocab": vocabulary,
        "merges": merges,
    })
}
