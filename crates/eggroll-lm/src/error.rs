//! Errors of fine-tuning.

use crate::generation::GenerateError;
use crate::items::ItemsError;
use crate::load::LoadError;
use crate::reward::{PatternError, PromptError};
use crate::sampling::SamplingError;

/// Any error of eggroll-lm.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A model's files.
    #[error(transparent)]
    Load(Box<LoadError>),
    /// Prompts or completions that do not fit the model.
    #[error(transparent)]
    Items(#[from] ItemsError),
    /// Settings of generation.
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    /// A prompt that the reward cannot grade.
    #[error(transparent)]
    Prompt(Box<PromptError>),
    /// The pattern of a reward.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The strategy.
    #[error(transparent)]
    Train(Box<eggroll_train::Error>),
    /// The replay log.
    #[error(transparent)]
    Run(Box<eggroll_run::Error>),
    /// A replay log of a run with other settings.
    #[error("the replay log is of other settings: {field} is {found}, and was {expected} when the log began")]
    OtherSettings {
        /// The setting.
        field: String,
        /// As it is now.
        found: String,
        /// As it was.
        expected: String,
    },
    /// A run with another strategy than the fine-tuning's.
    #[error(
        "the run's strategy has {field} {run}, and that of the fine-tuning has {own}: Finetune::training_config makes a run with its strategy"
    )]
    OtherStrategy {
        /// The setting.
        field: String,
        /// As the run has it.
        run: String,
        /// As the fine-tuning has it.
        own: String,
    },
    /// A call that comes too late.
    #[error(
        "{call} comes before the first step and before the replay log, but {steps} steps were made{}",
        if *.logged { " and a log is open" } else { "" }
    )]
    TooLate {
        /// The method.
        call: &'static str,
        /// Steps that were made.
        steps: u64,
        /// Whether there is a log.
        logged: bool,
    },
    /// A text whose perplexity cannot be computed.
    #[error("a text of {tokens} tokens has no perplexity: it needs at least two")]
    ShortText {
        /// Its tokens.
        tokens: usize,
    },
    /// A text that the model cannot continue.
    #[error(
        "prompt {prompt} has no next token after {tokens} generated ones: the logits are NaN or +inf, or all -inf; the weights may have diverged"
    )]
    NoNextToken {
        /// The prompt, from 0.
        prompt: usize,
        /// Tokens that were generated before.
        tokens: usize,
    },
    /// A setting that a model in blocks of integers does not support.
    #[error(
        "a quantized model is moved by plain SGD on the means of members: {setting} is {found}, expected {expected}"
    )]
    Quantized {
        /// The setting.
        setting: &'static str,
        /// Its value.
        found: String,
        /// The value that works.
        expected: String,
    },
    /// The temporary file of a quantized model that learns.
    #[error(
        "the temporary file of carried rounding errors, 2 bytes for each weight, cannot be used: {0}. Set TMPDIR to \
         a folder with room, and open the model and its replay log again"
    )]
    Carried(std::io::Error),
    /// A conversation for a model that has no chat template.
    #[error("the model has no chat template: write the prompt as it was trained on")]
    NoTemplate,
    /// A chat template that leaves out what the assistant has said.
    #[error(
        "the chat template does not show the assistant's answers: reply with the control tokens as the model was trained on"
    )]
    NoAnswersInTemplate,
}

eggroll_core::debug_is_message!(Error);

/// Boxed, so that a `Result` stays small.
macro_rules! from {
    ($($error:ty => $variant:ident),*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::$variant(Box::new(error))
            }
        }
    )*};
}

from!(
    LoadError => Load,
    PromptError => Prompt,
    eggroll_train::Error => Train,
    eggroll_run::Error => Run
);

impl From<GenerateError> for Error {
    fn from(error: GenerateError) -> Self {
        match error {
            GenerateError::Items(error) => Self::Items(error),
            GenerateError::Sampling(error) => Self::Sampling(error),
        }
    }
}
