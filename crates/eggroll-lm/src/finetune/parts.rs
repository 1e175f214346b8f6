//! The scores of parts, and their rows.

use super::Finetune;
use super::episodes::Played;
use crate::error::Error;
use crate::items::{Item, Items};
use crate::language_model::Scored;
use crate::reward::{Prompt, Reward};
use crate::rows::CompletionRows;
use crate::sampling::SamplingConfig;
use crate::tunable::Tunable;
use eggroll_train::{Fitness, Population};

impl<M: Tunable> Finetune<M> {
    /// The scores of all tokens of completions that all members are given, if the model has to learn from each. A token's rows are the rows
    /// that predict it.
    pub(super) fn token_scores(
        &self,
        population: &Population,
        items: Items,
        scored: &[Vec<Scored>],
    ) -> Option<Fitness> {
        let Items::Shared(items) = items else { return None };
        let tokens = items.iter().map(|item| item.completion().len()).sum();
        if !population.credit().projects(tokens) {
            return None;
        }
        population.note_rows(
            CompletionRows::new(self.host(), &population.perturbation().table, items).by_token(&population.device()),
        );
        let of_member = |items: &Vec<Scored>| items.iter().flat_map(|item| item.log_probabilities.clone()).collect();
        Some(of_parts(&scored.iter().map(of_member).collect::<Vec<_>>()))
    }

    /// The scores of all prompts, if the model has to learn from each. A prompt's rows are the rows from which the model without noise
    /// writes its answer, or plays the first of its episodes.
    pub(super) fn prompt_scores(
        &self,
        population: &Population,
        (reward, prompts, items): (&dyn Reward, &[Prompt], &[Item]),
        sampling: &SamplingConfig,
        scores: &[Vec<f32>],
    ) -> Result<Option<Fitness>, Error> {
        if !population.credit().projects(prompts.len()) {
            return Ok(None);
        }
        let one = sampling.clone().with_answers(1, 1);
        let first = |(place, item): (usize, &Item)| item.clone().with_draws((place * sampling.answers) as u32);
        let items: Vec<Item> = items.iter().enumerate().map(first).collect();
        let played = self.play_alone(reward, prompts, &items, &one)?;
        // With an arbitrary last token, which is not read.
        let answered = |(item, played): (&Item, &Played)| {
            Item::new(item.prompt(), &[&played.tokens[item.prompt().len()..], &[0]].concat())
        };
        let items: Vec<Item> = items.iter().zip(&played).map(answered).collect();
        population.note_rows(
            CompletionRows::new(self.host(), &population.perturbation().table, &items).by_item(&population.device()),
        );
        Ok(Some(of_parts(scores)))
    }
}

/// Scores of each member's parts as `[parts, members]`.
fn of_parts(scores: &[Vec<f32>]) -> Fitness {
    let parts = scores.first().map_or(0, Vec::len);
    let values: Vec<f32> = (0..parts).flat_map(|part| scores.iter().map(move |of| of[part])).collect();
    Fitness::from(values).with_tasks(parts)
}
