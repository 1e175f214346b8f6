//! The tokenizer of a GGUF file, converted back to a `tokenizer.json`.

use super::super::error::LoadError;
use super::super::gguf::Metadata;
use super::sentencepiece;
use super::special::{Declared, ENDS, Reference};
use serde_json::{Map, Value, json};

/// Types of tokens.
const NORMAL: i64 = 1;
const UNKNOWN: i64 = 2;
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;
const UNUSED: i64 = 5;

const ADVICE: &str = "gpt2, a byte-level BPE, and llama, a SentencePiece BPE; open the Hugging Face folder of this model for its tokenizer";

/// How a text is split before merges are applied, by the name that GGUF files give it.
struct Split {
    normalizer: Value,
    pre_tokenizer: Value,
    /// Whether a piece that is a token needs no merges.
    ignore_merges: bool,
    /// Whether texts begin with the begin token, if the file does not say.
    adds_bos: bool,
}

/// The `tokenizer.json` and the special tokens.
pub(super) fn parts(metadata: &Metadata) -> Result<(Value, Declared), LoadError> {
    let model = metadata.required("tokenizer.ggml.model", metadata.text("tokenizer.ggml.model")?)?;
    let tokens = || metadata.required("tokenizer.ggml.tokens", metadata.texts("tokenizer.ggml.tokens")?);
    match model {
        "gpt2" => byte_level_parts(metadata, tokens()?),
        "llama" => sentencepiece_parts(metadata, tokens()?),
        found => Err(LoadError::unsupported(metadata.path(), "tokenizer.ggml.model", found, ADVICE)),
    }
}

fn byte_level_parts(metadata: &Metadata, tokens: &[String]) -> Result<(Value, Declared), LoadError> {
    let split = split(metadata)?;
    let kinds = kinds(metadata, tokens)?;
    let declared = declared(metadata, split.adds_bos, &kinds)?;
    let (vocabulary, added) = vocabulary(metadata, tokens, &kinds, &[CONTROL])?;
    let merges = metadata.required("tokenizer.ggml.merges", metadata.texts("tokenizer.ggml.merges")?)?;
    let merges: Result<Vec<Value>, LoadError> = merges.iter().map(|merge| pair(metadata, merge)).collect();
    let json = json!({
        "version": "1.0",
        "added_tokens": added,
        "normalizer": split.normalizer,
        "pre_tokenizer": split.pre_tokenizer,
        "post_processor": post_processor(&declared, tokens).unwrap_or_else(|| byte_level(true)),
        "decoder": byte_level(false),
        "model": {
            "type": "BPE",
            "fuse_unk": false,
            "byte_fallback": false,
            "ignore_merges": split.ignore_merges,
            "vocab": vocabulary,
            "merges": merges?,
        },
    });
    Ok((json, declared))
}

