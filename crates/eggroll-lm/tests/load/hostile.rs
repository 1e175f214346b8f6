//! Files of random, cut off and changed bytes: errors or models, but no panics.

use crate::write_gguf::{tiny, write};
use eggroll_lm::load::{
    ChatTemplate, Message, ModelConfig, Pretrained, SavedDtype, SpecialTokens, Tokenizer, Weights, save_model,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

const FILES: [&str; 5] =
    ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"];

/// A saved model, file by file.
fn saved() -> &'static [Vec<u8>] {
    static SAVED: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    SAVED.get_or_init(|| {
        let (_folder, path) = tiny("llama").write();
        let model = Pretrained::open(path).unwrap();
        let ModelConfig::Llama(config) = &model.config else { panic!("another architecture") };
        let tensors = config.tensors().map(|(name, shape)| {
            let values = model.weights.read(&name, &shape).unwrap();
            (name, shape, values)
        });
        let folder = tempfile::tempdir().unwrap();
        let template = model.chat_template.as_ref();
        save_model(folder.path(), &model.config, &model.tokenizer, template, tensors, SavedDtype::BF16).unwrap();
        FILES.iter().map(|name| fs::read(folder.path().join(name)).unwrap()).collect()
    })
}

/// A change of a file: a byte, a number of eight bytes, a piece left out, doubled or put elsewhere.
#[derive(Clone, Debug)]
enum Change {
    Byte(usize, u8),
    Number(usize, u64),
    Cut(usize),
    Remove(usize, usize),
    Double(usize, usize),
    Swap(usize, usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let number = prop_oneof![any::<u64>(), 0..300u64, Just(u64::MAX), Just(1 << 31), Just(1 << 62)];
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        (any::<usize>(), prop::sample::select(b"0123456789{}[]\",:-e. ".to_vec()))
            .prop_map(|(at, byte)| Change::Byte(at, byte)),
        (any::<usize>(), number).prop_map(|(at, number)| Change::Number(at, number)),
        any::<usize>().prop_map(Change::Cut),
        (any::<usize>(), 1..40usize).prop_map(|(at, len)| Change::Remove(at, len)),
        (any::<usize>(), 1..40usize).prop_map(|(at, len)| Change::Double(at, len)),
        (any::<usize>(), any::<usize>(), 1..20usize).prop_map(|(from, to, len)| Change::Swap(from, to, len)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    let size = bytes.len().max(1);
    let range = |at: usize, len: usize| at % size..(at % size + len).min(bytes.len());
    match *change {
        _ if bytes.is_empty() => {}
        Change::Byte(at, byte) => bytes[at % size] = byte,
        Change::Number(at, number) => {
            let range = range(at, 8);
            let number = number.to_le_bytes();
            bytes[range.clone()].copy_from_slice(&number[..range.len()]);
        }
        Change::Cut(at) => bytes.truncate(at % size),
        Change::Remove(at, len) => drop(bytes.drain(range(at, len))),
        Change::Double(at, len) => {
            let range = range(at, len);
            let piece = bytes[range.clone()].to_vec();
            bytes.splice(range.start..range.start, piece);
        }
        Change::Swap(from, to, len) => {
            let piece = bytes[range(from, len)].to_vec();
            let range = range(to, piece.len());
            bytes[range.clone()].copy_from_slice(&piece[..range.len()]);
        }
    }
}

/// Uses all that a path gives. Whatever is there must fit into memory of the order of the file.
fn use_model(path: &Path, bytes: usize) {
    if let Ok(weights) = Weights::open(path) {
        let names: Vec<_> = weights.names().map(str::to_owned).collect();
        let mut total = 0;
        for name in names {
            let shape = weights.shape(&name).unwrap().to_vec();
            total += weights.read(&name, &shape).map_or(0, |values| values.len());
        }
        assert!(total <= 2 * bytes, "{total} numbers from {bytes} bytes");
    }
    if let Ok(config) = ModelConfig::open(path) {
        config.validate().unwrap();
        config.to_json();
    }
    if let Ok(tokenizer) = Tokenizer::open(path) {
        if let Ok(ids) = tokenizer.encode("<|begin|>abc ab  12 é\n'S <|im_end|>") {
            let _ = tokenizer.decode(&ids, false);
        }
        let _ = tokenizer.decode(&(0..300).collect::<Vec<_>>(), true);
        let _ = (tokenizer.vocab_size(), tokenizer.largest_id(), tokenizer.to_json());
        if let Ok(Some(template)) = ChatTemplate::open(path, &tokenizer) {
            let _ = template.render(&[Message::user("a")], true);
        }
    }
    let _ = Pretrained::open(path);
}

fn cases() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(192);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn changed_gguf_files(changes in vec(change(), 1..4), in_header in any::<bool>()) {
        let mut bytes = tiny("llama").bytes();
        // Most of the file is numbers, where a change means little.
        let rest = bytes.split_off(if in_header { 7000 } else { bytes.len() });
        changes.iter().for_each(|change| apply(&mut bytes, change));
        bytes.extend(rest);
        let (_folder, path) = write(&bytes, "x.gguf");
        use_model(&path, bytes.len());
    }

    #[test]
    fn changed_folders(file in 0..5usize, changes in vec(change(), 1..4)) {
        let folder = tempfile::tempdir().unwrap();
        let mut size = 0;
        for (i, (name, bytes)) in FILES.iter().zip(saved()).enumerate() {
            let mut bytes = bytes.clone();
            if i == file {
                changes.iter().for_each(|change| apply(&mut bytes, change));
            }
            size += bytes.len();
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        use_model(folder.path(), size);
    }

    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..200), begin in 0..4usize) {
        let begin: &[u8] = [b"".as_slice(), b"GGUF\x03\0\0\0", b"\x20\0\0\0\0\0\0\0", b"{"][begin];
        let bytes = [begin, &bytes].concat();
        for name in ["x.gguf", "x.safetensors", "model.safetensors.index.json"] {
            let (folder, path) = write(&bytes, name);
            for name in ["config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"] {
                fs::write(folder.path().join(name), &bytes).unwrap();
            }
            use_model(&path, bytes.len());
        }
    }

    #[test]
    fn any_text_comes_back(text in "\\PC*|[ \\n\\ta-c0-9<|_>]*") {
        static TOKENIZER: OnceLock<Tokenizer> = OnceLock::new();
        let tokenizer = TOKENIZER.get_or_init(|| {
            let (_folder, path) = tiny("llama").write();
            Tokenizer::open(path).unwrap()
        });
        let ids = tokenizer.encode(&text).unwrap();
        prop_assert_eq!(tokenizer.decode(&ids, false).unwrap(), text);
    }

    #[test]
    fn any_template(source in "(\\{\\{|\\{%|%\\}|\\}\\}|for|in|if|endif|endfor|set|messages|range|\\(|\\)|\\[|\\]|[0-9]|\\.|\\*| |~|-|'|x|=|:)*") {
        if let Ok(template) = ChatTemplate::new(source, SpecialTokens::default()) {
            let _ = template.render(&[Message::user("a")], true);
        }
    }
}

#[test]
fn files_cut_off_anywhere() {
    let whole = tiny("llama").bytes();
    for end in (0..whole.len()).step_by(97) {
        let (_folder, path) = write(&whole[..end], "x.gguf");
        assert!(Weights::open(&path).is_err(), "{end}");
        assert!(Pretrained::open(&path).is_err(), "{end}");
    }
}
