//! The program `eggroll`.

#[path = "../../../eggroll-lm/tests/shared/small.rs"]
mod small;

mod apply;
mod verify;

use burn::tensor::Device;
use eggroll_lm::load::{Pretrained, SavedDtype};
use eggroll_lm::reward::Prompt;
use eggroll_lm::{Finetune, FinetuneConfig, Llama, Questions, WrittenLesson};
use eggroll_run::{JsonLines, parameter_digest};
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

fn eggroll(command: &str, model: &Path, log: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_eggroll")).arg(command).args([model, log]).args(more).output().unwrap()
}

fn apply(model: &Path, log: &Path, out: &Path, more: &[&str]) -> Output {
    eggroll("apply", model, log, &[&["--out", out.to_str().unwrap()], more].concat())
}

/// Answers are worth their letters before n.
fn reward(_: &Prompt, completion: &str) -> f32 {
    completion.chars().filter(|letter| *letter < 'n').count() as f32
}

/// A run of five steps, with what they were asked next to the log; the digests of its models after each.
fn tuned(
    model: &Path,
    log: &Path,
    settings: FinetuneConfig,
    asked: impl Fn(&Finetune<Llama>) -> Questions,
) -> Vec<String> {
    let finetune = settings.with_sigma(0.1).init::<Llama>(Pretrained::open(model).unwrap()).unwrap();
    let asked = asked(&finetune);
    let lesson = |generation| WrittenLesson { generation, asked: asked.clone() };
    let first = lesson(0);
    let mut finetune = finetune.with_replay_log_of(log, |_| first.lesson(&reward)).unwrap();
    let mut lessons = JsonLines::open(log.with_file_name("lessons.jsonl"), 0).unwrap();
    let step = |generation| {
        lessons.write(&lesson(generation)).unwrap();
        finetune.step(&lesson(generation).lesson(&reward)).unwrap();
        parameter_digest(finetune.model())
    };
    (0..5).map(step).collect()
}

fn completions(finetune: &Finetune<Llama>) -> Questions {
    Questions::Completions(vec![finetune.item("abc", "x").unwrap(), finetune.item("hello", "yz").unwrap()])
}

fn settings() -> FinetuneConfig {
    FinetuneConfig::new().with_population_size(8)
}
