//! Members of a model in its file's integers, on a device.

use crate::devices::on_each_gpu;
use crate::scoring::largest;
use crate::stored::{Kind, items, model};
use burn::tensor::Device;
use eggroll_core::Role;
use eggroll_core::transformer::Precision;
use eggroll_lm::load::Pretrained;
use eggroll_lm::reward::Prompt;
use eggroll_lm::{Error, Finetune, FinetuneConfig, Items, Llama, QuantizedLlama, SamplingConfig, Scored, Tunable};
use std::path::Path;

/// Largest difference of `ln p` of an item. Both sides have the same weights, and activations in f32. Found: 4e-6 on software Vulkan.
const TOLERANCE: f32 = 1e-4;
/// What members or models that are not the same differ by, at least.
const OTHERS: f32 = 0.1;

fn settings(seed: u64) -> FinetuneConfig {
    FinetuneConfig::new().with_population_size(16).with_sigma(0.1).with_learning_rate(0.2).with_seed(seed)
}

fn blocks(path: &Path, seed: u64) -> Finetune<QuantizedLlama> {
    settings(seed).init(Pretrained::open(path).expect("a model")).expect("a model in blocks")
}

fn floats(path: &Path, seed: u64) -> Finetune<Llama> {
    let settings = settings(seed).with_precision(Precision::F32);
    settings.init(Pretrained::open(path).expect("a model")).expect("a model")
}

fn members<M: Tunable>(finetune: &Finetune<M>) -> Vec<Vec<Scored>> {
    finetune.score_members(&finetune.strategy().ask(), Items::Shared(&items())).expect("scores")
}

/// Full weights with noise, over one copy in int8: before and after steps, whose moves the copy follows.
#[test]
fn members_are_those_of_the_float_model() {
    on_each_gpu(|device| {
        for kind in [Kind::Q8, Kind::Q4, Kind::Bf16] {
            let (folder, path) = model(kind).write();
            let mut on_device = blocks(&path, 3).with_members_on(device).expect("a copy");
            let found = members(&on_device);
            let away = largest(&found, &members(&floats(&path, 3)));
            println!("{kind:?}: {away:.1e}");
            assert!(away < TOLERANCE, "{kind:?}: {away}");
            assert!(largest(&found, &members(&floats(&path, 4))) > OTHERS, "a canary: other noise");
            for _ in 0..3 {
                on_device.learn(Items::Shared(&items())).expect("a step");
            }
            let tuned = folder.path().join("tuned.gguf");
            on_device.save_gguf(&tuned).expect("a file");
            let of_copy = [on_device.score(&items()).expect("scores")];
            let of_file = [floats(&tuned, 3).score(&items()).expect("scores")];
            let away = largest(&of_copy, &of_file);
            println!("{kind:?}, tuned: {away:.1e}");
            assert!(away < TOLERANCE, "{kind:?}: {away}");
            let before = [floats(&path, 3).score(&items()).expect("scores")];
            assert!(largest(&of_copy, &before) > OTHERS, "a canary: nothing was learned");
        }
    });
}

#[test]
fn texts_are_those_of_the_float_model() {
    on_each_gpu(|device| {
        let (_folder, path) = model(Kind::Q8).write();
        let prompts = [Prompt::new("abc"), Prompt::new("hello")];
        let greedy = SamplingConfig::greedy(6);
        let [expected, found] = [
            floats(&path, 3).complete(&prompts, &greedy).expect("texts"),
            blocks(&path, 3).with_members_on(device).expect("a copy").complete(&prompts, &greedy).expect("texts"),
        ];
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
        // One row, whose product is another kernel.
        let one = blocks(&path, 3).with_members_on(device).expect("a copy").complete(&prompts[1..], &greedy);
        assert_eq!(format!("{:?}", one.expect("a text")), format!("{:?}", &expected[1..]));
    });
}

/// A run that continues from its log has a copy of the tuned model.
#[test]
fn a_log_is_continued() {
    on_each_gpu(|device| {
        let (folder, path) = model(Kind::Q8).write();
        let log = folder.path().join("run.replay");
        let open = || blocks(&path, 3).with_members_on(device).expect("a copy").with_replay_log(&log).expect("a log");
        let mut first = open();
        for _ in 0..2 {
            first.learn(Items::Shared(&items())).expect("a step");
        }
        let expected = first.score(&items()).expect("scores");
        drop(first);
        assert_eq!(open().score(&items()).expect("scores"), expected);
    });
}

/// Noise of a norm, which no step would move.
#[test]
fn noise_that_is_not_learned_is_refused() {
    on_each_gpu(|device| {
        let (_folder, path) = model(Kind::Q8).write();
        let strategy =
            settings(3).strategy::<QuantizedLlama>().with_roles([("layers.0.input_layernorm.gamma", Role::Dense)]);
        let finetune =
            blocks(&path, 3).with_members_on(device).expect("a copy").with_strategy(strategy).expect("a strategy");
        let found = finetune.score_members(&finetune.strategy().ask(), Items::Shared(&items()));
        assert!(matches!(found, Err(Error::Quantized { setting: "noise", .. })), "{found:?}");
    });
}

/// On a device of the host the kernels of the host run, which round activations.
#[test]
fn a_device_of_the_host_is_the_host() {
    let (_folder, path) = model(Kind::Q8).write();
    let expected = members(&blocks(&path, 3));
    assert_eq!(members(&blocks(&path, 3).with_members_on(&Device::flex()).expect("no copy")), expected);
}
