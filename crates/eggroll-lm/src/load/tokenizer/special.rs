//! Tokens with a meaning: begin and end of a text, end of a turn.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Tokens that end a text or a turn in published models; they end a generation where they are special tokens.
const ENDS: &[&str] = &[
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<end_of_turn>",
    "<|end_of_turn|>",
    "</s>",
];

/// Names of special tokens, as chat templates use them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    /// Begins a text.
    pub bos: Option<String>,
    /// Ends a text, or a turn of a chat.
    pub eos: Option<String>,
    /// Stands for what has no token.
    pub unk: Option<String>,
    /// Fills up.
    pub pad: Option<String>,
}

impl SpecialTokens {
    /// The tokens that are there, by the names that Hugging Face gives them.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all =
            [("bos_token", &self.bos), ("eos_token", &self.eos), ("unk_token", &self.unk), ("pad_token", &self.pad)];
        all.into_iter().filter_map(|(name, token)| token.as_deref().map(|token| (name, token)))
    }
}

/// A token as files name it.
#[derive(Clone, Debug)]
pub(super) enum Reference {
    Token(String),
    Id(u32),
}

/// What files say about special tokens.
#[derive(Debug, Default)]
pub(super) struct Declared {
    pub(super) bos: Option<Reference>,
    pub(super) eos: Vec<Reference>,
    pub(super) unk: Option<Reference>,
    pub(super) pad: Option<Reference>,
    pub(super) adds_bos: bool,
}

impl Declared {
    /// From files with names of tokens, `bos_token`, and files with ids, `bos_token_id`, in the order in which they count.
    pub(super) fn from_files(names: &[&Map<String, Value>], ids: &[&Map<String, Value>]) -> Self {
        let by_name = |key: &str| names.iter().find_map(|file| file.get(key)).map(token);
        let by_id = |key: &str| -> Vec<Reference> {
            ids.iter().filter_map(|file| file.get(key)).flat_map(all_ids).map(Reference::Id).collect()
        };
        // A name that is null says that there is no such token.
        let one = |name: &str, id: &str| by_name(name).unwrap_or_else(|| by_id(id).into_iter().next());
        Self {
            bos: one("bos_token", "bos_token_id"),
            eos: by_name("eos_token").flatten().into_iter().chain(by_id("eos_token_id")).collect(),
            unk: one("unk_token", "unk_token_id"),
            pad: one("pad_token", "pad_token_id"),
            adds_bos: names.iter().find_map(|file| file.get("add_bos_token")?.as_bool()).unwrap_or(false),
        }
    }

    /// Names and ids of the tokens that the tokenizer has.
    pub(super) fn resolve(self, inner: &tokenizers::Tokenizer) -> (SpecialTokens, Option<u32>, Vec<u32>) {
        let id = |reference: Reference| match reference {
            Reference::Token(token) => inner.token_to_id(&token),
            Reference::Id(id) => inner.id_to_token(id).map(|_| id),
        };
        let name = |id: u32| inner.id_to_token(id);
        let bos = self.bos.and_then(id);
        let added = inner.get_added_tokens_decoder();
        let is_special = |id: &u32| added.get(id).is_some_and(|token| token.special);
        let known = ENDS.iter().filter_map(|token| inner.token_to_id(token)).filter(is_special);
        let mut seen = BTreeSet::new();
        let eos: Vec<u32> = self.eos.into_iter().filter_map(id).chain(known).filter(|&id| seen.insert(id)).collect();
        let special = SpecialTokens {
            bos: bos.and_then(name),
            eos: eos.first().copied().and_then(name),
            unk: self.unk.and_then(id).and_then(name),
            pad: self.pad.and_then(id).and_then(name),
        };
        (special, bos, eos)
    }
}

/// A token is its content, or an object with its content.
fn token(value: &Value) -> Option<Reference> {
    value.as_str().or(value.get("content").and_then(Value::as_str)).map(|token| Reference::Token(token.to_owned()))
}

/// One id or an array of ids.
fn all_ids(value: &Value) -> Vec<u32> {
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    match value {
        Value::Array(values) => values.iter().filter_map(id).collect(),
        value => id(value).into_iter().collect(),
    }
}

/// Whether a `tokenizer.json` puts a special token in front of a text.
pub(super) fn begins_with_special(json: &Value) -> bool {
    fn begins(step: &Value) -> bool {
        let single = step.get("single").and_then(Value::as_array);
        let special = single.and_then(|pieces| pieces.first()).is_some_and(|piece| piece.get("SpecialToken").is_some());
        special || step.get("processors").and_then(Value::as_array).is_some_and(|steps| steps.iter().any(begins))
    }
    json.get("post_processor").is_some_and(begins)
}
