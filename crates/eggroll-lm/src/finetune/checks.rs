//! Data that are checked before the first step.

use super::Finetune;
use crate::causal::CausalModel;
use crate::error::Error;
use crate::items::{Item, Items, ItemsError};
use crate::reward::{Prompt, Reward};
use crate::sampling::SamplingConfig;
use crate::task::{SftExample, TaskError};

impl<M: CausalModel> Finetune<M> {
    /// The items of examples, as [`item`](Self::item) makes them, all [checked](Self::check_items): steps take a few at a time, and would
    /// find the first that does not fit after hours.
    ///
    /// # Errors
    ///
    /// [`TaskError::Item`] with the line of the first that cannot be scored, [`Error::Load`] if the tokenizer fails.
    pub fn items(&self, examples: &[SftExample]) -> Result<Vec<Item>, Error> {
        let made = examples.iter().map(|example| self.item(&example.prompt, &example.completion));
        let items = made.collect::<Result<Vec<_>, _>>()?;
        let line = |error: &ItemsError| examples.get(error.item()?).map(|example| example.line);
        match Items::Shared(&items).check_completions(self.host(), 2) {
            Ok(()) => Ok(items),
            Err(source) => match line(&source) {
                Some(line) => Err(TaskError::Item { line, source }.into()),
                None => Err(source.into()),
            },
        }
    }

    /// Refuses items that cannot be scored: without tokens, longer than the context, or of another vocabulary.
    ///
    /// # Errors
    ///
    /// [`Error::Items`] with the first.
    pub fn check_items(&self, items: &[Item]) -> Result<(), Error> {
        Ok(Items::Shared(items).check_completions(self.host(), 2)?)
    }

    /// Refuses prompts that [`learn_from`](Self::learn_from) would refuse: without tokens, longer than the context with the tokens that are to
    /// be generated, or with facts that the reward cannot use.
    ///
    /// # Errors
    ///
    /// [`Error::Items`] and [`Error::Prompt`] with the first, [`Error::Sampling`] for invalid settings, [`Error::Load`] if the tokenizer fails.
    pub fn check_prompts<R: Reward + ?Sized>(
        &self,
        reward: &R,
        prompts: &[Prompt],
        sampling: &SamplingConfig,
    ) -> Result<(), Error> {
        prompts.iter().try_for_each(|prompt| reward.check(prompt))?;
        sampling.validate()?;
        Ok(Items::Shared(&self.prompts(prompts)?).check_prompts(self.host(), 2, sampling.max_tokens)?)
    }
}
