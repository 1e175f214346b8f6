//! A pretrained model, the log of its fine-tune, and what it was asked.

use clap::Args;
use eggroll_core::transformer::Precision;
use eggroll_lm::load::{ModelConfig, Pretrained};
use eggroll_lm::reward::{Prompt, RewardProgram};
use eggroll_lm::{CausalModel, Error, Finetune, FinetuneConfig, Questions, Verification, WrittenLesson};
use eggroll_run::{JsonLines, VerifyConfig, replay};
use std::path::PathBuf;

/// A model, its log, and how it was tuned.
#[derive(Args)]
pub struct TuneArgs {
    /// The pretrained model that the run began with: a Hugging Face folder or a GGUF file.
    pub model: PathBuf,
    /// The replay log of the run.
    pub log: PathBuf,
    /// What each step was asked, as JSON lines of the example llm. Default: lessons.jsonl next to the log.
    #[arg(long, value_name = "FILE")]
    lessons: Option<PathBuf>,
    /// Program that grades answers: it reads JSON lines {"prompt": {"prompt": …}, "completion": …} and prints a number for each.
    #[arg(long, value_name = "COMMAND")]
    reward: Option<String>,
    /// The program also replies to answers: episodes of several turns.
    #[arg(long, requires = "reward")]
    replies: bool,
    /// Number format of the members' products in the run: f32, bf16, int8 or q8_0.
    #[arg(long, default_value_t, value_parser = precision)]
    precision: Precision,
    /// The step to end with. Default: the last one.
    #[arg(long, value_name = "STEP")]
    pub until: Option<u64>,
}

fn precision(text: &str) -> Result<Precision, String> {
    let found = Precision::ALL.into_iter().find(|precision| precision.to_string() == text);
    found.ok_or_else(|| "expected f32, bf16, int8 or q8_0".to_owned())
}

/// A model that has been made again.
pub struct Tuned<M: CausalModel> {
    pub finetune: Finetune<M>,
    pub verification: Verification,
}

impl TuneArgs {
    /// Opens the pretrained model; whether it is an RWKV, and not a Llama.
    pub fn open(&self) -> Result<(Pretrained, bool), Error> {
        let pretrained = Pretrained::open(&self.model)?;
        let is_rwkv = matches!(pretrained.config, ModelConfig::Rwkv7(_));
        Ok((pretrained, is_rwkv))
    }

    /// Makes the steps of the log again, and asks a share of the members what they were asked.
    pub fn verify<M: CausalModel>(&self, pretrained: Pretrained, share: f64, seed: u64) -> Result<Tuned<M>, Error> {
        let finetune = FinetuneConfig::new().with_precision(self.precision).init::<M>(pretrained)?;
        let (strategy, _) = replay(&self.log, finetune.model().clone(), Some(0))?;
        let mut finetune = finetune.with_strategy(strategy.config().clone())?;
        let path = self.lessons.clone().unwrap_or_else(|| self.log.with_file_name(WrittenLesson::FILE));
        let lessons = JsonLines::read::<WrittenLesson>(&path)?;
        let program = self.reward.clone().map(RewardProgram::new);
        let program = if self.replies { program.map(RewardProgram::with_replies) } else { program };
        let none = |_: &Prompt, _: &str| f32::NAN;
        let config = VerifyConfig { share, seed, until: self.until };
        let lesson = |step: u64| {
            let found = lessons.iter().find(|lesson| lesson.generation == step);
            let found = found.ok_or_else(|| format!("{}: no line of generation {step}", path.display()))?;
            match (&found.asked, &program) {
                (_, Some(program)) => Ok(found.lesson(program)),
                (Questions::Answers { .. }, None) => {
                    Err("this run learned from rewards: give --reward COMMAND, the program that grades answers".into())
                }
                (_, None) => Ok(found.lesson(&none)),
            }
        };
        let verified = finetune.verify(&self.log, &config, lesson);
        // An answer that the program could not grade has no score, and so differs from the run's.
        let failure = program.as_ref().and_then(|program| program.failures().1).filter(|_| verified.is_err());
        failure.map_or(Ok(()), |failure| Err(eggroll_run::Error::User(failure.into())))?;
        Ok(Tuned { verification: verified?, finetune })
    }
}
