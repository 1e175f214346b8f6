//! Tokens with a meaning: begin and end of a text, end of a turn.

use super::super::error::LoadError;
use super::added::{self, content};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

/// Tokens that end a text or a turn in published models; they end a generation if they are special tokens.
pub(super) const ENDS: &[&str] = &[
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
    /// Stands for text without a token.
    pub unk: Option<String>,
    /// Fills up.
    pub pad: Option<String>,
    /// Separates texts.
    pub sep: Option<String>,
    /// Stands for the class of a text.
    pub cls: Option<String>,
    /// Hides a token.
    pub mask: Option<String>,
    /// Tokens by model-specific names, `image_token` for example.
    pub others: Vec<(String, String)>,
}

impl SpecialTokens {
    /// The tokens that are there, by the names that Hugging Face gives them.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("bos_token", &self.bos),
            ("eos_token", &self.eos),
            ("unk_token", &self.unk),
            ("pad_token", &self.pad),
            ("sep_token", &self.sep),
            ("cls_token", &self.cls),
            ("mask_token", &self.mask),
        ];
        all.into_iter().filter_map(|(name, token)| token.as_deref().map(|token| (name, token)))
    }
}

/// A token as files name it.
#[derive(Clone, Debug)]
pub(super) enum Reference {
    Token(String),
    Id(u32),
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(token) => write!(formatter, "{token:?}"),
            Self::Id(id) => write!(formatter, "{id}"),
        }
    }
}

/// Special tokens as declared in files.
#[derive(Debug, Default)]
pub(super) struct Declared {
    pub(super) bos: Option<Reference>,
    pub(super) eos: Vec<Reference>,
    pub(super) unk: Option<Reference>,
    pub(super) pad: Option<Reference>,
    pub(super) sep: Option<Reference>,
    pub(super) cls: Option<Reference>,
    pub(super) mask: Option<Reference>,
    pub(super) others: Vec<(String, String)>,
    pub(super) adds_bos: bool,
}

impl Declared {
    /// From names of tokens, `bos_token`, and files with ids, `bos_token_id`, in order of precedence. `tokenizer.json` decides whether a
    /// begin token is added.
    pub(super) fn from_files(names: &Map<String, Value>, ids: &[&Map<String, Value>]) -> Self {
        let by_name = |key: &str| names.get(key).map(token);
        let by_id = |key: &str| -> Vec<Reference> {
            ids.iter().filter_map(|file| file.get(key)).flat_map(all_ids).map(Reference::Id).collect()
        };
        // A null name means that there is no such token.
        let one = |name: &str, id: &str| by_name(name).unwrap_or_else(|| by_id(id).into_iter().next());
        Self {
            bos: one("bos_token", "bos_token_id"),
            eos: by_name("eos_token").flatten().into_iter().chain(by_id("eos_token_id")).collect(),
            unk: one("unk_token", "unk_token_id"),
            pad: one("pad_token", "pad_token_id"),
            sep: one("sep_token", "sep_token_id"),
            cls: by_name("cls_token").flatten(),
            mask: by_name("mask_token").flatten(),
            others: added::own_names(names),
            adds_bos: false,
        }
    }

    /// Names and ids of the tokens. A missing begin or end token is an error: without them, texts do not begin or end.
    pub(super) fn resolve(
        self,
        path: &Path,
        inner: &tokenizers::Tokenizer,
    ) -> Result<(SpecialTokens, Option<u32>, Vec<u32>), LoadError> {
        let id = |reference: &Reference| match reference {
            Reference::Token(token) => inner.token_to_id(token),
            Reference::Id(id) => inner.id_to_token(*id).map(|_| *id),
        };
        let there = |key: &str, reference: &Reference| {
            let tokens = inner.get_vocab_size(true);
            id(reference).ok_or_else(|| {
                let reason = format!("{key} is {reference}, which is none of the tokenizer's {tokens} tokens");
                LoadError::malformed(path, "description of a tokenizer", reason)
            })
        };
        let name = |id: u32| inner.id_to_token(id);
        let bos = self.bos.as_ref().map(|reference| there("the begin token", reference)).transpose()?;
        let ends: Result<Vec<u32>, _> = self.eos.iter().map(|end| there("an end token", end)).collect();
        let added = inner.get_added_tokens_decoder();
        let is_special = |id: &u32| added.get(id).is_some_and(|token| token.special);
        let known = ENDS.iter().filter_map(|token| inner.token_to_id(token)).filter(is_special);
        let mut seen = BTreeSet::new();
        let eos: Vec<u32> = ends?.into_iter().chain(known).filter(|&id| seen.insert(id)).collect();
        let token = |reference: &Option<Reference>| reference.as_ref().and_then(id).and_then(name);
        let special = SpecialTokens {
            bos: bos.and_then(name),
            eos: eos.first().copied().and_then(name),
            unk: token(&self.unk),
            pad: token(&self.pad),
            sep: token(&self.sep),
            cls: token(&self.cls),
            mask: token(&self.mask),
            others: self.others,
        };
        Ok((special, bos, eos))
    }
}

fn token(value: &Value) -> Option<Reference> {
    content(value).filter(|token| !token.is_empty()).map(|token| Reference::Token(token.to_owned()))
}

/// One id or an array of ids.
fn all_ids(value: &Value) -> Vec<u32> {
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    match value {
        Value::Array(values) => values.iter().filter_map(id).collect(),
        value => id(value).into_iter().collect(),
    }
}

/// The special token that a `tokenizer.json` puts in front of a text.
pub(super) fn begins_with(json: &Value) -> Option<String> {
    fn begin(step: &Value) -> Option<String> {
        let first = step.get("single").and_then(Value::as_array).and_then(|pieces| pieces.first());
        let special = first.and_then(|piece| piece.get("SpecialToken")?.get("id")?.as_str());
        let inner = || step.get("processors")?.as_array()?.iter().find_map(begin);
        special.map(str::to_owned).or_else(inner)
    }
    begin(json.get("post_processor")?)
}
