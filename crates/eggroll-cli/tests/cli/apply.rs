//! Models that are made of a log.

use crate::{apply, completions, pretrained, settings, tuned};
use eggroll_lm::load::Pretrained;
use eggroll_lm::{FinetuneConfig, Llama};
use eggroll_run::parameter_digest;
use std::path::Path;

#[test]
fn a_log_makes_the_tuned_model() {
    let folder = tempfile::tempdir().unwrap();
    let model = pretrained(folder.path().join("model"), 7);
    let (log, out) = (folder.path().join("run.replay"), folder.path().join("tuned"));
    let digests = tuned(&model, &log, settings(), completions);
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
    tuned(&model, &log, settings(), completions);
    let refused = |model: &Path, log: &Path, more: &[&str], word: &str| {
        let output = apply(model, log, &out, more);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(word), "{said}");
        assert!(!out.exists(), "nothing is written");
    };
    refused(&other, &log, &[], "another start");
    refused(&model, &log, &["--until", "9"], "9");
    refused(&model, &folder.path().join("nowhere"), &[], "nowhere");
    let mut bytes = std::fs::read(&log).unwrap();
    let amid = bytes.len() - 100;
    bytes[amid] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    refused(&model, &log, &[], "run.replay");
}
