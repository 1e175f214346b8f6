//! Tokenizers of both formats.

use crate::write_gguf::{GgufFile, Value, alphabet, tiny};
use eggroll_lm::load::{SpecialTokens, Tokenizer};
use serde_json::json;

fn open(file: &GgufFile) -> Result<Tokenizer, String> {
    let (_folder, path) = file.write();
    Tokenizer::open(path).map_err(|error| error.to_string())
}

/// A tokenizer of single bytes, with the pre-tokenizer of a name, and merges of every pair of equal characters.
fn pieces(pre: &'static str, text: &str) -> Vec<String> {
    let mut file = tiny("llama");
    file.set("tokenizer.ggml.pre", Value::Text(pre));
    let mut tokens = alphabet();
    let pairs: Vec<(&str, &str)> = vec![
        ("1", "1"),
        ("11", "1"),
        ("111", "1"),
        ("Ċ", "Ċ"),
        ("Ġ", "Ġ"),
        ("a", "b"),
        ("Ġ", "ab"),
        ("'", "S"),
        ("!", "Ċ"),
    ];
    tokens.extend(pairs.iter().map(|(left, right)| format!("{left}{right}")));
    let merges = pairs.iter().map(|(left, right)| format!("{left} {right}")).collect();
    let kinds = vec![1; tokens.len()];
    file.set("tokenizer.ggml.tokens", Value::Texts(tokens));
    file.set("tokenizer.ggml.merges", Value::Texts(merges));
    file.set("tokenizer.ggml.token_type", Value::I32s(kinds));
    let tokenizer = open(&file).unwrap();
    let ids = tokenizer.encode(text).unwrap();
    assert_eq!(tokenizer.decode(&ids, false).unwrap(), text);
    ids.into_iter().map(|id| tokenizer.token(id).unwrap()).collect()
}

#[test]
fn texts_are_split_as_the_file_says() {
    assert_eq!(pieces("gpt-2", "ab1111"), ["ab", "11", "11"]);
    // Digits by three, and punctuation apart from the line end, as llama.cpp has it.
    assert_eq!(pieces("default", "ab1111"), ["ab", "111", "1"]);
    assert_eq!(pieces("default", "ab ab!\n"), ["ab", "Ġab", "!", "Ċ"]);
    assert_eq!(pieces("smollm", "ab ab1111"), ["ab", "Ġab", "1", "1", "1", "1"]);
    assert_eq!(pieces("qwen2", "ab ab1111"), ["ab", "Ġab", "1", "1", "1", "1"]);
    assert_eq!(pieces("llama-bpe", "1111"), ["111", "1"]);
    // GPT-2's pattern knows contractions in lower case only, and separates line ends from punctuation.
    assert_eq!(pieces("llama-bpe", "ab'S!\n"), ["ab", "'S", "!Ċ"]);
    assert_eq!(pieces("gpt-2", "ab'S!\n"), ["ab", "'", "S", "!", "Ċ"]);
    assert_eq!(pieces("llama-bpe", "\n\nab  ab"), ["ĊĊ", "ab", "Ġ", "Ġab"]);
}

#[test]
fn control_tokens_are_special() {
    let tokenizer = open(&tiny("llama")).unwrap();
    let ids = tokenizer.encode("<|begin|>abc a<|im_end|>").unwrap();
    assert_eq!(ids, [259, 258, 256, 260]);
    assert_eq!(tokenizer.decode(&ids, true).unwrap(), "abc a");
    assert_eq!(tokenizer.decode(&ids, false).unwrap(), "<|begin|>abc a<|im_end|>");
    assert_eq!(tokenizer.decode(&[u32::MAX, 258], false).unwrap(), "abc");
    assert_eq!((tokenizer.bos(), tokenizer.eos(), tokenizer.adds_bos()), (Some(259), [260].as_slice(), false));
    assert_eq!((tokenizer.vocab_size(), tokenizer.largest_id()), (261, Some(260)));
    assert!(tokenizer.encode("").unwrap().is_empty());
}

#[test]
fn the_begin_token_is_kept_in_tokenizer_json_but_not_added() {
    let mut file = tiny("llama");
    file.set("tokenizer.ggml.add_bos_token", Value::Bool(true));
    let tokenizer = open(&file).unwrap();
    assert!(tokenizer.adds_bos());
    assert_eq!(tokenizer.encode("abc").unwrap(), [258]);
    let json: serde_json::Value = serde_json::from_str(&tokenizer.to_json().unwrap()).unwrap();
    assert_eq!(json["post_processor"]["single"][0]["SpecialToken"]["id"], "<|begin|>");
}

