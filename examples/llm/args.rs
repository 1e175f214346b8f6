//! The command line.

use crate::sharing::SharingArgs;
use clap::{Parser, ValueEnum};
use eggroll::core::transformer::Precision;
use eggroll::lm::load::{Pretrained, smollm2_path};
use eggroll::lm::{FinetuneConfig, SamplingConfig};
use eggroll::train::Credit;
use eggroll_examples::Failure;
use eggroll_examples::bounds::at_most;
use eggroll_examples::interrupt;
use eggroll_examples::observers::ObserverArgs;
use eggroll_examples::options::Given;
use eggroll_examples::trace::TraceArgs;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Fine-tunes a pretrained language model by evolution strategies, on any score.
#[derive(Parser, Debug)]
#[command(after_help = interrupt::HELP)]
pub struct LlmArgs {
    /// Folder for the replay log, metrics, page, curve and model.
    #[arg(long, default_value = "runs/llm")]
    pub out: PathBuf,
    /// Continue the run in --out; only --seconds and --steps may change.
    #[arg(long)]
    pub resume: bool,
    #[command(flatten)]
    pub limits: LlmLimits,
    #[command(flatten)]
    pub settings: LlmSettings,
    #[command(flatten)]
    pub observers: ObserverArgs,
    #[command(flatten)]
    pub sharing: SharingArgs,
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Do not measure tokens per second at the end.
    #[arg(long)]
    pub no_measure: bool,
    /// Score training data at several noise scales and recommend one.
    #[arg(long, conflicts_with = "resume")]
    pub probe: bool,
    /// Measure tokens per second instead of training.
    #[arg(long, conflicts_with_all = ["resume", "probe"])]
    pub throughput: bool,
    /// Grade answers from standard input, for `eggroll verify --reward`.
    #[arg(long, conflicts_with_all = ["resume", "probe", "throughput"])]
    pub grade: bool,
    /// With --throughput: compare with llama.cpp, by llama-cpp-python.
    #[arg(long, requires = "throughput")]
    pub llama_cpp: bool,
    /// Python that has llama-cpp-python.
    #[arg(long, default_value = "python3", requires = "llama_cpp")]
    pub python: PathBuf,
}

/// When the run ends: at the first limit that is reached.
#[derive(clap::Args, Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LlmLimits {
    /// Seconds of training, without evaluations. Default: 600 without --steps.
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Steps in total.
    #[arg(long)]
    pub steps: Option<u64>,
}

/// Seconds of training if no limit is given.
const SECONDS: f64 = 600.0;

