//! The run: evaluations before, training, evaluations after.

use crate::args::{LlmArgs, LlmLimits, LlmSettings};
use crate::chart;
use crate::lessons::TaskLessons;
use crate::measure::{self, Speed};
use crate::quantized;
use crate::sharing;
use crate::task::{LlmTask, Score};
use eggroll::core::transformer::Precision;
use eggroll::lm::load::{ModelConfig, Pretrained, SavedDtype};
use eggroll::lm::reward::Prompt;
use eggroll::lm::{CausalModel, Finetune, Items, Llama, Rwkv7, SamplingConfig, Tunable};
use eggroll::prelude::*;
use eggroll::run::distribution::Distribution;
use eggroll::run::{MetricTarget, ScalarMetric, print_line};
use eggroll_examples::interrupt::Signals;
use eggroll_examples::run_folder::{begin, fixed};
use eggroll_examples::{Ending, Failure, status};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Seeds and scores of all steps, in the run's folder.
pub const REPLAY_LOG: &str = "run.replay";
/// The metrics of validation.
pub const ACCURACY: &str = "Accuracy";
pub const SCORE: &str = "Mean score";
/// Bytes of the unrelated text whose perplexity tells of forgetting.
const UNRELATED: usize = 8192;
/// Tokens that are read together of it.
const WINDOW: usize = 256;

/// What is saved of a run.
#[derive(Serialize, Deserialize)]
pub struct SavedLlmRun {
    pub settings: LlmSettings,
    pub limits: LlmLimits,
}

pub fn run(args: &LlmArgs, signals: &Signals) -> Result<Ending, Failure> {
    // A worker has no files of the run: what it needs is on the server.
    let own = args.sharing.is_worker().then(tempfile::tempdir).transpose()?;
    let folder = RunFolder::new(own.as_ref().map_or(args.out.as_path(), |own| own.path()));
    if !args.resume {
        folder.check()?;
    }
    let (settings, limits) = match args.resume {
        true => {
            let saved = folder.resume::<SavedLlmRun>()?;
            (saved.settings, saved.limits.renewed(args.limits))
        }
        false => (args.settings.clone(), args.limits),
    };
    settings.validate()?;
    limits.validate()?;
    if settings.quantized {
        return quantized::run(args, &SavedLlmRun { settings, limits }, &folder, signals);
    }
    let Some(distribution) = args.sharing.join(limits.steps.is_some(), signals)? else { return Ok(Ending::Finished) };
    let pretrained = settings.open()?;
    let saved = SavedLlmRun { settings, limits };
    let run = LlmRun { saved: &saved, args, settings: &saved.settings, limits, folder: &folder, signals };
    match pretrained.config.clone() {
        ModelConfig::Llama(_) => run.train::<Llama>(pretrained, distribution),
        ModelConfig::Rwkv7(_) => run.train::<Rwkv7>(pretrained, distribution),
        other => Err(unknown(&other)),
    }
}

/// Scores a training batch at several noise scales.
pub fn probe(args: &LlmArgs, signals: &Signals) -> Result<(), Failure> {
    let settings = &args.settings;
    settings.validate()?;
    let pretrained = settings.open()?;
    match pretrained.config.clone() {
        ModelConfig::Llama(_) => probe_model::<Llama>(settings, pretrained, signals),
        ModelConfig::Rwkv7(_) => probe_model::<Rwkv7>(settings, pretrained, signals),
        other => Err(unknown(&other)),
    }
}

/// An architecture that this example was not written for.
pub fn unknown(config: &ModelConfig) -> Failure {
    format!("this example runs Llama and RWKV-7 models, not {config:?}").into()
}

fn probe_model<M: CausalModel>(
    settings: &LlmSettings,
    pretrained: Pretrained,
    signals: &Signals,
) -> Result<(), Failure> {
    const SIGMAS: [f64; 7] = [0.003, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2];
    let finetune = settings.finetune().init::<M>(pretrained)?;
    let task = LlmTask::new(settings, &finetune)?;
    let items = task
        .batch(0, settings)
        .completions()
        .ok_or("--probe is for the tasks words and sft, whose scores are likelihoods")?;
    let probe = finetune.strategy().probe_sigma(finetune.model(), SIGMAS, |population| {
        let scored = finetune.score_members(population, Items::Shared(&items)).expect("the items fit the model");
        let mean = |items: &Vec<eggroll::lm::Scored>| {
            items.iter().map(|item| item.mean_log_probability()).sum::<f32>() / items.len() as f32
        };
        Fitness::from(scored.iter().map(mean).collect::<Vec<f32>>())
    })?;
    signals.check()?;
    print_line!("sigma is relative to the spread of each matrix\n{probe}");
    print_line!("RESULT {}", json!({ "recommended_sigma": probe.recommended(), "sigmas": probe.sigmas }));
    Ok(())
}

struct LlmRun<'a> {
    saved: &'a SavedLlmRun,
    args: &'a LlmArgs,
    settings: &'a LlmSettings,
    limits: LlmLimits,
    folder: &'a RunFolder,
    signals: &'a Signals,
}

/// The model, measured before or after.
pub struct Evaluation {
    pub test: Score,
    pub perplexity: f64,
}

impl Evaluation {
    /// On the task's test, and on text that has nothing to do with it.
    pub fn new<M: Tunable>(task: &LlmTask, finetune: &Finetune<M>) -> Result<Self, Failure> {
        let text = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/text/shakespeare.txt"))?;
        let text = String::from_utf8_lossy(&text[..UNRELATED.min(text.len())]).into_owned();
        Ok(Self { test: task.test(finetune)?, perplexity: finetune.perplexity(&text, WINDOW)? })
    }
}

