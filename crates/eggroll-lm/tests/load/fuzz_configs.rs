//! Generated configurations and headers of weights: an error or a model that scores, in memory of the order of the files.
//!
//! `EGGROLL_FUZZ_CASES` sets how many cases there are, 500 unless set. They run in a process of their own, which may take 4 GB of
//! addresses and 512 MiB of memory.

use crate::fits::{folder, small_rwkv7};
use crate::write_gguf::{GgufFile, Value as Meta, f32s, tiny};
use eggroll_core::rng::PhiloxRng;
use eggroll_lm::load::{ModelConfig, Pretrained, SavedDtype, save_model};
use eggroll_lm::{CausalModel, FinetuneConfig, Item, Llama, Rwkv7};
use rand::{Rng, RngExt, SeedableRng};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Makes a test the process that runs the cases, and names the file that says which one it is at.
const CHILD: &str = "EGGROLL_FUZZ_PROGRESS";
/// Bytes that all cases together may take at once.
const MOST_BYTES: u64 = 512 << 20;

/// The choices of a case.
struct Random(PhiloxRng);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn below(&mut self, n: usize) -> usize {
        self.0.random_range(0..n)
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// A size: small, near a power of two, or anything.
    fn size(&mut self) -> u64 {
        match self.below(4) {
            0 => self.next() % 20,
            1 => (1 << self.below(64)) + self.next() % 3 - 1,
            2 => self.of(&[261, 8, 4, 2, 16, u64::MAX, 1 << 53]),
            _ => self.next(),
        }
    }
}