#[test]
fn unused_and_user_defined_tokens() {
    let mut file = tiny("llama");
    let mut kinds = vec![1; 261];
    (kinds[258], kinds[260]) = (5, 4);
    file.set("tokenizer.ggml.token_type", Value::I32s(kinds));
    file.set("tokenizer.ggml.merges", Value::Texts(vec!["a b".into()]));
    for (_, value) in file.metadata.iter_mut().filter(|(key, _)| key == "tokenizer.ggml.tokens") {
        let Value::Texts(tokens) = value else { panic!("texts") };
        tokens[260] = "<tag>".into();
    }
    let tokenizer = open(&file).unwrap();
    assert_eq!((tokenizer.token(258), tokenizer.bos(), tokenizer.vocab_size()), (None, Some(259), 260));
    let ids = tokenizer.encode("a<tag>").unwrap();
    assert_eq!(ids, [97, 260]);
    assert_eq!(tokenizer.decode(&ids, true).unwrap(), "a<tag>");
}

/// Older converters have typed them as user-defined, or as normal ones.
#[test]
fn ends_of_turns_are_known_by_name() {
    for kind in [1, 4] {
        let mut file = tiny("llama");
        let kinds = (0..261).map(|id| if id == 260 { kind } else { 1 }).collect();
        file.set("tokenizer.ggml.token_type", Value::I32s(kinds));
        file.metadata.retain(|(key, _)| key != "tokenizer.ggml.eos_token_id");
        let tokenizer = open(&file).unwrap();
        assert_eq!((tokenizer.encode("a<|im_end|>").unwrap(), tokenizer.eos()), (vec![97, 260], &[260][..]));
        assert_eq!(tokenizer.decode(&[97, 260], true).unwrap(), "a");
    }
}

#[test]
fn ids_of_special_tokens_must_be_tokens() {
    for key in ["bos_token_id", "eos_token_id", "eot_token_id", "eom_token_id", "unknown_token_id", "padding_token_id"]
    {
        let mut file = tiny("llama");
        let key = format!("tokenizer.ggml.{key}");
        file.set(&key, Value::U32(9999));
        let error = open(&file).expect_err("a refusal");
        assert!(error.contains(&format!("{key} is 9999, expected one of the 261 tokens")), "{error}");
        let mut kinds = vec![1; 261];
        kinds[260] = 5;
        file.set("tokenizer.ggml.token_type", Value::I32s(kinds));
        file.set("tokenizer.ggml.eos_token_id", Value::U32(0));
        file.set(&key, Value::U32(260));
        assert!(open(&file).expect_err("a refusal").contains("unused token"));
    }
    let config = json!({ "bos_token_id": 9999 });
    let error = folder(&[("tokenizer.json", letters()), ("config.json", config)]).expect_err("a refusal");
    assert!(error.contains("begin token is 9999, which is none of the tokenizer's 8 tokens"), "{error}");
    let config = json!({ "eos_token_id": [5, 9999] });
    let error = folder(&[("tokenizer.json", letters()), ("generation_config.json", config)]).expect_err("a refusal");
    assert!(error.contains("end token is 9999"), "{error}");
}

/// The folders of `tests/golden/added_tokens.py`: the ids of transformers, or a refusal where it gives tokens ids that no model was trained with.
#[test]
fn tokens_of_all_files_are_those_of_transformers() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/added_tokens.json");
    let golden: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let rows = golden["folders"].as_array().unwrap();
    assert!(rows.len() >= 30);
    for row in rows {
        let name = row["name"].as_str().unwrap();
        let files: Vec<_> =
            row["files"].as_object().unwrap().iter().map(|(name, json)| (name.as_str(), json.clone())).collect();
        let found = folder(&files);
        if name.starts_with("refused") {
            let error = found.expect_err(name);
            assert!(
                error.contains("the id") || error.contains("has id") || error.contains("is not among its tokens"),
                "{error}"
            );
            continue;
        }
        let tokenizer = found.unwrap_or_else(|error| panic!("{name}: {error}"));
        let ids = tokenizer.encode(golden["text"].as_str().unwrap()).unwrap();
        assert_eq!(json!(ids), row["ids"], "{name}");
        assert_eq!(json!(tokenizer.bos()), row["bos"], "{name}");
        assert!(row["eos"].is_null() || json!(tokenizer.eos()[0]) == row["eos"], "{name}");
        assert_eq!(json!(tokenizer.adds_bos()), row["adds_bos"], "{name}");
        assert_eq!(json!(tokenizer.decode(&ids, true).unwrap()), row["plain"], "{name}");
        // And again from what is saved.
        let again =
            folder(&[("tokenizer.json", serde_json::from_str(&tokenizer.to_json().unwrap()).unwrap())]).unwrap();
        assert_eq!(again.encode(golden["text"].as_str().unwrap()).unwrap(), ids, "{name}");
    }
}

