//! Tokens that files next to `tokenizer.json` add to it, as transformers adds them.

use super::super::error::LoadError;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Names of special tokens, in the order in which transformers adds them.
const NAMED: [&str; 7] = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];
const FLAGS: [&str; 3] = ["single_word", "lstrip", "rstrip"];

/// The files next to `tokenizer.json` that name tokens.
pub(super) struct Neighbours {
    /// `tokenizer_config.json`.
    pub(super) settings: Map<String, Value>,
    /// `special_tokens_map.json`.
    pub(super) names: Map<String, Value>,
    /// `added_tokens.json`.
    pub(super) ids: Map<String, Value>,
}

impl Neighbours {
    /// The files that count: with `added_tokens_decoder` the settings alone, without it first the other files.
    pub(super) fn named(&self) -> Map<String, Value> {
        let mut named = self.settings.clone();
        if !self.has_decoder() {
            named.extend(self.names.clone());
        }
        named
    }

    fn has_decoder(&self) -> bool {
        self.settings.get("added_tokens_decoder").is_some_and(Value::is_object)
    }

    /// Tokens with their ids, in the order of the ids.
    fn with_ids(&self, path: &Path, special: &[(String, Value)]) -> Result<BTreeMap<u32, Value>, LoadError> {
        let malformed = |reason: String| LoadError::malformed(path, "JSON of a tokenizer", reason);
        let mut tokens = BTreeMap::new();
        if self.has_decoder() {
            let decoder = self.settings.get("added_tokens_decoder").and_then(Value::as_object);
            for (key, token) in decoder.into_iter().flatten() {
                let id = key.trim().parse().ok().filter(|_| content(token).is_some());
                let id = id.ok_or_else(|| malformed(format!("its added_tokens_decoder has {key:?}: {token}")))?;
                tokens.insert(id, token.clone());
            }
            return Ok(tokens);
        }
        for (token, id) in &self.ids {
            let number = id.as_u64().and_then(|id| u32::try_from(id).ok());
            let number =
                number.ok_or_else(|| malformed(format!("its added_tokens.json gives {token:?} the id {id}")))?;
            let special = special.iter().any(|(_, named)| content(named) == Some(token));
            if let Some(other) = tokens.insert(number, json!({ "content": token, "special": special })) {
                return Err(malformed(format!("its added_tokens.json gives {token:?} and {other} the id {id}")));
            }
        }
        Ok(tokens)
    }

    /// Adds the tokens to a `tokenizer.json`.
    pub(super) fn add_to(&self, path: &Path, json: &mut Value) -> Result<(), LoadError> {
        let malformed = |reason: String| LoadError::malformed(path, "JSON of a tokenizer", reason);
        let special = special(&self.named());
        let mut known = Known::new(json);
        let mut taken: BTreeSet<u64> = known.ids.values().copied().collect();
        for (id, token) in self.with_ids(path, &special)? {
            let name = content(&token).unwrap_or_default();
            let is_named = special.iter().any(|(_, named)| content(named) == Some(name));
            match known.ids.get(name) {
                Some(&found) if found != u64::from(id) => {
                    return Err(malformed(format!(
                        "a file next to it gives the added token {name:?} the id {id}, its own is {found}"
                    )));
                }
                None if !taken.insert(id.into()) => {
                    return Err(malformed(format!(
                        "a file next to it gives the added token {name:?} the id {id}, which is taken"
                    )));
                }
                _ => known.add(id, &token, is_named),
            }
        }
        for (key, token) in &special {
            let Some(name) = content(token).filter(|name| !name.is_empty() && !known.added.contains_key(*name)) else {
                continue;
            };
            // Transformers gives it the next id, for which no weights were trained.
            let id = known.ids.get(name).and_then(|&id| u32::try_from(id).ok()).ok_or_else(|| {
                malformed(format!(
                    "the {key} {name:?} of a file next to it is not among its tokens. Add it to added_tokens with \
                     the id that the model was trained with"
                ))
            })?;
            known.add(id, token, true);
        }
        if !known.tokens.is_empty()
            && let Some(json) = json.as_object_mut()
        {
            json.insert("added_tokens".into(), known.tokens.into());
        }
        Ok(())
    }
}

