//! A GGUF file that is tuned in its own numbers.

use crate::args::LlmArgs;
use crate::task::LlmTask;
use crate::train::{Evaluation, REPLAY_LOG, SavedLlmRun};
use eggroll::lm::{Finetune, QuantizedLlama, WrittenLesson};
use eggroll::prelude::*;
use eggroll::run::{JsonLines, print_line};
use eggroll_examples::interrupt::Signals;
use eggroll_examples::run_folder::begin;
use eggroll_examples::{Ending, Failure, status};
use serde_json::json;
use std::fs;
use std::time::Instant;

/// The items of the test, for other programs that read the tuned file.
const TEST: &str = "test.jsonl";

pub fn run(args: &LlmArgs, saved: &SavedLlmRun, folder: &RunFolder, signals: &Signals) -> Result<Ending, Failure> {
    let SavedLlmRun { settings, limits } = saved;
    if args.resume && limits.steps.is_none() {
        return Err("a quantized run of --seconds cannot be continued: give --steps to both".into());
    }
    let finetune: Finetune<QuantizedLlama> = settings.finetune().init(settings.open()?)?;
    let task = LlmTask::new(settings, &finetune)?;
    match args.resume {
        true => folder.save_settings(saved)?,
        false => begin(folder, saved)?,
    }
    let before = if args.resume { None } else { Some(Evaluation::new(&task, &finetune)?) };
    if let Some(before) = &before {
        print_line!("before: {before}");
    }
    let mut finetune = finetune.with_replay_log(folder.file(REPLAY_LOG))?;
    let mut lessons = JsonLines::open(folder.file(WrittenLesson::FILE), finetune.steps())?;
    let (mut seconds, mut moved) = (0.0, None);
    while finetune.steps() < limits.steps() && seconds < limits.seconds() {
        let (start, step) = (Instant::now(), finetune.steps());
        finetune.strategy_mut().set_learning_rate(settings.learning_rate(limits.done(step, seconds)))?;
        let batch = task.batch(step, settings);
        let lesson = task.lesson(&batch);
        moved = finetune.step(&lesson)?.changed.share();
        seconds += start.elapsed().as_secs_f64();
        lessons.write(&WrittenLesson::new(step, &lesson))?;
        if signals.check().is_err() {
            return Ok(Ending::Stopped);
        }
        if finetune.steps().is_multiple_of(settings.evaluate_every) {
            let (name, share) = (settings.task.dev_name(), moved.unwrap_or_default());
            let dev = task.dev(&finetune)?;
            print_line!(
                "step {}, {seconds:.0} s: {name} {dev}; {:.2} % of the weights have moved",
                step + 1,
                100.0 * share
            );
        }
    }
    let after = Evaluation::new(&task, &finetune)?;
    print_line!("after: {after}");
    let model = folder.file("model.gguf");
    finetune.save_gguf(&model)?;
    let mut items = JsonLines::open(folder.file(TEST), 0)?;
    task.test_items().iter().try_for_each(|item| items.write(item))?;
    print_line!("saved: {}", model.display());
    let file_bytes = fs::metadata(&model)?.len();
    let resident = status::bytes("VmHWM");
    print_line!(
        "RESULT {}",
        json!({
            "base_accuracy": before.map(|before| before.test.accuracy),
            "test_accuracy": after.test.accuracy,
            "perplexity_after": after.perplexity,
            "train_seconds": seconds,
            "steps": finetune.steps(),
            "moved_in_the_last_step": moved,
            "file_bytes": file_bytes,
            "resident_bytes": resident,
        })
    );
    Ok(Ending::Finished)
}
