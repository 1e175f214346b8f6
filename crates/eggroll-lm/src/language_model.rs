//! What scores and continues texts: a model on the host, or one on its device.

use crate::items::{Items, TokenLimits};
use crate::sampling::SamplingConfig;
use eggroll_train::Population;

/// A completion as a model judges it, read all at once (teacher forcing).
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// `ln p(token | all before)` of every token of the completion.
    pub log_probabilities: Vec<f32>,
    /// Whether every token of the completion is the most probable one of the whole vocabulary.
    pub exact: bool,
}

impl Scored {
    /// `Σ_t ln p(token_t | all before)` over the tokens of the completion.
    pub fn log_probability(&self) -> f32 {
        self.log_probabilities.iter().sum()
    }

    /// Mean of `ln p` over the tokens of the completion.
    pub fn mean_log_probability(&self) -> f32 {
        self.log_probability() / self.log_probabilities.len() as f32
    }
}

/// What a model wrote after a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The tokens, without the one that ended them.
    pub tokens: Vec<u32>,
    /// Whether a stop token ended them, and not the limit.
    pub stopped: bool,
    /// Whether all logits had probabilities. Those that are NaN or +∞, or all −∞, end the text: the next token after these has none.
    pub finite: bool,
}

/// A language model that runs for all members of a population together: every [`Decoder`](crate::Decoder) on the cores of the host, [`Llama`](crate::Llama) on
/// its device.
///
/// [`score_population`](crate::score_population) and the functions next to it check what they are given and call these methods.
pub trait LanguageModel: Sync {
    /// What it can read.
    fn limits(&self) -> TokenLimits;

    /// Scores items that fit, `[members][items]`; without a population those of one member that has no noise.
    fn scores(&self, population: Option<&Population>, items: Items) -> Vec<Vec<Scored>>;

    /// Continues prompts that fit, `[members][prompts]`; without a population those of one member that has no noise.
    fn texts(&self, population: Option<&Population>, prompts: Items, sampling: &SamplingConfig) -> Vec<Vec<Generated>>;
}