#[test]
fn other_tokenizers_are_refused() {
    let refused = |key: &str, value: Value| {
        let mut file = tiny("llama");
        file.set(key, value);
        open(&file).expect_err("a refusal")
    };
    assert!(refused("tokenizer.ggml.model", Value::Text("t5")).contains("tokenizer.ggml.model t5; supported: gpt2"));
    assert!(refused("tokenizer.ggml.model", Value::Text("t5")).contains("Hugging Face folder"));
    assert!(refused("tokenizer.ggml.pre", Value::Text("tekken")).contains("tekken; supported: gpt-2, default, smollm"));
    assert!(refused("tokenizer.ggml.merges", Value::Texts(vec!["ab".into()])).contains("no space between two tokens"));
    assert!(
        refused("tokenizer.ggml.merges", Value::Texts(vec!["a c".into()]))
            .contains("needs \"ac\", which is not in the voc")
    );
    assert!(refused("tokenizer.ggml.token_type", Value::I32s(vec![1])).contains("1 values, expected 261"));
    assert!(
        refused("tokenizer.ggml.tokens", Value::Texts(vec!["a".into(); 261])).contains("token with two ids, \"a\"")
    );
    let mut file = tiny("llama");
    file.metadata.retain(|(key, _)| key != "tokenizer.ggml.pre");
    assert!(open(&file).expect_err("a refusal").contains("tokenizer.ggml.pre (missing); supported: gpt-2, default"));
}

fn folder(files: &[(&str, serde_json::Value)]) -> Result<Tokenizer, String> {
    let folder = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, json)| std::fs::write(folder.path().join(name), json.to_string()).unwrap());
    Tokenizer::from_folder(folder.path()).map_err(|error| error.to_string())
}

