//! Models that score and continue texts, on the host or on their device.

use crate::items::{Items, TokenLimits};
use crate::sampling::SamplingConfig;
use eggroll_train::Population;

/// A model's score of a completion, read all at once (teacher forcing).
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

/// A model's continuation of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The tokens, without the one that ended them.
    pub tokens: Vec<u32>,
    /// Whether a stop token ended them, rather than the limit.
    pub stopped: bool,
    /// Whether all logits had probabilities. Logits that are NaN or +∞, or all −∞, have none and end the text.
    pub finite: bool,
}

/// A language model that runs for all members of a population together: every [`Decoder`](crate::Decoder) on the cores of the host, [`Llama`](crate::Llama) on
/// its device.
///
/// [`score_population`](crate::score_population) and related functions check their arguments and call these methods.
pub trait LanguageModel: Sync {
    /// Limits of its input.
    fn limits(&self) -> TokenLimits;

    /// Scores valid items, `[members][items]`; without a population, one member without noise.
    fn scores(&self, population: Option<&Population>, items: Items) -> Vec<Vec<Scored>>;

    /// Continues valid prompts, `[members][prompts]`; without a population, one member without noise.
    fn texts(&self, population: Option<&Population>, prompts: Items, sampling: &SamplingConfig) -> Vec<Vec<Generated>>;
}
