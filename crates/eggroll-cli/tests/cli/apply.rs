//! The program on the files of a small run.

#[path = "../../eggroll-lm/tests/shared/small.rs"]
mod small;

use burn::tensor::Device;
use eggroll_lm::load::{Pretrained, SavedDtype};
use eggroll_lm::{FinetuneConfig, Items, Llama};
use eggroll_run::parameter_digest;
use small::{config, tokenizer};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A model of small letters in a folder, with weights of a seed.
fn pretrained(folder: PathBuf, seed: u64) -> PathBuf {
    std::fs::create_dir(&folder).unwrap();
    let device = Device::flex();
    device.seed(seed);
    let made =
        FinetuneConfig::new().init_with(Llama::new(&config(), &device), tokenizer(&folder, false), None).unwrap();
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
