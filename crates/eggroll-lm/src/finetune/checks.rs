//! Checks of data before the first step.

use super::Finetune;
use crate::error::Error;
use crate::items::{Item, Items, ItemsError};
use crate::reward::{Prompt, Reward};
use crate::sampling::SamplingConfig;
use crate::tunable::Tunable;

impl<M: Tunable> Finetune<M> {
    /// Refuses items that cannot be scored: without tokens, longer than the context, or of another vocabulary. Steps
    /// take a few items at a time, and might fail only after hours.
    ///
    /// # Errors
    ///
    /// The error of the first such item; [`ItemsError::item`] is its position.
    pub fn check_items(&self, items: &[Item]) -> Result<(), ItemsError> {
        Items::Shared(items).check_completions(self.runner().limits(), 2)
    }

    /// Refuses prompts that [`learn_from`](Self::learn_from) would refuse: without tokens, longer than the context
    /// together with the tokens to generate, or with facts that the reward cannot use.
    ///
    /// # Errors
    ///
    /// [`Error::Items`] and [`Error::Prompt`] with the first, [`Error::Sampling`] for invalid settings, [`Error::Load`]
    /// if the tokenizer fails.
    pub fn check_prompts<R: Reward + ?Sized>(
        &self,
        reward: &R,
        prompts: &[Prompt],
        sampling: &SamplingConfig,
    ) -> Result<(), Error> {
        prompts.iter().try_for_each(|prompt| reward.check(prompt))?;
        sampling.validate()?;
        Ok(Items::Shared(&self.prompts(prompts)?).check_prompts(self.runner().limits(), 2, sampling.max_tokens)?)
    }
}