/// A value of JSON that a field could have, or could not.
fn value(random: &mut Random, depth: usize) -> Value {
    let inner = if depth < 3 { 12 } else { 9 };
    match random.below(inner) {
        0 => Value::Null,
        1 | 2 => random.size().into(),
        3 => (random.next() as i64).into(),
        4 => random.of(&[0.0, 0.5, 1.0, 2.0, -1.0, 1e-300, 1e300, 1e-5, 1e4, 8.0]).into(),
        5 => random.of(&[true, false]).into(),
        6 => random
            .of(&[
                "linear",
                "llama3",
                "default",
                "yarn",
                "silu",
                "gelu",
                "8",
                "full_attention",
                "sliding_attention",
                "gelu_pytorch_tanh",
                "llama",
            ])
            .into(),
        7 | 8 => json!(random.below(4)),
        9 => (0..random.below(4)).map(|_| value(random, depth + 1)).collect(),
        _ => {
            let keys = ["type", "rope_type", "factor", "rope_theta", "low_freq_factor", "high_freq_factor", "layers"];
            let pairs = (0..random.below(5)).map(|_| (random.of(&keys).to_owned(), value(random, depth + 1)));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
    }
}

const KINDS: [&str; 8] = ["llama", "mistral", "qwen2", "qwen3", "smollm3", "gemma2", "gemma3_text", "rwkv7"];

/// Fields that are not in every configuration.
const MORE: [&str; 29] = [
    "no_rope_layers",
    "no_rope_layer_interval",
    "sliding_window_pattern",
    "rope_local_base_freq",
    "query_pre_attn_scalar",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "hidden_activation",
    "hidden_act",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "layer_types",
    "attention_bias",
    "mlp_bias",
    "partial_rotary_factor",
    "quantization_config",
    "original_max_position_embeddings",
    "hidden_ratio",
    "value_dim",
    "attn",
    "num_heads",
    "clip_qkv",
    "logit_scale",
    "num_experts",
    "model_type",
];

/// The text of a changed configuration; now and then a key occurs twice, or there is a byte order mark.
fn config(text: &[u8], random: &mut Random) -> Vec<u8> {
    let mut json: Map<String, Value> = serde_json::from_slice(text).unwrap();
    let keys: Vec<String> = json.keys().cloned().chain(MORE.map(str::to_owned)).collect();
    for _ in 0..1 + random.below(3) {
        let key = random.of(&keys);
        match random.below(8) {
            0 => drop(json.remove(&key)),
            1 => drop(json.insert("model_type".into(), random.of(&KINDS).into())),
            _ => drop(json.insert(key, value(random, 0))),
        }
    }
    let mut text = Value::from(json).to_string();
    match random.below(10) {
        0 => text.insert_str(1, &format!("{}:{},", Value::from(random.of(&keys)), value(random, 0))),
        1 => text.insert(0, '\u{feff}'),
        2 => text.truncate(random.below(text.len())),
        _ => {}
    }
    text.into_bytes()
}

/// A SafeTensors file with another header: names, types, shapes, places.
fn weights(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut json: Map<String, Value> = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let names: Vec<String> = json.keys().cloned().collect();
    for _ in 0..1 + random.below(2) {
        let name = random.of(&names);
        let Some(mut tensor) = json.remove(&name) else { continue };
        match random.below(6) {
            0 => continue,
            1 => drop(json.insert(format!("{name}.more"), tensor.clone())),
            2 => tensor["dtype"] = random.of(&["F16", "I8", "F8_E4M3", "U8", "F64", "BOOL", "F4"]).into(),
            3 => tensor["shape"] = (0..random.below(4)).map(|_| random.size()).collect(),
            4 => tensor["data_offsets"] = json!([random.size(), random.size()]),
            _ => tensor[random.of(&["dtype", "shape", "data_offsets"])] = value(random, 0),
        }
        json.insert(name, tensor);
    }
    let header = Value::from(json).to_string();
    let length = if random.below(8) == 0 { random.size() } else { header.len() as u64 };
    [&length.to_le_bytes(), header.as_bytes(), &bytes[8 + length_of(bytes)..]].concat()
}

fn length_of(bytes: &[u8]) -> usize {
    u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize
}

/// An index of weights in several files, none of which need be right.
fn index(random: &mut Random) -> Vec<u8> {
    let names = ["model.norm.weight", "model.embed_tokens.weight", "a", "lm_head.weight"];
    let files = ["model.safetensors", "other.safetensors", "../model.safetensors", "config.json", ""];
    let entries = (0..random.below(5)).map(|_| {
        let file = if random.below(5) == 0 { value(random, 0) } else { random.of(&files).into() };
        (random.of(&names).to_owned(), file)
    });
    json!({ "weight_map": entries.collect::<Map<_, _>>() }).to_string().into_bytes()
}

/// A GGUF file with other metadata or descriptions.
fn gguf(random: &mut Random) -> Vec<u8> {
    let mut file: GgufFile = tiny(random.of(&["llama", "qwen2"]));
    let more =
        ["vocab_size", "attention.key_length", "rope.dimension_count", "rope.scaling.type", "rope.scaling.factor"];
    for _ in 0..1 + random.below(3) {
        let at = random.below(file.tensors.len());
        let key = match random.below(3) {
            0 => format!("llama.{}", random.of(&more)),
            // Of the sizes, which come first.
            _ => file.metadata[random.below(10.min(file.metadata.len()))].0.clone(),
        };
        match random.below(8) {
            0 => file.metadata.retain(|(other, _)| *other != key),
            1 => file.set(&key, Meta::F32(random.of(&[0.0, 1e-40, f32::NAN, f32::INFINITY, -1.0, 3.0]))),
            2 => file.set(&key, Meta::Text("linear")),
            3 => file.set(&key, Meta::I32s(vec![random.next() as i32; 2])),
            4 => file.tensors[at].1 = (0..1 + random.below(4)).map(|_| random.size()).collect(),
            5 => file.tensors[at].2 = random.below(40) as u32,
            6 => {
                file.tensors[at].0 = random.of(&["output.weight", "rope_freqs.weight", "blk.0.attn_q.bias", "x"]).into()
            }
            _ => file.set(&key, Meta::U32(random.size() as u32)),
        }
    }
    file.bytes()
}

/// A small RWKV-7 as a folder.
fn recurrent() -> TempDir {
    let (_file, path) = tiny("llama").write();
    let model = Pretrained::open(path).unwrap();
    let config = ModelConfig::Rwkv7(small_rwkv7(false));
    let tensors = config.tensors().map(|(name, shape)| {
        let values = (0..shape.iter().product()).map(|at: usize| (at as f32).sin()).collect();
        (name, shape, values)
    });
    let folder = tempfile::tempdir().unwrap();
    save_model(folder.path(), &config, &model.tokenizer, None, tensors, SavedDtype::F32).unwrap();
    folder
}

fn scores<M: CausalModel>(model: Pretrained) -> bool {
    let Ok(finetune) = FinetuneConfig::new().with_population_size(2).init::<M>(model) else { return false };
    finetune.score(&[Item::new(&[1], &[2, 0])]).is_ok_and(|scored| scored.len() == 1)
}

/// Whether a model was there, which then scores; anything but an error or that panics.
fn use_all(path: &Path) -> bool {
    let Ok(model) = Pretrained::open(path) else { return false };
    match &model.config {
        ModelConfig::Rwkv7(_) => scores::<Rwkv7>(model),
        _ => scores::<Llama>(model),
    }
}

/// Files as they are, which every case begins with.
struct Folder(TempDir, Vec<u8>, Vec<u8>);

impl Folder {
    fn new(folder: TempDir) -> Self {
        let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
        let (config, weights) = (read("config.json"), read("model.safetensors"));
        Self(folder, config, weights)
    }

    fn case(&self, random: &mut Random) -> bool {
        let Self(folder, config_text, weights_bytes) = self;
        let path = |name: &str| folder.path().join(name);
        let kind = random.below(8);
        let text = if kind < 5 { config(config_text, random) } else { config_text.clone() };
        fs::write(path("config.json"), text).unwrap();
        let bytes = if (4..7).contains(&kind) { weights(weights_bytes, random) } else { weights_bytes.clone() };
        fs::write(path("model.safetensors"), bytes).unwrap();
        if kind == 7 {
            fs::write(path("model.safetensors.index.json"), index(random)).unwrap();
            return use_all(&path("model.safetensors.index.json"));
        }
        use_all(folder.path())
    }
}

fn run_cases(count: u64, progress: PathBuf) {
    let folders = [Folder::new(folder()), Folder::new(recurrent())];
    let file = tempfile::tempdir().unwrap();
    let file = file.path().join("model.gguf");
    let mut good = 0;
    for case in 0..count {
        fs::write(&progress, case.to_string()).unwrap();
        let random = &mut Random(PhiloxRng::seed_from_u64(case));
        good += u64::from(match random.below(3) {
            2 => {
                fs::write(&file, gguf(random)).unwrap();
                use_all(&file)
            }
            folder => folders[folder].case(random),
        });
    }
    // Changes that mean nothing, or little: cases that are all refused would show nothing of scores.
    assert!(good * 50 > count && good < count, "{good} models of {count} cases");
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<u64>().ok());
    assert!(peak.is_none_or(|kibibytes| kibibytes << 10 < MOST_BYTES), "{peak:?} KiB at the most");
}

#[test]
fn generated_configs_and_headers() {
    let count = std::env::var("EGGROLL_FUZZ_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(500);
    if let Some(progress) = std::env::var_os(CHILD) {
        return run_cases(count, progress.into());
    }
    let folder = tempfile::tempdir().unwrap();
    let progress = folder.path().join("case");
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 4000000; exec \"$0\" --exact fuzz_configs::generated_configs_and_headers"])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, &progress)
        .output()
        .unwrap();
    let case = fs::read_to_string(progress).unwrap_or_default();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    assert!(output.status.success() && said.contains("1 passed"), "case {case} of {count}: {}\n{said}", output.status);
}

/// The files that cases begin with are models, and floats of a GGUF file are what they say.
#[test]
fn files_without_a_change_score() {
    assert!(use_all(folder().path()) && use_all(recurrent().path()));
    let mut file = tiny("llama");
    file.tensors
        .iter_mut()
        .for_each(|(_, sizes, _, data)| *data = f32s((0..sizes.iter().product()).map(|at: u64| (at as f32).sin())));
    let (_folder, path) = file.write();
    assert!(use_all(&path));
}
