//! Weights that are not those of the configuration: found by their headers, before anything is allocated for them.

use crate::write_gguf::tiny;
use burn::tensor::Device;
use eggroll_lm::load::{LoadError, ModelConfig, Pretrained, Rwkv7Config, SavedDtype, Weights, save_model};
use eggroll_lm::{CausalModel, Llama};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A small Llama as a folder, its head tied.
pub fn folder() -> TempDir {
    let (_file, path) = tiny("llama").write();
    let model = Pretrained::open(path).unwrap();
    let tensors = model.config.tensors().map(|(name, shape)| {
        let values = (0..shape.iter().product()).map(|at: usize| (at as f32).sin()).collect();
        (name, shape, values)
    });
    let folder = tempfile::tempdir().unwrap();
    let template = model.chat_template.as_ref();
    save_model(folder.path(), &model.config, &model.tokenizer, template, tensors, SavedDtype::F32).unwrap();
    folder
}

/// Adds tensors to the weights, or replaces them.
fn add(folder: &Path, tensors: &[(&str, Dtype, &[usize], &[u8])]) {
    let path = folder.join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    let old = SafeTensors::deserialize(&bytes).unwrap();
    let new = |&(name, dtype, shape, data): &(&str, Dtype, &[usize], _)| {
        (name.to_owned(), TensorView::new(dtype, shape.to_vec(), data).unwrap())
    };
    let mut all: std::collections::BTreeMap<String, TensorView> = old.tensors().into_iter().collect();
    all.extend(tensors.iter().map(new));
    fs::write(path, safetensors::serialize(all, None).unwrap()).unwrap();
}

fn change(folder: &Path, key: &str, value: Value) {
    let path = folder.join("config.json");
    let mut json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    json[key] = value;
    fs::write(path, json.to_string()).unwrap();
}

fn load(model: &Pretrained) -> Result<Llama, LoadError> {
    Llama::load(&model.config, &model.weights, &Device::flex())
}

#[test]
fn a_tensor_that_is_not_read_is_named() {
    for name in [
        "model.layers.0.self_attn.q_norm.weight",
        "model.layers.0.self_attn.q_proj.bias",
        "model.layers.0.mlp.up_proj.bias",
        "model.layers.0.self_attn.q_proj.lora_A.weight",
        "model.layers.1.input_layernorm.weight",
        "model.norm.bias",
        "lm_head.bias",
        "score.weight",
    ] {
        let folder = folder();
        add(folder.path(), &[(name, Dtype::F32, &[2], &[0; 8])]);
        let error = Pretrained::open(folder.path()).expect_err("a refusal");
        assert!(matches!(&error, LoadError::UnreadTensor { name: found, .. } if found == name), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    let folder = folder();
    add(folder.path(), &[("model.layers.0.self_attn.rotary_emb.inv_freq", Dtype::F32, &[2], &[0; 8])]);
    assert!(load(&Pretrained::open(folder.path()).unwrap()).is_ok());
}

/// transformers 5 does not tie what is stored with other values.
#[test]
fn a_tied_head_repeats_the_embedding() {
    let folder = folder();
    let weights = fs::read(folder.path().join("model.safetensors")).unwrap();
    let embedding =
        SafeTensors::deserialize(&weights).unwrap().tensor("model.embed_tokens.weight").unwrap().data().to_vec();
    let shape: &[usize] = &[261, 8];
    add(folder.path(), &[("lm_head.weight", Dtype::F32, shape, &embedding)]);
    assert!(load(&Pretrained::open(folder.path()).unwrap()).is_ok());
    let mut other = embedding;
    other[9] ^= 1;
    add(folder.path(), &[("lm_head.weight", Dtype::F32, shape, &other)]);
    let error = load(&Pretrained::open(folder.path()).unwrap()).expect_err("a refusal").to_string();
    assert!(error.contains("lm_head.weight") && error.contains("tie_word_embeddings"), "{error}");
    change(folder.path(), "tie_word_embeddings", json!(false));
    assert!(load(&Pretrained::open(folder.path()).unwrap()).is_ok());
}

#[test]
fn types_that_are_not_read_are_named() {
    for (dtype, name, bytes) in
        [(Dtype::I8, "I8", 8), (Dtype::U8, "U8", 8), (Dtype::F8_E4M3, "F8_E4M3", 8), (Dtype::F64, "F64", 64)]
    {
        let folder = folder();
        add(folder.path(), &[("model.norm.weight", dtype, &[8], &vec![0; bytes])]);
        let error = Pretrained::open(folder.path()).expect_err("a refusal").to_string();
        assert!(error.contains(&format!("type of tensor \"model.norm.weight\" {name}; supported")), "{error}");
    }
}

/// A file that is long without taking a disk: an error, and not the memory that it says.
#[test]
fn sparse_files_are_refused() {
    let folder = folder();
    fs::File::options().write(true).open(folder.path().join("config.json")).unwrap().set_len(1 << 40).unwrap();
    let error = Pretrained::open(folder.path()).expect_err("a refusal").to_string();
    assert!(error.contains("it has 1099511627776 bytes, expected 536870912 at most"), "{error}");
    let path = folder.path().join("model.safetensors");
    let header = r#"{"a":{"dtype":"F32","shape":[2199023255552],"data_offsets":[0,8796093022208]}}"#;
    fs::write(&path, [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat()).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(8 + header.len() as u64 + (8 << 40)).unwrap();
    let error = Weights::open(path).unwrap().read("a", &[2 << 40]).expect_err("a refusal").to_string();
    assert!(error.contains("cannot hold the tensors of"), "{error}");
}

/// A changed word of a configuration asks for no memory: the first tensor that is not there ends it, in `open` and in `load`.
#[test]
fn sizes_beyond_the_file_allocate_nothing() {
    for (key, value) in [
        ("num_hidden_layers", 10_000_000u64),
        ("num_hidden_layers", u64::MAX),
        ("hidden_size", 1 << 40),
        ("hidden_size", 1 << 20),
        ("intermediate_size", 1 << 32),
        ("intermediate_size", 1 << 61),
        ("vocab_size", 1 << 33),
        ("num_attention_heads", 1 << 40),
        ("num_key_value_heads", 2),
        ("head_dim", 1 << 31),
    ] {
        let folder = folder();
        let good = Pretrained::open(folder.path()).unwrap();
        change(folder.path(), key, json!(value));
        let error = Pretrained::open(folder.path()).expect_err("a refusal");
        assert!(
            matches!(error, LoadError::MissingTensor { .. } | LoadError::Shape { .. } | LoadError::Config { .. }),
            "{error}"
        );
        if let Ok(config) = ModelConfig::open(folder.path()) {
            assert!(Llama::load(&config, &good.weights, &Device::flex()).is_err(), "{key} {value}");
        }
    }
}

/// A small RWKV-7 of the vocabulary that the other small models have.
pub fn small_rwkv7(tied_head: bool) -> Rwkv7Config {
    Rwkv7Config {
        vocab_size: 261,
        hidden_size: 8,
        intermediate_size: 16,
        layers: 2,
        head_dim: 4,
        decay_rank: 2,
        a_rank: 2,
        v_rank: 2,
        gate_rank: 2,
        norm_eps: 1e-5,
        tied_head,
    }
}