/// The settings of a run: saved with it.
#[derive(clap::Args, Clone, Debug, Serialize, Deserialize)]
pub struct LlmSettings {
    /// words (positive or negative?), conciseness, countdown, dialogue, or sft (--data).
    #[arg(long, value_enum, default_value_t = TaskName::Words, hide_possible_values = true)]
    pub task: TaskName,
    /// Lines of word, tab and valence. For sft, of text or {"prompt", "completion"} (.jsonl). Last tenths: dev, test.
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Hugging Face folder or GGUF file. Default: the model of scripts/smollm2.
    #[arg(long, value_name = "FOLDER|FILE")]
    pub model: Option<PathBuf>,
    /// Members of a step, an even number.
    #[arg(long, default_value_t = 32, value_parser = at_most(1 << 16))]
    pub population: usize,
    /// Prompts of a step; every member answers all.
    #[arg(long, default_value_t = 4, value_parser = at_most(1 << 16))]
    pub prompts: usize,
    /// Steps of countdown that learn given solutions, before rewards.
    #[arg(long, default_value_t = 0)]
    pub warm_up: u64,
    /// Rank of the noise.
    #[arg(long, default_value_t = 1, value_parser = at_most(64))]
    pub rank: usize,
    /// Noise scale, in units of each matrix's standard deviation.
    #[arg(long, default_value_t = FinetuneConfig::new().sigma)]
    pub sigma: f64,
    /// Learning rate: share of its noise that random scores move a weight.
    #[arg(long, default_value_t = FinetuneConfig::new().learning_rate)]
    pub learning_rate: f64,
    /// mean (scores of members) or auto (of tokens, with rates 20 times as high).
    #[arg(long, default_value_t = FinetuneConfig::new().credit)]
    pub credit: Credit,
    /// Learning rate: cooldown (falls to 0 in the last 30 %) or constant.
    #[arg(long, value_enum, default_value_t = Schedule::Cooldown, hide_possible_values = true)]
    pub schedule: Schedule,
    /// Decay towards the pretrained weights.
    #[arg(long, default_value_t = 0.0)]
    pub anchor_decay: f64,
    /// Members' products: f32, bf16, int8 (fastest) or q8_0.
    #[arg(long, value_enum, default_value_t = PrecisionName::Int8, hide_possible_values = true)]
    pub precision: PrecisionName,
    /// Tune a GGUF file as it is, in Q8_0, Q4_0 or BF16, and write it back.
    #[arg(long)]
    #[serde(default)]
    pub quantized: bool,
    /// Most tokens of an answer, for tasks with rewards.
    #[arg(long, default_value_t = 64, value_parser = at_most(1 << 20))]
    pub max_tokens: usize,
    /// Temperature of all replies, also on dev and test data; 0: greedy.
    #[arg(long, default_value_t = 0.0)]
    pub temperature: f32,
    /// Answers of a member to a prompt; several need a temperature.
    #[arg(long, default_value_t = 1, value_parser = at_most(1 << 10))]
    pub answers: usize,
    /// Score the best of this many answers: pass@k for rewards 0 and 1.
    #[arg(long, default_value_t = 1, value_parser = at_most(1 << 10))]
    pub best_of: usize,
    /// Steps between two evaluations on dev data.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub evaluate_every: u64,
    /// Seed of noise, data order, draws and countdown's problems.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum TaskName {
    /// Is a word positive or negative? Asked in ChatML, the chat format of SmolLM2 and Qwen; scored by the probability of the answer.
    Words,
    /// Answer in as few characters as the reference: a reward of what the model writes.
    Conciseness,
    /// An equation of given numbers: a reward of what the model writes.
    Countdown,
    /// Is a word positive or negative? Asked again if the answer is not one word: a reward of two turns.
    Dialogue,
    /// The likelihood of your own texts (--data).
    Sft,
}

/// The share of a run in which the learning rate falls.
const COOLDOWN: f64 = 0.3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Schedule {
    /// Stays for seven tenths of the run, then falls to zero: what the last steps add of noise is small.
    Cooldown,
    /// Stays.
    Constant,
}

impl TaskName {
    /// What evaluations during the run are made on.
    pub fn dev_name(self) -> &'static str {
        if self == Self::Conciseness { "training prompts" } else { "dev" }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum PrecisionName {
    /// float32.
    F32,
    /// bfloat16, sums in float32.
    Bf16,
    /// int8 in rotated blocks: the fastest.
    Int8,
    /// int8 with a scale for each 32 inputs, as llama.cpp has it in Q8_0.
    #[value(name = "q8_0")]
    Q8_0,
}

#[derive(Clone, Copy)]
pub enum Mode {
    Train,
    Probe,
    Throughput,
    Grade,
}

/// Of the model and its noise: all that a measurement takes.
const OF_NOISE: [&str; 6] = ["throughput", "model", "population", "rank", "sigma", "seed"];
/// Of a run that trains, and ends.
const OF_TRAINING: [&str; 9] =
    ["out", "seconds", "steps", "no-measure", "evaluate-every", "schedule", "learning-rate", "anchor-decay", "credit"];

/// Of weights that are floats.
const OF_FLOATS: [&str; 3] = ["precision", "credit", "anchor-decay"];

impl LlmArgs {
    /// Refuses options that the mode or the task would ignore.
    pub fn refuse_unused(&self, given: &Given) -> Result<(), String> {
        match self.mode() {
            Mode::Throughput => {
                let used = [&OF_NOISE[..], &["precision", "llama-cpp", "python"]].concat();
                return given.refuse_all_but(&used, "with --throughput, which trains nothing");
            }
            Mode::Grade => return given.refuse_all_but(&["grade", "task"], "with --grade, which trains nothing"),
            Mode::Probe => {
                let unused = [&OF_TRAINING[..], &ObserverArgs::NAMES, &SharingArgs::names()].concat();
                given.refuse(&unused, "with --probe, which trains nothing")?;
                given.refuse(&["sigma"], "with --probe, which tries several")?;
            }
            Mode::Train if self.resume => {
                let own = ["resume", "out", "seconds", "steps", "no-measure"];
                let used = [&own[..], &ObserverArgs::NAMES, &SharingArgs::names()].concat();
                return given.refuse_all_but(&used, "with --resume, which keeps the settings of the run");
            }
            Mode::Train if self.settings.quantized => {
                let unused = [&OF_FLOATS[..], &ObserverArgs::NAMES, &SharingArgs::names()].concat();
                given.refuse(&unused, "with --quantized, whose integers one process moves by the means of members")?;
            }
            Mode::Train => {}
        }
        match self.settings.task {
            TaskName::Words | TaskName::Sft => given.refuse(
                &["max-tokens", "temperature", "answers", "best-of"],
                "with the tasks words and sft, which write nothing",
            ),
            TaskName::Conciseness | TaskName::Countdown | TaskName::Dialogue => Ok(()),
        }
    }

