//! A fine-tune of a tiny language model: the saved model, its replay log, the lessons.

#[path = "../../../crates/eggroll-lm/tests/shared/small.rs"]
mod small;

use super::{copy, golden, refuses_a_changed_byte, write_if_asked};
use burn::tensor::Device;
use eggroll::lm::load::{Pretrained, SavedDtype};
use eggroll::lm::reward::Prompt;
use eggroll::lm::{Finetune, FinetuneConfig, Llama, Questions, SamplingConfig, WrittenLesson};
use eggroll::prelude::*;
use eggroll::run::{JsonLines, UserError, VerifyConfig};
use std::fs;
use std::path::Path;

/// Digest of the pretrained model.
const PRETRAINED: &str = "8ba57bcea2f802747080276b3f0a803d33d195b705cfff88e1fef83e6e65ba66";
/// Digest of the tuned model.
const TUNED: &str = "9b07c0185ada675abd9963c2d1170c67d30d175c53a0ddf428c1e813def85ddf";
const STEPS: u64 = 3;

fn settings() -> FinetuneConfig {
    FinetuneConfig::new().with_population_size(8).with_sigma(0.1)
}

fn open(folder: &Path) -> Finetune<Llama> {
    settings().init(Pretrained::open(folder.join("model")).expect("reads")).expect("a model")
}

/// Answers are worth their letters before n.
fn reward(_: &Prompt, completion: &str) -> f32 {
    completion.chars().filter(|letter| *letter < 'n').count() as f32
}

/// Completions, then prompts.
fn lesson(finetune: &Finetune<Llama>, generation: u64) -> WrittenLesson {
    let asked = match generation {
        0 => Questions::Completions(vec![finetune.item("abc", "x").expect("an item")]),
        1 => Questions::Completions(vec![finetune.item("ab", "yz").expect("an item")]),
        _ => Questions::Answers { prompts: vec![Prompt::new("hello")], sampling: SamplingConfig::greedy(3) },
    };
    WrittenLesson { generation, asked }
}

/// The lessons of a file.
fn lessons(folder: &Path) -> Vec<WrittenLesson> {
    let text = fs::read_to_string(folder.join(WrittenLesson::FILE)).expect("reads");
    text.lines().map(|line| serde_json::from_str(line).expect("a lesson")).collect()
}

/// Makes all steps again and asks all members, as `eggroll verify --share 1`.
fn verify(folder: &Path) -> Result<Finetune<Llama>, eggroll::lm::Error> {
    let (mut finetune, lessons) = (open(folder), lessons(folder));
    let lesson = |generation: u64| -> Result<_, UserError> { Ok(lessons[generation as usize].lesson(&reward)) };
    let all = VerifyConfig { share: 1.0, seed: 0, until: None };
    let verified = finetune.verify(folder.join("run.replay"), &all, lesson)?;
    assert_eq!((verified.steps, verified.evaluated), (STEPS, 8 * STEPS));
    Ok(finetune)
}

#[test]
fn written() {
    write_if_asked("finetune", |folder| {
        let (model, device) = (folder.join("model"), Device::flex());
        fs::create_dir(&model).expect("a folder");
        device.seed(7);
        let made = Llama::new(&small::config(), &device);
        let made = FinetuneConfig::new().init_with(made, small::tokenizer(&model, false), None).expect("a model");
        made.save(&model, SavedDtype::F32).expect("saves");

        let log = folder.join("run.replay");
        let first = lesson(&made, 0);
        let mut finetune = open(folder).with_replay_log_of(&log, |_| first.lesson(&reward)).expect("a log");
        let mut lines = JsonLines::open(folder.join(WrittenLesson::FILE), 0).expect("a file");
        for generation in 0..STEPS {
            let lesson = lesson(&made, generation);
            lines.write(&lesson).expect("writes");
            finetune.step(&lesson.lesson(&reward)).expect("a step");
        }
    });
}

/// With every member asked again; then with another lesson.
#[test]
fn the_run_is_verified() {
    let finetune = verify(&golden("finetune")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(parameter_digest(finetune.model()), TUNED);
    let folder = copy("finetune");
    let file = folder.path().join(WrittenLesson::FILE);
    let text = fs::read_to_string(&file).expect("reads");
    fs::write(&file, text.replace("\"completion\":[23]", "\"completion\":[22]")).expect("writes");
    let refusal = verify(folder.path()).err().expect("refused").to_string();
    assert!(refusal.contains("does not give the logged fitness"), "{refusal}");
    fs::write(&file, text).expect("writes");
    refuses_a_changed_byte(&folder.path().join("run.replay"), || {
        verify(folder.path()).err().map(|error| error.to_string())
    });
}

#[test]
fn the_model_is_read() {
    assert_eq!(parameter_digest(open(&golden("finetune")).model()), PRETRAINED);
}

#[test]
fn lessons_are_read() {
    let (finetune, lessons) = (open(&golden("finetune")), lessons(&golden("finetune")));
    assert_eq!(lessons, (0..STEPS).map(|generation| lesson(&finetune, generation)).collect::<Vec<_>>());
}
