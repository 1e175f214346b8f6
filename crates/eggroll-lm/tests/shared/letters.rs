//! A tokenizer of letters, for models that tests make.

use eggroll_lm::load::Tokenizer;
use serde_json::json;
use std::path::Path;

/// A tokenizer of small letters and an end, which also begins texts if the model expects a beginning.
pub fn tokenizer(folder: &Path, begins: bool) -> Tokenizer {
    let vocab: serde_json::Map<String, serde_json::Value> =
        ('a'..='z').enumerate().map(|(id, letter)| (letter.to_string(), id.into())).collect();
    let end = json!({ "id": 26, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true });
    let begin = begins.then(|| {
        let text = [
            json!({ "SpecialToken": { "id": "<end>", "type_id": 0 } }),
            json!({ "Sequence": { "id": "A", "type_id": 0 } }),
        ];
        let special = json!({ "<end>": { "id": "<end>", "ids": [26], "tokens": ["<end>"] } });
        json!({ "type": "TemplateProcessing", "single": text, "pair": text, "special_tokens": special })
    });
    let file = json!({
        "version": "1.0", "added_tokens": [end], "normalizer": null, "pre_tokenizer": null, "post_processor": begin,
        "decoder": { "type": "Fuse" }, "model": { "type": "BPE", "vocab": vocab, "merges": [] },
    });
    let config = match begins {
        true => json!({ "eos_token": "<end>", "bos_token": "<end>" }),
        false => json!({ "eos_token": "<end>" }),
    };
    std::fs::write(folder.join("tokenizer.json"), file.to_string()).unwrap();
    std::fs::write(folder.join("tokenizer_config.json"), config.to_string()).unwrap();
    Tokenizer::from_folder(folder).unwrap()
}
