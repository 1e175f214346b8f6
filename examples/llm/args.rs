//! The command line.

use clap::{Parser, ValueEnum};
use eggroll::core::transformer::Precision;
use eggroll::lm::load::{Pretrained, smollm2_path};
use eggroll::lm::{CausalModel, Finetune, FinetuneConfig, SamplingConfig};
use eggroll_examples::Failure;
use eggroll_examples::bounds::at_most;
use eggroll_examples::interrupt;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Fine-tunes a pretrained language model by evolution strategies, on any score.
#[derive(Parser, Debug)]
#[command(after_help = interrupt::HELP)]
pub struct Args {
    /// Folder of the run: replay log, curve, and the fine-tuned model.
    #[arg(long, default_value = "runs/llm")]
    pub out: PathBuf,
    /// Continue the run in the output folder, with its settings; --seconds and --steps may change.
    #[arg(long)]
    pub resume: bool,
    #[command(flatten)]
    pub limits: Limits,
    #[command(flatten)]
    pub settings: Settings,
    /// Do not measure tokens per second at the end.
    #[arg(long)]
    pub no_measure: bool,
    /// Instead of training: score training data at several noise scales, and recommend one.
    #[arg(long, conflicts_with = "resume")]
    pub probe: bool,
    /// Instead of training: measure tokens per second.
    #[arg(long, conflicts_with_all = ["resume", "probe"])]
    pub throughput: bool,
    /// Instead of training: learn in --seconds by low-rank noise, by noise of full rank of 30 members, and by backpropagation.
    #[arg(long, conflicts_with_all = ["resume", "probe", "throughput"])]
    pub compare: bool,
    /// With --throughput: compare with llama.cpp on the same file, through Python's llama-cpp-python.
    #[arg(long, requires = "throughput")]
    pub llama_cpp: bool,
    /// Python that has llama-cpp-python.
    #[arg(long, default_value = "python3")]
    pub python: PathBuf,
}

/// Training ends at the first limit that is reached.
#[derive(clap::Args, Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// Seconds of training, without the evaluations before and after it.
    #[arg(long, default_value_t = 600.0)]
    pub seconds: f64,
    /// Total number of steps.
    #[arg(long)]
    pub steps: Option<u64>,
}

/// The settings of a run: saved with it.
#[derive(clap::Args, Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// What the model learns.
    #[arg(long, value_enum, default_value_t = TaskName::Words)]
    pub task: TaskName,
    /// Training data: words with their valence for `words`; JSON lines with `prompt` and `completion`, or a text, for `sft`.
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// The pretrained model: a Hugging Face folder or a GGUF file. Default: the one that scripts/smollm2 fetches.
    #[arg(long, value_name = "FOLDER|FILE")]
    pub model: Option<PathBuf>,
    /// Members of a step, even.
    #[arg(long, default_value_t = 32, value_parser = at_most(1 << 16))]
    pub population: usize,
    /// Prompts of a step, which all members are asked.
    #[arg(long, default_value_t = 4, value_parser = at_most(1 << 16))]
    pub prompts: usize,
    /// Rank of the noise.
    #[arg(long, default_value_t = 1, value_parser = at_most(64))]
    pub rank: usize,
    /// Noise scale, relative to the standard deviation of each matrix.
    #[arg(long, default_value_t = FinetuneConfig::new().sigma)]
    pub sigma: f64,
    /// Learning rate: a step of scores that say nothing moves each weight by that share of its noise.
    #[arg(long, default_value_t = FinetuneConfig::new().learning_rate)]
    pub learning_rate: f64,
    /// How the learning rate changes over the run, measured in --steps if they are given and in --seconds otherwise.
    #[arg(long, value_enum, default_value_t = Schedule::Linear)]
    pub schedule: Schedule,
    /// Decay towards the pretrained weights.
    #[arg(long, default_value_t = 0.0)]
    pub anchor_decay: f64,
    /// Number format of the products.
    #[arg(long, value_enum, default_value_t = PrecisionName::Int8)]
    pub precision: PrecisionName,
    /// Tokens that are generated at most.
    #[arg(long, default_value_t = 64, value_parser = at_most(1 << 20))]
    pub max_tokens: usize,
    /// Temperature of the members' texts; 0 for greedy decoding.
    #[arg(long, default_value_t = 0.0)]
    pub temperature: f32,
    /// Steps between two evaluations on dev data.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub evaluate_every: u64,
    /// Seed of noise and order of data.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum TaskName {
    /// Is a word positive or negative? Scored by the probability of the answer.
    Words,
    /// Answer in as few characters as the reference: a reward of what the model writes.
    Conciseness,
    /// An equation of given numbers: a reward of what the model writes.
    Countdown,
    /// The likelihood of your own texts (--data).
    Sft,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Schedule {
    /// Falls to zero: what the last steps add of noise is small.
    Linear,
    /// Stays.
    Constant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum PrecisionName {
    F32,
    Bf16,
    Int8,
}

pub enum Mode {
    Train,
    Probe,
    Throughput,
    Compare,
}

impl Args {
    pub fn mode(&self) -> Mode {
        match (self.probe, self.throughput, self.compare) {
            (true, ..) => Mode::Probe,
            (_, true, _) => Mode::Throughput,
            (.., true) => Mode::Compare,
            _ => Mode::Train,
        }
    }
}

impl Limits {
    pub fn steps(&self) -> u64 {
        self.steps.unwrap_or(u64::MAX)
    }

    pub fn validate(&self) -> Result<(), Failure> {
        match self.seconds {
            seconds if seconds.is_nan() || seconds < 0.0 => Err(format!("a run cannot take {seconds} seconds").into()),
            _ => Ok(()),
        }
    }
}

impl Settings {
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
            precision: match self.precision {
                PrecisionName::F32 => Precision::F32,
                PrecisionName::Bf16 => Precision::Bf16,
                PrecisionName::Int8 => Precision::Int8,
            },
        }
    }

    /// Sets the rate of the next step, of which a share of the run lies before.
    pub fn set_learning_rate<M: CausalModel>(&self, finetune: &mut Finetune<M>, done: f64) -> Result<(), Failure> {
        let left = match self.schedule {
            Schedule::Linear => (1.0 - done).max(0.0),
            Schedule::Constant => 1.0,
        };
        Ok(finetune.strategy_mut().set_learning_rate(self.learning_rate * left)?)
    }

    pub fn sampling(&self) -> SamplingConfig {
        SamplingConfig::greedy(self.max_tokens).with_temperature(self.temperature).with_seed(self.seed)
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
        Ok(self.sampling().validate()?)
    }
}
