//! Files of an earlier model in a folder, which other programs would read instead of the saved ones.

use super::error::LoadError;
use super::source::read_json;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Indexes of weights in several files, and the suffixes of these files.
const INDEXES: [(&str, &str); 2] =
    [("model.safetensors.index.json", ".safetensors"), ("pytorch_model.bin.index.json", ".bin")];

/// Other names with a fixed meaning; `additional_chat_templates` is a folder.
const NAMES: [&str; 16] = [
    "pytorch_model.bin",
    "tf_model.h5",
    "flax_model.msgpack",
    "consolidated.safetensors",
    "adapter_config.json",
    "adapter_model.safetensors",
    "adapter_model.bin",
    "tokenizer.model",
    "tekken.json",
    "vocab.json",
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "chat_template.json",
    "additional_chat_templates",
];

/// The names of such existing files and folders, except `kept`.
pub(super) fn names(folder: &Path, kept: &[&str]) -> Result<Vec<String>, LoadError> {
    let of_indexes = INDEXES.iter().flat_map(|&(index, end)| shards(&folder.join(index), end));
    let named: BTreeSet<String> = of_indexes.collect();
    let entries = fs::read_dir(folder).map_err(LoadError::io(folder, "list"))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut stale: Vec<String> =
        names.filter(|name| !kept.contains(&name.as_str()) && (is_stale(name) || named.contains(name))).collect();
    stale.sort();
    Ok(stale)
}

/// The files that an index names. A damaged index names none: programs do not read it either.
fn shards(index: &Path, end: &str) -> Vec<String> {
    let json = read_json(index).ok().flatten().unwrap_or_default();
    let files = json.get("weight_map").and_then(|map| map.as_object()).into_iter().flatten();
    files.filter_map(|(_, file)| file.as_str()).filter(|file| file.ends_with(end)).map(str::to_owned).collect()
}

fn is_stale(name: &str) -> bool {
    let numbered = |begin: &str, end: &str| {
        let number = name.strip_prefix(begin).and_then(|name| name.strip_suffix(end));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    NAMES.contains(&name)
        || INDEXES.iter().any(|(index, _)| *index == name)
        || numbered("consolidated.", ".pth")
        || [("model-", ".safetensors"), ("pytorch_model-", ".bin"), ("consolidated-", ".safetensors")]
            .iter()
            .any(|(begin, end)| is_shard(name, begin, end))
}

/// Whether this is `BEGIN00001-of-00002END`.
fn is_shard(name: &str, begin: &str, end: &str) -> bool {
    let middle = name.strip_prefix(begin).and_then(|name| name.strip_suffix(end));
    let is_number = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    middle
        .and_then(|middle| middle.split_once("-of-"))
        .is_some_and(|(number, count)| is_number(number) && is_number(count))
}
