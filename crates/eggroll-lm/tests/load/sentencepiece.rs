//! SentencePiece vocabularies of GGUF files against sentencepiece, whose tokens `tests/golden/sentencepiece_texts.py` records.

use crate::fetched::or_skipped;
use crate::write_gguf::{GgufFile, Value, tiny};
use eggroll_lm::load::Tokenizer;
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
struct Recorded {
    adds_prefix: bool,
    tokens: Vec<String>,
    scores: Vec<f32>,
    kinds: Vec<i32>,
    /// Texts, their tokens, and the texts of these.
    texts: Vec<(String, Vec<u32>, String)>,
}

fn recorded() -> Vec<Recorded> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/sentencepiece_texts.json");
    let path = or_skipped(path, "tests/golden/sentencepiece_texts.py makes it");
    path.map_or_else(Vec::new, |path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
}

fn file(recorded: &Recorded) -> GgufFile {
    let mut file = tiny("llama");
    file.metadata.retain(|(key, _)| !["pre", "merges"].iter().any(|end| key == &format!("tokenizer.ggml.{end}")));
    file.set("tokenizer.ggml.model", Value::Text("llama"));
    file.set("tokenizer.ggml.tokens", Value::Texts(recorded.tokens.clone()));
    file.set("tokenizer.ggml.scores", Value::F32s(recorded.scores.clone()));
    file.set("tokenizer.ggml.token_type", Value::I32s(recorded.kinds.clone()));
    file.set("tokenizer.ggml.bos_token_id", Value::U32(1));
    file.set("tokenizer.ggml.eos_token_id", Value::U32(2));
    if !recorded.adds_prefix {
        file.set("tokenizer.ggml.add_space_prefix", Value::Bool(false));
    }
    file
}

fn open(file: &GgufFile) -> Result<Tokenizer, String> {
    let (_folder, path) = file.write();
    Tokenizer::open(path).map_err(|error| error.to_string())
}

/// Texts whose tokens are others.
fn differing(tokenizer: &Tokenizer, recorded: &Recorded) -> usize {
    recorded.texts.iter().filter(|(text, ids, _)| tokenizer.encode(text).unwrap() != *ids).count()
}

#[test]
fn tokens_are_those_of_sentencepiece() {
    for recorded in recorded() {
        let tokenizer = open(&file(&recorded)).unwrap();
        assert_eq!(differing(&tokenizer, &recorded), 0);
        let mut spaces = 0;
        for (text, ids, decoded) in &recorded.texts {
            assert_eq!(tokenizer.decode(ids, true).unwrap(), *decoded, "{text:?}");
            // A completion has the space that it begins with.
            for cut in 1..ids.len() {
                let (prompt, completion) = ids.split_at(cut);
                let Some(expected) = decoded.strip_prefix(&tokenizer.decode(prompt, true).unwrap()) else { continue };
                assert_eq!(tokenizer.decode_after(prompt, completion).unwrap(), expected, "{text:?} at {cut}");
                spaces += usize::from(tokenizer.decode(completion, true).unwrap() != expected);
            }
        }
        assert_eq!(spaces > 100, recorded.adds_prefix, "canary: alone, {spaces} completions are others");
        assert!(recorded.texts.len() >= 400);
        // A canary: the scores count, and so does the space in front.
        let other = Recorded { scores: recorded.scores.iter().map(|score| -score).collect(), ..recorded };
        let found = differing(&open(&file(&other)).unwrap(), &other);
        assert!(found > 100, "{found}");
        let scores = other.scores.iter().map(|score| -score).collect();
        let other = Recorded { adds_prefix: !other.adds_prefix, scores, ..other };
        let found = differing(&open(&file(&other)).unwrap(), &other);
        assert!(found > 100, "{found}");
    }
}

#[test]
fn its_tokenizer_json_is_the_same_tokenizer() {
    for recorded in recorded() {
        let mut unnamed = file(&recorded);
        unnamed.metadata.retain(|(key, _)| !key.ends_with("os_token_id"));
        let unnamed = open(&unnamed).unwrap();
        assert_eq!((unnamed.bos(), unnamed.eos()), (Some(1), &[2][..]), "as in llama.cpp");
        let tokenizer = open(&file(&recorded)).unwrap();
        assert_eq!((tokenizer.bos(), tokenizer.eos(), tokenizer.adds_bos()), (Some(1), &[2][..], false));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tokenizer.json"), tokenizer.to_json().unwrap()).unwrap();
        assert_eq!(differing(&Tokenizer::from_folder(folder.path()).unwrap(), &recorded), 0);
        // Control tokens are found in texts, and what follows begins anew, as in llama.cpp.
        let ids = tokenizer.encode("</s>a").unwrap();
        assert_eq!(ids, [vec![2], tokenizer.encode("a").unwrap()].concat());
    }
}

#[test]
fn damaged_vocabularies_are_refused() {
    let Some(recorded) = recorded().pop() else { return };
    let refused = |change: &dyn Fn(&mut GgufFile)| {
        let mut file = file(&recorded);
        change(&mut file);
        open(&file).expect_err("a refusal")
    };
    let error = refused(&|file| file.metadata.retain(|(key, _)| key != "tokenizer.ggml.scores"));
    assert!(error.contains("it has no tokenizer.ggml.scores"), "{error}");
    let error = refused(&|file| file.set("tokenizer.ggml.scores", Value::F32s(vec![0.0; 3])));
    assert!(error.contains("tokenizer.ggml.scores has 3 values, expected 700, and no NaN"), "{error}");
    let error = refused(&|file| file.set("tokenizer.ggml.scores", Value::F32s(vec![f32::NAN; 700])));
    assert!(error.contains("no NaN"), "{error}");
    let error = refused(&|file| file.set("tokenizer.ggml.remove_extra_whitespaces", Value::Bool(true)));
    assert!(error.contains("tokenizer.ggml.remove_extra_whitespaces true; supported: false"), "{error}");
    let error = refused(&|file| {
        let mut tokens = recorded.tokens.clone();
        tokens[699] = "x".repeat(257);
        file.set("tokenizer.ggml.tokens", Value::Texts(tokens));
    });
    assert!(error.contains("of 257 bytes; supported: 256 characters at most"), "{error}");
    let error = refused(&|file| {
        let runs = (1..=200).map(|length| "x".repeat(length));
        let tokens = recorded.tokens[..3].iter().cloned().chain(runs).collect::<Vec<_>>();
        file.set("tokenizer.ggml.scores", Value::F32s(vec![0.0; tokens.len()]));
        file.set("tokenizer.ggml.token_type", Value::I32s([vec![2, 3, 3], vec![1; 200]].concat()));
        file.set("tokenizer.ggml.tokens", Value::Texts(tokens));
    });
    assert!(error.contains("merges of a SentencePiece vocabulary of more than"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokenizer.model"), "").unwrap();
    let error = Tokenizer::from_folder(folder.path()).expect_err("a refusal").to_string();
    assert!(error.contains("tokenizer.model alone is not read"), "{error}");
}