fn sentencepiece_parts(metadata: &Metadata, tokens: &[String]) -> Result<(Value, Declared), LoadError> {
    let key = "tokenizer.ggml.remove_extra_whitespaces";
    if metadata.flag(key)? == Some(true) {
        return Err(LoadError::unsupported(metadata.path(), key, true, false));
    }
    let kinds = kinds(metadata, tokens)?;
    let declared = sentencepiece_declared(declared(metadata, true, &kinds)?, &kinds);
    let (vocabulary, added) = vocabulary(metadata, tokens, &kinds, &[CONTROL, UNKNOWN])?;
    let merges = sentencepiece::merges(metadata, tokens, |id| matches!(kinds[id], NORMAL | USER_DEFINED))?;
    let unknown = kinds.iter().position(|kind| *kind == UNKNOWN).map(|id| &tokens[id]);
    let prefix = metadata.flag("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
    let json = json!({
        "version": "1.0",
        "added_tokens": added,
        "normalizer": sentencepiece::normalizer(prefix),
        "pre_tokenizer": null,
        "post_processor": post_processor(&declared, tokens),
        "decoder": sentencepiece::decoder(prefix),
        "model": sentencepiece::model(vocabulary, merges, unknown),
    });
    Ok((json, declared))
}

/// With the ids that llama.cpp takes where a file of SentencePiece names none.
fn sentencepiece_declared(declared: Declared, kinds: &[i64]) -> Declared {
    let known = |id: u32, kind: i64| (kinds.get(id as usize) == Some(&kind)).then_some(Reference::Id(id));
    let Declared { bos, mut eos, unk, .. } = declared;
    if eos.is_empty() {
        eos.extend(known(2, CONTROL));
    }
    Declared { bos: bos.or(known(1, CONTROL)), eos, unk: unk.or(known(0, UNKNOWN)), ..declared }
}

fn kinds(metadata: &Metadata, tokens: &[String]) -> Result<Vec<i64>, LoadError> {
    let kinds = metadata.integers("tokenizer.ggml.token_type")?.unwrap_or_else(|| vec![NORMAL; tokens.len()]);
    if kinds.len() == tokens.len() {
        return Ok(kinds);
    }
    let reason = format!("tokenizer.ggml.token_type has {} values, expected {}", kinds.len(), tokens.len());
    Err(metadata.malformed(reason))
}

/// Ids by token, and tokens that are found in texts before any merges: special tokens and user-defined ones.
fn vocabulary(
    metadata: &Metadata,
    tokens: &[String],
    kinds: &[i64],
    special: &[i64],
) -> Result<(Map<String, Value>, Vec<Value>), LoadError> {
    let mut vocabulary = Map::new();
    let mut added = Vec::new();
    for ((id, token), kind) in (0u32..).zip(tokens).zip(kinds).filter(|(_, kind)| **kind != UNUSED) {
        if vocabulary.insert(token.clone(), id.into()).is_some() {
            return Err(LoadError::unsupported(
                metadata.path(),
                "token with two ids,",
                format!("{token:?}"),
                "one id for each token, as in llama.cpp",
            ));
        }
        // Older converters have typed the ends of turns otherwise, and llama.cpp knows them by name. `</s>` may be a tag of HTML.
        let is_special = special.contains(kind) || token != "</s>" && ENDS.contains(&token.as_str());
        if is_special || *kind == USER_DEFINED {
            added.push(added_token(id, token, is_special));
        }
    }
    Ok((vocabulary, added))
}

fn declared(metadata: &Metadata, adds_bos: bool, kinds: &[i64]) -> Result<Declared, LoadError> {
    let id = |name: &str| -> Result<Option<Reference>, LoadError> {
        let key = format!("tokenizer.ggml.{name}_token_id");
        let Some(id) = metadata.id(&key)? else { return Ok(None) };
        match kinds.get(id as usize) {
            None => Err(metadata.malformed(format!("{key} is {id}, expected one of the {} tokens", kinds.len()))),
            Some(&UNUSED) => Err(metadata.malformed(format!("{key} is {id}, which is an unused token"))),
            Some(_) => Ok(Some(Reference::Id(id))),
        }
    };
    Ok(Declared {
        bos: id("bos")?,
        eos: [id("eos")?, id("eot")?, id("eom")?].into_iter().flatten().collect(),
        unk: id("unknown")?,
        pad: id("padding")?,
        // In llama.cpp's spelling.
        sep: id("seperator")?,
        cls: id("cls")?,
        mask: id("mask")?,
        others: Vec::new(),
        adds_bos: metadata.flag("tokenizer.ggml.add_bos_token")?.unwrap_or(adds_bos),
    })
}

fn added_token(id: u32, token: &str, special: bool) -> Value {
    json!({
        "id": id,
        "content": token,
        "single_word": false,
        "lstrip": false,
        "rstrip": false,
        "normalized": false,
        "special": special,
    })
}

/// The space between the two tokens is never the first character, which may be a token itself.
fn pair(metadata: &Metadata, merge: &str) -> Result<Value, LoadError> {
    let space = merge.bytes().skip(1).position(|byte| byte == b' ').map(|position| position + 1);
    let space =
        space.ok_or_else(|| metadata.malformed(format!("the merge {merge:?} has no space between two tokens")))?;
    Ok(json!([merge[..space], merge[space + 1..]]))
}

/// Puts the begin token in front of a text, if the model expects it.
fn post_processor(declared: &Declared, tokens: &[String]) -> Option<Value> {
    let Some(Reference::Id(id)) = declared.bos.clone().filter(|_| declared.adds_bos) else { return None };
    let token = tokens.get(id as usize)?;
    let begin = json!({ "SpecialToken": { "id": token, "type_id": 0 } });
    let sequence = |name: &str, kind: u32| json!({ "Sequence": { "id": name, "type_id": kind } });
    let mut special = Map::new();
    special.insert(token.clone(), json!({ "id": token, "ids": [id], "tokens": [token] }));
    Some(json!({
        "type": "TemplateProcessing",
        "single": [begin, sequence("A", 0)],
        "pair": [begin, sequence("A", 0), sequence("B", 1)],
        "special_tokens": special,
    }))
}

/// Bytes as printable characters; with GPT-2's pattern, words are split off first.
fn byte_level(pattern: bool) -> Value {
    json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": pattern })
}

/// Words with a leading space, other characters, runs of white space; `digits` is the pattern of a number.
fn pattern(digits: &str) -> Value {
    let pattern = format!(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    );
    sequence([isolated(&pattern), byte_level(false)])
}

fn sequence<const STEPS: usize>(steps: [Value; STEPS]) -> Value {
    json!({ "type": "Sequence", "pretokenizers": steps.to_vec() })
}

fn isolated(pattern: &str) -> Value {
    json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false })
}

/// Punctuation, words, numbers and their digits by three: the default of llama.cpp.
fn default_splits() -> Value {
    sequence([
        isolated(r"[\p{P}\$\+<=>\^~\|]+"),
        isolated(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"),
        isolated(r"\p{N}+"),
        isolated("[0-9][0-9][0-9]"),
        byte_level(false),
    ])
}

fn split(metadata: &Metadata) -> Result<Split, LoadError> {
    let plain =
        |pre_tokenizer: Value| Split { normalizer: Value::Null, pre_tokenizer, ignore_merges: false, adds_bos: false };
    let supported = "gpt-2, default, smollm, qwen2, llama-bpe; open the Hugging Face folder of this model instead";
    let refuse = |found: &str| Err(LoadError::unsupported(metadata.path(), "tokenizer.ggml.pre", found, supported));
    // Without it llama.cpp warns, and uses a pattern that rarely fits the model.
    let Some(pre) = metadata.text("tokenizer.ggml.pre")? else { return refuse("(missing)") };
    Ok(match pre {
        "gpt-2" => plain(byte_level(true)),
        "default" => plain(default_splits()),
        "smollm" => plain(sequence([json!({ "type": "Digits", "individual_digits": true }), byte_level(true)])),
        "qwen2" => Split { normalizer: json!({ "type": "NFC" }), ..plain(pattern(r"\p{N}")) },
        "llama-bpe" => Split { ignore_merges: true, adds_bos: true, ..plain(pattern(r"\p{N}{1,3}")) },
        found => return refuse(found),
    })
}
