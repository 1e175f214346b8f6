//! GGUF files of any content, right or wrong, written by hand.

use std::path::PathBuf;
use tempfile::TempDir;

/// A value of the metadata.
#[derive(Clone)]
pub enum Value {
    U32(u32),
    F32(f32),
    Bool(bool),
    Text(&'static str),
    Texts(Vec<String>),
    I32s(Vec<i32>),
    F32s(Vec<f32>),
}

/// A file in the making.
pub struct GgufFile {
    pub version: u32,
    pub metadata: Vec<(String, Value)>,
    /// Name, sizes from the shortest stride on, type and bytes.
    pub tensors: Vec<(String, Vec<u64>, u32, Vec<u8>)>,
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

fn value(bytes: &mut Vec<u8>, value: &Value) {
    let kind = |bytes: &mut Vec<u8>, kind: u32| bytes.extend(kind.to_le_bytes());
    match value {
        Value::U32(value) => {
            kind(bytes, 4);
            bytes.extend(value.to_le_bytes());
        }
        Value::F32(value) => {
            kind(bytes, 6);
            bytes.extend(value.to_le_bytes());
        }
        Value::Bool(value) => {
            kind(bytes, 7);
            bytes.push(u8::from(*value));
        }
        Value::Text(value) => {
            kind(bytes, 8);
            text(bytes, value);
        }
        Value::Texts(values) => {
            kind(bytes, 9);
            kind(bytes, 8);
            bytes.extend((values.len() as u64).to_le_bytes());
            values.iter().for_each(|value| text(bytes, value));
        }
        Value::I32s(values) => {
            kind(bytes, 9);
            kind(bytes, 5);
            bytes.extend((values.len() as u64).to_le_bytes());
            values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        }
        Value::F32s(values) => {
            kind(bytes, 9);
            kind(bytes, 6);
            bytes.extend((values.len() as u64).to_le_bytes());
            values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        }
    }
}

impl GgufFile {
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(self.version.to_le_bytes());
        bytes.extend((self.tensors.len() as u64).to_le_bytes());
        bytes.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, entry) in &self.metadata {
            text(&mut bytes, key);
            value(&mut bytes, entry);
        }
        let mut offset = 0u64;
        for (name, sizes, kind, data) in &self.tensors {
            text(&mut bytes, name);
            bytes.extend((sizes.len() as u32).to_le_bytes());
            sizes.iter().for_each(|size| bytes.extend(size.to_le_bytes()));
            bytes.extend(kind.to_le_bytes());
            bytes.extend(offset.to_le_bytes());
            offset += (data.len() as u64).next_multiple_of(32);
        }
        for (_, _, _, data) in &self.tensors {
            bytes.resize(bytes.len().next_multiple_of(32), 0);
            bytes.extend(data);
        }
        bytes
    }

    pub fn set(&mut self, key: &str, value: Value) {
        self.metadata.retain(|(other, _)| other != key);
        self.metadata.push((key.into(), value));
    }

    pub fn write(&self) -> (TempDir, PathBuf) {
        write(&self.bytes(), "model.gguf")
    }
}

/// Bytes in a file of a folder of its own.
pub fn write(bytes: &[u8], name: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("a file");
    (folder, path)
}

pub fn f32s(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

/// All 256 characters that stand for bytes.
pub fn alphabet() -> Vec<String> {
    let plain = |byte: u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut next = 256;
    let character = |byte: u32| {
        let code = if plain(byte) {
            byte
        } else {
            next += 1;
            next - 1
        };
        char::from_u32(code).expect("a character").to_string()
    };
    (0..256).map(character).collect()
}

/// A Llama of one layer, two heads of four, one head of keys, and a vocabulary of bytes, three merges and two control tokens.
pub fn tiny(architecture: &'static str) -> GgufFile {
    let mut tokens = alphabet();
    tokens.extend(["Ġa", "ab", "abc", "<|begin|>", "<|im_end|>"].map(str::to_owned));
    let kinds = (0..tokens.len()).map(|id| if id >= 259 { 3 } else { 1 }).collect();
    let key = |name: &str| format!("{architecture}.{name}");
    let metadata = vec![
        ("general.architecture".into(), Value::Text(architecture)),
        (key("block_count"), Value::U32(1)),
        (key("context_length"), Value::U32(16)),
        (key("embedding_length"), Value::U32(8)),
        (key("feed_forward_length"), Value::U32(4)),
        (key("attention.head_count"), Value::U32(2)),
        (key("attention.head_count_kv"), Value::U32(1)),
        (key("attention.layer_norm_rms_epsilon"), Value::F32(1e-5)),
        (key("rope.freq_base"), Value::F32(10_000.0)),
        ("tokenizer.ggml.model".into(), Value::Text("gpt2")),
        ("tokenizer.ggml.pre".into(), Value::Text("smollm")),
        ("tokenizer.ggml.tokens".into(), Value::Texts(tokens)),
        ("tokenizer.ggml.token_type".into(), Value::I32s(kinds)),
        ("tokenizer.ggml.merges".into(), Value::Texts(vec!["Ġ a".into(), "a b".into(), "ab c".into()])),
        ("tokenizer.ggml.bos_token_id".into(), Value::U32(259)),
        ("tokenizer.ggml.eos_token_id".into(), Value::U32(260)),
        ("tokenizer.ggml.add_bos_token".into(), Value::Bool(false)),
        (
            "tokenizer.chat_template".into(),
            Value::Text("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"),
        ),
    ];
    let counted = |rows: u64, columns: u64| f32s((0..rows * columns).map(|value| value as f32));
    let matrix =
        |name: &str, rows: u64, columns: u64| (name.to_owned(), vec![columns, rows], 0, counted(rows, columns));
    let vector = |name: &str, size: u64| (name.to_owned(), vec![size], 0, counted(1, size));
    let tensors = vec![
        matrix("token_embd.weight", 261, 8),
        vector("blk.0.attn_norm.weight", 8),
        matrix("blk.0.attn_q.weight", 8, 8),
        matrix("blk.0.attn_k.weight", 4, 8),
        matrix("blk.0.attn_v.weight", 4, 8),
        matrix("blk.0.attn_output.weight", 8, 8),
        vector("blk.0.ffn_norm.weight", 8),
        matrix("blk.0.ffn_gate.weight", 4, 8),
        matrix("blk.0.ffn_up.weight", 4, 8),
        matrix("blk.0.ffn_down.weight", 8, 4),
        vector("output_norm.weight", 8),
    ];
    GgufFile { version: 3, metadata, tensors }
}