    pub fn mode(&self) -> Mode {
        match self {
            Self { probe: true, .. } => Mode::Probe,
            Self { throughput: true, .. } => Mode::Throughput,
            Self { grade: true, .. } => Mode::Grade,
            _ => Mode::Train,
        }
    }
}

impl LlmLimits {
    /// Limits given anew in place of `self`.
    pub fn renewed(self, given: Self) -> Self {
        if given.seconds.is_none() && given.steps.is_none() { self } else { given }
    }

    pub fn seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.steps.is_none() { SECONDS } else { f64::INFINITY })
    }

    /// The share of the run that lies before a step: of its steps if they are limited, of its seconds otherwise.
    pub fn done(&self, steps: u64, seconds: f64) -> f64 {
        let of = |done: f64, limit: f64| if done < limit { done / limit } else { 1.0 };
        self.steps.map_or(of(seconds, self.seconds()), |limit| of(steps as f64, limit as f64))
    }

    pub fn steps(&self) -> u64 {
        self.steps.unwrap_or(u64::MAX)
    }

    pub fn validate(&self) -> Result<(), Failure> {
        match self.seconds() {
            seconds if seconds.is_nan() || seconds < 0.0 => Err(format!("a run cannot take {seconds} seconds").into()),
            _ => Ok(()),
        }
    }
}

impl LlmSettings {
    /// The model's path.
    pub fn model(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.model {
            return Ok(path.clone());
        }
        let path = smollm2_path().ok_or("no folder for models: give --model FOLDER|FILE")?;
        if !path.exists() {
            let path = path.display();
            return Err(format!(
                "no model at {path}: run scripts/smollm2, which fetches SmolLM2-135M-Instruct (98 MB) once, or give --model FOLDER|FILE"
            )
            .into());
        }
        Ok(path)
    }

    pub fn open(&self) -> Result<Pretrained, Failure> {
        Ok(Pretrained::open(self.model()?)?)
    }

    pub fn finetune(&self) -> FinetuneConfig {
        FinetuneConfig {
            population_size: self.population,
            rank: self.rank,
            sigma: self.sigma,
            learning_rate: self.learning_rate,
            anchor_decay: self.anchor_decay,
            seed: self.seed,
            credit: self.credit,
            precision: match self.precision {
                PrecisionName::F32 => Precision::F32,
                PrecisionName::Bf16 => Precision::Bf16,
                PrecisionName::Int8 => Precision::Int8,
                PrecisionName::Q8_0 => Precision::Q8_0,
            },
        }
    }

    /// The learning rate of the next step, of which a share of the run lies before.
    pub fn learning_rate(&self, done: f64) -> f64 {
        let left = match self.schedule {
            Schedule::Cooldown => ((1.0 - done) / COOLDOWN).clamp(0.0, 1.0),
            Schedule::Constant => 1.0,
        };
        self.learning_rate * left
    }

    pub fn sampling(&self) -> SamplingConfig {
        let sampling = SamplingConfig::greedy(self.max_tokens).with_temperature(self.temperature);
        sampling.with_seed(self.seed).with_answers(self.answers, self.best_of)
    }

    /// Refuses what nothing else checks.
    pub fn validate(&self) -> Result<(), Failure> {
        if self.prompts == 0 {
            return Err("a step needs at least one prompt, but --prompts is 0".into());
        }
        if self.task == TaskName::Sft && self.data.is_none() {
            return Err("--task sft needs a file: give --data FILE".into());
        }
        if self.data.is_some() && !matches!(self.task, TaskName::Sft | TaskName::Words) {
            return Err("--data is for the tasks words and sft: the other tasks make their own prompts".into());
        }
        if self.warm_up > 0 && self.task != TaskName::Countdown {
            return Err("--warm-up is for the task countdown, whose problems have solutions".into());
        }
        Ok(self.sampling().validate()?)
    }
}
