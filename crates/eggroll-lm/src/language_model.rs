//! What scores and continues texts: a model on the host, or one on its device.

use crate::generation::{self, Generated};
use crate::host::Decoder;
use crate::items::Items;
use crate::sampling::SamplingConfig;
use crate::scoring::{self, Scored};
use eggroll_train::Population;

/// What a model can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenLimits {
    /// Tokens that it knows.
    pub vocabulary: usize,
    /// The longest sequence, in tokens.
    pub context: usize,
}

/// A language model that runs for all members of a population together: every [`Decoder`] on the cores of the host, [`Llama`](crate::Llama) on
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

impl<D: Decoder> LanguageModel for D {
    fn limits(&self) -> TokenLimits {
        TokenLimits { vocabulary: self.vocab_size(), context: self.context_length() }
    }

    #[track_caller]
    fn scores(&self, population: Option<&Population>, items: Items) -> Vec<Vec<Scored>> {
        match population {
            Some(population) => scoring::of_members(self, population, items),
            None => vec![scoring::without_noise(self, items.shared())],
        }
    }

    #[track_caller]
    fn texts(&self, population: Option<&Population>, prompts: Items, sampling: &SamplingConfig) -> Vec<Vec<Generated>> {
        match population {
            Some(population) => generation::of_members(self, population, prompts, sampling),
            None => vec![generation::without_noise(self, prompts.shared(), sampling)],
        }
    }
}
