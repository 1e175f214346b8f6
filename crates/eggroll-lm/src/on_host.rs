//! Members on the cores of the host.

use crate::generation;
use crate::host::Decoder;
use crate::items::{Items, TokenLimits};
use crate::language_model::{Generated, LanguageModel, Scored};
use crate::sampling::SamplingConfig;
use crate::scoring;
use eggroll_train::Population;

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