/// A tokenizer of three letters.
fn letters() -> serde_json::Value {
    let added = |id: u32, content: &str| {
        json!({ "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            "special": true })
    };
    json!({
        "version": "1.0",
        "truncation": { "max_length": 1, "strategy": "LongestFirst", "stride": 0, "direction": "Right" },
        "padding": { "strategy": { "Fixed": 1_000_000_000 }, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
            "pad_type_id": 0, "pad_token": "a" },
        "added_tokens": [added(5, "<|endoftext|>"), added(6, "<|im_end|>"), added(7, "<pad>")],
        "normalizer": null,
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
        "post_processor": null,
        "decoder": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
        "model": { "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "", "end_of_word_suffix": "",
            "fuse_unk": false, "byte_fallback": false, "vocab": { "a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4 },
            "merges": [["a", "b"], ["ab", "c"]] },
    })
}

#[test]
fn special_tokens_come_from_the_files_next_to_it() {
    let tokenizer = folder(&[("tokenizer.json", letters())]).unwrap();
    assert_eq!(tokenizer.encode("abcab<pad>").unwrap(), [4, 3, 7], "neither padded nor truncated");
    assert_eq!((tokenizer.eos(), tokenizer.bos()), ([6, 5].as_slice(), None));

    let settings = json!({ "eos_token": { "content": "<|im_end|>" }, "bos_token": null, "pad_token": "<pad>", "sep_token": "<pad>" });
    let generation = json!({ "eos_token_id": [6, 5], "bos_token_id": 5 });
    let tokenizer = folder(&[
        ("tokenizer.json", letters()),
        ("tokenizer_config.json", settings),
        ("generation_config.json", generation.clone()),
    ]);
    let tokenizer = tokenizer.unwrap();
    assert_eq!((tokenizer.eos(), tokenizer.bos()), ([6, 5].as_slice(), None));
    let [eos, pad, sep] = ["<|im_end|>", "<pad>", "<pad>"].map(|token| Some(token.into()));
    assert_eq!(*tokenizer.special_tokens(), SpecialTokens { eos, pad, sep, ..SpecialTokens::default() });

    let tokenizer = folder(&[("tokenizer.json", letters()), ("generation_config.json", generation)]).unwrap();
    assert_eq!(tokenizer.bos(), Some(5));
    let tokenizer =
        folder(&[("tokenizer.json", letters()), ("special_tokens_map.json", json!({ "bos_token": "<pad>" }))]);
    assert_eq!(tokenizer.unwrap().bos(), Some(7));
    let tokenizer = folder(&[("tokenizer.json", letters()), ("config.json", json!({ "eos_token_id": 4 }))]).unwrap();
    assert_eq!(tokenizer.eos(), [4, 6, 5]);
}

#[test]
fn what_crate_tokenizers_would_not_survive_is_refused() {
    let refused = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut json = letters();
        change(&mut json);
        folder(&[("tokenizer.json", json)]).expect_err("a refusal")
    };
    assert!(
        refused(&|json| json["model"]["type"] = json!("Unigram"))
            .contains("model of a tokenizer Unigram; supported: BPE")
    );
    assert!(refused(&|json| json["model"]["merges"] = json!(["abc abc"])).contains("needs \"abcabc\""));
    assert!(refused(&|json| json["model"]["merges"] = json!([["a"]])).contains("expected two tokens"));
    assert!(refused(&|json| json["model"]["vocab"]["a"] = json!(4_000_000_000u32)).contains("16777215 at most"));
    assert!(
        refused(&|json| json["model"]["continuing_subword_prefix"] = json!("##")).contains("continuing_subword_prefix")
    );
    assert!(refused(&|json| json["model"]["dropout"] = json!(0.5)).contains("dropout"));
    assert!(refused(&|json| json["model"]["unk_token"] = json!("?")).contains("unknown token \"?\""));
    assert!(refused(&|json| json["added_tokens"][2]["id"] = json!(9)).contains("has id 9, but 7 follows"));
    assert!(refused(&|json| json["normalizer"] = json!({ "type": "Precompiled" })).contains("normalizer Precompiled"));
    let nested = json!({ "type": "Sequence", "pretokenizers": [{ "type": "FixedLength", "length": 0 }] });
    assert!(refused(&|json| json["pre_tokenizer"] = nested.clone()).contains("pre_tokenizer FixedLength"));
    assert!(refused(&|json| *json = json!([])).contains("no object \"model\""));
    assert!(folder(&[]).expect_err("a refusal").contains("tokenizer.json is missing: save it with AutoTokenizer"));
    assert!(
        folder(&[("tokenizer.json", letters()), ("config.json", json!(1))])
            .expect_err("a refusal")
            .contains("not an object")
    );
}

fn changed(change: impl FnOnce(&mut serde_json::Value)) -> Result<Tokenizer, String> {
    let mut json = letters();
    change(&mut json);
    folder(&[("tokenizer.json", json)])
}

#[test]
fn steps_at_which_the_crate_panics_are_refused_or_run() {
    let strip = |start: u32, stop: u32| json!({ "type": "Strip", "content": "a", "start": start, "stop": stop });
    for decoder in [
        strip(0, 2),
        strip(0, 1),
        json!({ "type": "Sequence", "decoders": [{ "type": "Fuse" }, strip(0, 1)] }),
        strip(2, 1),
    ] {
        assert!(changed(|json| json["decoder"] = decoder).unwrap_err().contains("stop of decoder Strip"));
    }
    let tokenizer = changed(|json| json["decoder"] = strip(3, 0)).unwrap();
    assert_eq!(tokenizer.decode(&[0, 3, 4], false).unwrap(), "bbc");
    let pair = json!({ "type": "TemplateProcessing", "single": [{ "Sequence": { "id": "B", "type_id": 0 } }],
        "pair": [{ "Sequence": { "id": "B", "type_id": 0 } }], "special_tokens": {} });
    let tokenizer = changed(|json| json["post_processor"] = pair.clone()).unwrap();
    assert_eq!(tokenizer.encode("abc").unwrap(), [4]);
    let saved: serde_json::Value = serde_json::from_str(&tokenizer.to_json().unwrap()).unwrap();
    assert_eq!(saved["post_processor"], pair);
    for kind in ["NFC", "NFD", "NFKC", "NFKD", "Lowercase"] {
        let steps =
            json!({ "type": "Sequence", "normalizers": [{ "type": "Prepend", "prepend": "" }, { "type": kind }] });
        assert!(
            changed(|json| json["normalizer"] = steps.clone()).unwrap_err().contains("prepend of normalizer Prepend")
        );
        let normalized = |json: &mut serde_json::Value| {
            json["normalizer"] = steps;
            json["added_tokens"][0]["normalized"] = json!(true);
        };
        assert!(changed(normalized).unwrap_err().contains("Prepend"));
    }
    for flag in ["single_word", "rstrip", "lstrip"] {
        let emptied = |json: &mut serde_json::Value| {
            json["normalizer"] = json!({ "type": "Replace", "pattern": { "String": "<pad>" }, "content": "" });
            json["added_tokens"][2]["normalized"] = json!(true);
            json["added_tokens"][2][flag] = json!(true);
        };
        assert!(changed(emptied).unwrap_err().contains("leaves nothing of the added token \"<pad>\""));
    }
}

#[test]
fn steps_take_no_more_than_their_bounds() {
    let split = |pattern: &str| json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false });
    let splits = |steps: Vec<serde_json::Value>| {
        changed(|json| json["pre_tokenizer"] = json!({ "type": "Sequence", "pretokenizers": steps })).unwrap_err()
    };
    assert!(splits((0..400).map(|n| split(&format!(r"\w{{90}}{n}"))).collect()).contains("number of steps"));
    assert!(splits((0..40).map(|n| split(&format!(r"\w{{90}}{n}"))).collect()).contains("number of patterns"));
    assert!(splits(vec![split(&"[a-z]".repeat(1000))]).contains("length of a tokenizer's patterns"));
    assert!(splits(vec![split(r"(\w{90}){90}")]).contains("counts of product 128 at most"));
    let grown = |count: usize| {
        let step = json!({ "type": "Replace", "pattern": { "String": "a" }, "content": "a".repeat(10) });
        changed(|json| json["normalizer"] = json!({ "type": "Sequence", "normalizers": vec![step; count] }))
    };
    assert!(grown(9).unwrap_err().contains("times as long; supported: 256 times at most"));
    assert!(grown(2).unwrap().encode("a").unwrap().len() == 100);
    let levels =
        vec![json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false }); 40];
    assert!(splits(levels).contains("times as long"));
}