/// Special tokens by name, then tokens without a name.
fn special(named: &Map<String, Value>) -> Vec<(String, Value)> {
    let keys = NAMED.into_iter().chain(of_model(named).map(|(key, _)| key.as_str()));
    let mut tokens: Vec<_> = keys.filter_map(|key| Some((key.to_owned(), named.get(key)?.clone()))).collect();
    let filled = |key: &&str| named.get(*key).is_some_and(|value| value != &json!([]) && !value.is_null());
    if let Some(key) = ["extra_special_tokens", "additional_special_tokens"].into_iter().find(filled) {
        let more: Vec<&Value> = match named.get(key) {
            Some(Value::Array(tokens)) => tokens.iter().collect(),
            Some(Value::Object(tokens)) => tokens.values().collect(),
            _ => Vec::new(),
        };
        tokens.extend(more.into_iter().map(|token| (key.to_owned(), token.clone())));
    }
    tokens.retain(|(_, token)| content(token).is_some());
    tokens
}

/// Strings of names like `image_token`.
fn of_model(named: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let own = |key: &str| key.ends_with("_token") && !NAMED.contains(&key);
    named.iter().filter(move |(key, token)| own(key) && token.is_string())
}

/// Tokens by model-specific names.
pub(super) fn own_names(named: &Map<String, Value>) -> Vec<(String, String)> {
    let more = named.get("extra_special_tokens").and_then(Value::as_object).into_iter().flatten();
    of_model(named).chain(more).filter_map(|(key, token)| Some((key.clone(), content(token)?.to_owned()))).collect()
}

/// A token is its content, or an object with its content.
pub(super) fn content(token: &Value) -> Option<&str> {
    token.as_str().or_else(|| token.get("content")?.as_str())
}

/// Tokens that the file has.
struct Known {
    /// Of the vocabulary and added.
    ids: BTreeMap<String, u64>,
    /// Places of added tokens.
    added: BTreeMap<String, usize>,
    tokens: Vec<Value>,
}

impl Known {
    fn new(json: &Value) -> Self {
        let vocabulary = json.get("model").and_then(|model| model.get("vocab")).and_then(Value::as_object);
        let vocabulary = vocabulary.into_iter().flatten();
        let mut ids: BTreeMap<_, _> =
            vocabulary.filter_map(|(token, id)| Some((token.clone(), id.as_u64()?))).collect();
        let tokens: Vec<Value> = json.get("added_tokens").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut added = BTreeMap::new();
        for (place, token) in tokens.iter().enumerate() {
            if let (Some(content), Some(id)) = (content(token), token.get("id").and_then(Value::as_u64)) {
                ids.insert(content.to_owned(), id);
                added.insert(content.to_owned(), place);
            }
        }
        Self { ids, added, tokens }
    }

    /// Adds a token, or gives an added token other properties.
    fn add(&mut self, id: u32, token: &Value, is_named: bool) {
        let flag = |key: &str| token.get(key).and_then(Value::as_bool);
        let name = content(token).unwrap_or_default();
        let given = flag("special").unwrap_or(false);
        let mut full = json!({ "id": id, "content": name, "special": given });
        for key in FLAGS {
            full[key] = flag(key).unwrap_or(false).into();
        }
        full["normalized"] = flag("normalized").unwrap_or(!(given || is_named)).into();
        match self.added.get(name) {
            Some(&place) if self.tokens[place] == full => {}
            Some(&place) => {
                // A token that was special once is left out of texts.
                let was = self.tokens[place].get("special").and_then(Value::as_bool).unwrap_or(false);
                full["special"] = (given || is_named || was).into();
                self.tokens[place] = full;
            }
            None => {
                full["special"] = (given || is_named).into();
                self.ids.insert(name.to_owned(), id.into());
                self.added.insert(name.to_owned(), self.tokens.len());
                self.tokens.push(full);
            }
        }
    }
}
