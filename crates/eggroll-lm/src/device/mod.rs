//! Members on the device of their model: rows of tensors, in batches over one copy of the weights.
//!
//! A batch runs in the scope of its members, where the model's layers are perturbed. The noise is the same as on the host, and may be of
//! any kind.

mod batches;
mod generation;
mod scoring;

use crate::items::{Items, TokenLimits};
use crate::language_model::{Generated, LanguageModel, Scored};
use crate::llama::Llama;
use crate::sampling::SamplingConfig;
use eggroll_train::Population;

/// On the model's device; on CPUs [`HostLlama`](crate::HostLlama) is many times faster.
impl LanguageModel for Llama {
    fn limits(&self) -> TokenLimits {
        TokenLimits { vocabulary: self.config().vocab_size, context: self.config().context_length }
    }

    #[track_caller]
    fn scores(&self, population: Option<&Population>, items: Items) -> Vec<Vec<Scored>> {
        scoring::scores(self, population, items)
    }

    #[track_caller]
    fn texts(&self, population: Option<&Population>, prompts: Items, sampling: &SamplingConfig) -> Vec<Vec<Generated>> {
        generation::texts(self, population, prompts, sampling)
    }
}
