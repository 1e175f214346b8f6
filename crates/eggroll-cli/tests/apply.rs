//! The program on the files of a small run.

use burn::tensor::Device;
use eggroll_lm::load::{LlamaConfig, Pretrained, RopeScaling, SavedDtype, Tokenizer};
use eggroll_lm::{FinetuneConfig, Items, Llama};
use eggroll_run::parameter_digest;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A model of small letters in a folder, with weights of a seed.
fn pretrained(folder: PathBuf, seed: u64) -> PathBuf {
    let vocab: serde_json::Map<String, serde_json::Value> =
        ('a'..='z').enumerate().map(|(id, letter)| (letter.to_string(), id.into())).collect();
    let end = json!({ "id": 26, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true });
    let tokenizer = json!({
        "version": "1.0", "added_tokens": [end], "normalizer": null, "pre_tokenizer": null, "post_processor": null,
        "decoder": { "type": "Fuse" }, "model": { "type": "BPE", "vocab": vocab, "merges": [] },
    });
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    std::fs::write(folder.join("tokenizer_config.json"), json!({ "eos_token": "<end>" }).to_string()).unwrap();
    let config = LlamaConfig {
        vocab_size: 27,
        hidden_size: 32,
        intermediate_size: 48,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        head_dim: 8,
        rope_theta: 1e4,
        rope_scaling: RopeScaling::None,
        rms_norm_eps: 1e-5,
        context_length: 32,
        tied_head: false,
        attention_bias: false,
    };
    let device = Device::flex();
    device.seed(seed);
    let tokenizer = Tokenizer::from_folder(&folder).unwrap();
    let made = FinetuneConfig::new().init_with(Llama::new(&config, &device), tokenizer, None).unwrap();
    made.save(&folder, SavedDtype::F32).unwrap();
    folder
}

fn apply(model: &Path, log: &Path, out: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eggroll"));
    command.arg("apply").args([model, log]).arg("--out").arg(out).args(more).output().unwrap()
}

/// A run of five steps; the digests of its models after each.
fn tuned(model: &Path, log: &Path) -> Vec<String> {
    let settings = FinetuneConfig::new().with_population_size(8).with_sigma(0.1);
    let finetune = settings.init::<Llama>(Pretrained::open(model).unwrap()).unwrap();
    let mut finetune = finetune.with_replay_log(log).unwrap();
    let item = [finetune.item("abc", "x").unwrap(), finetune.item("hello", "yz").unwrap()];
    let step = |_| {
        finetune.learn(Items::Shared(&item)).unwrap();
        parameter_digest(finetune.model())
    };
    (0..5).map(step).collect()
}

#[test]
fn a_log_makes_the_tuned_model() {
    let folder = tempfile::tempdir().unwrap();
    let model = pretrained(folder.path().join("model"), 7);
    let (log, out) = (folder.path().join("run.replay"), folder.path().join("tuned"));
    let digests = tuned(&model, &log);
    assert!(digests.windows(2).all(|two| two[0] != two[1]), "canary: every step moves the model");
    for (more, steps) in [(&["--until", "2"][..], 2), (&["--dtype", "f32"], 5)] {
        let output = apply(&model, &log, &out, more);
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let expected = &digests[steps - 1];
        assert!(said.contains(&format!("step {steps}, parameter digest {expected}")), "{said}");
    }
    // In float32 the files hold the very model.
    let saved = FinetuneConfig::new().init::<Llama>(Pretrained::open(&out).unwrap()).unwrap();
    assert_eq!(parameter_digest(saved.model()), digests[4]);
}

#[test]
fn other_models_and_logs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [model, other] = [("model", 7), ("other", 8)].map(|(name, seed)| pretrained(folder.path().join(name), seed));
    let (log, out) = (folder.path().join("run.replay"), folder.path().join("tuned"));
    tuned(&model, &log);
    let refused = |model: &Path, log: &Path, more: &[&str], word: &str| {
        let output = apply(model, log, &out, more);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(word), "{said}");
        assert!(!out.exists(), "nothing is written");
    };
    refused(&other, &log, &[], "began otherwise");
    refused(&model, &log, &["--until", "9"], "9");
    refused(&model, &folder.path().join("nowhere"), &[], "nowhere");
    let mut bytes = std::fs::read(&log).unwrap();
    let amid = bytes.len() - 100;
    bytes[amid] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    refused(&model, &log, &[], "run.replay");
}