/// Lines are those of Hugging Face's regular expressions, whose `{n,m}+` repeats a repeat; here it would take all it can and give nothing back.
#[test]
fn patterns_mean_what_they_mean_there() {
    let split = |pattern: &str| json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false });
    let tokenizer = |pattern: &str| changed(|json| json["pre_tokenizer"] = split(pattern));
    // The letters ab are a token, except where a line begins.
    let at_lines = tokenizer(r"^a").unwrap();
    assert_eq!(at_lines.encode("abab").unwrap(), [0, 1, 3]);
    assert_eq!(at_lines.encode("c\nab").unwrap(), [2, 0, 1]);
    assert!(tokenizer(r"a{1,3}+|b").unwrap_err().contains("repeats a repeat"));
    assert!(tokenizer(r"a{1,3}|\}+|\p{N}+|b").is_ok(), "canary: other braces");
}

/// A pattern that gives up is an error: the crate would leave the text after it in one piece.
#[test]
fn a_pattern_that_gives_up_is_an_error() {
    let split = |pattern: &str| json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false });
    let tokenizer = changed(|json| json["pre_tokenizer"] = split(r"(c+c+)+(?=b)|\w")).unwrap();
    assert_eq!(tokenizer.encode("ccccabc").unwrap(), [2, 2, 2, 2, 0, 1, 2]);
    let text = "c".repeat(40) + "abc";
    let error = tokenizer.encode(&text).unwrap_err().to_string();
    assert!(error.starts_with("tokenizer: "), "{error}");
    for step in ["normalizer", "decoder"] {
        let replace = json!({ "type": "Replace", "pattern": { "Regex": r"(c+c+)+(?=b)" }, "content": "" });
        assert!(changed(|json| json[step] = replace).unwrap_err().contains("without looking around"));
    }
}