impl LlmRun<'_> {
    /// Replicas that do not lead write and show nothing.
    fn train<M: CausalModel>(&self, pretrained: Pretrained, mut distribution: Distribution) -> Result<Ending, Failure> {
        let Self { args, settings, limits, folder, .. } = self;
        let start = Instant::now();
        let mut finetune = settings.finetune().init::<M>(pretrained)?;
        let task = LlmTask::new(settings, &finetune)?;
        // The folder is begun only once the settings are known to be right.
        distribution.lead(|| match args.resume {
            true => folder.save_settings(self.saved),
            false => begin(folder, self.saved),
        })?;
        let leads = distribution.leads();
        let before = if leads {
            print_line!("{} parameters, {:.1} s to load", finetune.model().num_params(), start.elapsed().as_secs_f64());
            let before = Evaluation::new(&task, &finetune)?;
            print_line!("before: {}", before);
            self.samples(&task, &finetune)?;
            Some(before)
        } else {
            None
        };
        let config = finetune
            .training_config(limits.steps())
            .with_validate_every(settings.evaluate_every)
            // Norms of all weights take a part of a second.
            .with_report_every(settings.evaluate_every)
            .with_data(Some(task.digest()))
            .with_early_stopping(args.observers.early_stopping(MetricTarget::highest(SCORE)))
            .with_settings(fixed(settings, &["data", "model"])?);
        let interrupter = self.signals.interrupter();
        let training = EsTraining::new((*folder).clone(), config)
            .with_interrupter(interrupter.clone())
            .with_distribution(distribution)
            .metric_valid(ScalarMetric::new(ACCURACY))
            .metric_valid(ScalarMetric::new(SCORE));
        let training = args.observers.watch(training);
        let mut lessons = TaskLessons::new(settings, limits, &task, leads.then_some(*folder), interrupter);
        eggroll_examples::trace::section("training");
        let stop = match finetune.train(training, &mut lessons) {
            Err(error) if sharing::is_stop(&error) => return Ok(Ending::Stopped),
            stop => stop?,
        };
        // Only the replica that leads says how the run ended.
        let Some(before) = before else { return Ok(Ending::Finished) };
        let TaskLessons { clock, points, tokens, .. } = lessons;
        let train_seconds = clock.seconds();
        let out_of_time = train_seconds >= limits.seconds();
        if !out_of_time && args.observers.ending(&stop, finetune.steps()).is_stopped() {
            return Ok(Ending::Stopped);
        }
        let after = Evaluation::new(&task, &finetune)?;
        print_line!("after: {}", after);
        self.samples(&task, &finetune)?;
        chart::draw(&folder.file("curve.svg"), &points, settings.task, [before.test, after.test])?;
        let model = folder.file("model");
        finetune.save(&model, SavedDtype::BF16)?;
        let log = fs::metadata(folder.file(REPLAY_LOG))?.len();
        print_line!("saved: {} (SafeTensors), and {log} bytes of seeds and scores in {REPLAY_LOG}", model.display());
        let speed = (!args.no_measure).then(|| measure::speed(&finetune, self.signals)).transpose()?;
        let result = result(&before, &after, &finetune, train_seconds, tokens, speed.as_ref());
        print_line!("RESULT {result}");
        Ok(Ending::Finished)
    }

    fn samples<M: CausalModel>(&self, task: &LlmTask, finetune: &Finetune<M>) -> Result<(), Failure> {
        let task_prompts = task.samples(finetune.tokenizer())?;
        let prompts: Vec<Prompt> =
            task_prompts.into_iter().chain([finetune.chat("What is the capital of France?")?]).collect();
        for (prompt, written) in prompts.iter().zip(finetune.complete(&prompts, &SamplingConfig::greedy(24))?) {
            // Without the marks of the chat format, `<|…|>`.
            let text = prompt.text();
            let parts = text.split("<|").map(|part| part.split_once("|>").map_or(part, |(_, text)| text));
            let shown = parts.collect::<String>().replace('\n', " ");
            let skipped = shown.chars().count().saturating_sub(60);
            let end: String = shown.chars().skip(skipped).collect();
            print_line!("  …{end}  →{}", written.text.replace('\n', " "));
        }
        Ok(())
    }
}

fn result<M: CausalModel>(
    before: &Evaluation,
    after: &Evaluation,
    finetune: &Finetune<M>,
    train_seconds: f64,
    tokens: usize,
    speed: Option<&Speed>,
) -> serde_json::Value {
    json!({
        "base_accuracy": before.test.accuracy,
        "base_mean": before.test.mean,
        "test_accuracy": after.test.accuracy,
        "test_well_formed": after.test.well_formed,
        "test_mean": after.test.mean,
        "train_seconds": train_seconds,
        "steps": finetune.steps(),
        "train_tokens": tokens,
        "tokens_per_second": tokens as f64 / train_seconds,
        "population_ratio": speed.map(|speed| speed.population_ratio),
        "int8_speedup": speed.map(|speed| speed.speedup(Precision::Int8)),
        "perplexity_before": before.perplexity,
        "perplexity_after": after.perplexity,
        "resident_bytes": status::bytes("VmHWM"),
        "parameter_digest": parameter_digest(finetune.model()),
    })
}

impl std::fmt::Display for Evaluation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "test {}, perplexity of unrelated text {:.2}", self.test, self.perplexity)
    }
}

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { accuracy, mean, well_formed, count } = self;
        write!(f, "{:.1} % of {count} right, mean score {mean:.3}", 100.0 * accuracy)?;
        match well_formed {
            Some(share) => write!(f, ", {:.1} % well-formed", 100.0 * share),
            None => Ok(()),
        }
    }
}
