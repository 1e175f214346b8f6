//! Episodes: a model's answers to a prompt and to the program's replies.

use super::Finetune;
use crate::error::Error;
use crate::generation::generate;
use crate::items::{Item, ItemsError};
use crate::language_model::Generated;
use crate::reward::{Prompt, Reward};
use crate::sampling::SamplingConfig;
use crate::tunable::Tunable;
use eggroll_core::scope;
use rayon::prelude::*;

/// A model's answers and a program's replies to them.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// Answers of the model and replies of the program, one after the other; the first and the last are the model's.
    pub turns: Vec<String>,
    /// Its score; NaN if the model's logits were not finite.
    pub score: f32,
}

/// An episode in progress.
pub(super) struct Played {
    /// The prompt, and all answers and replies.
    pub tokens: Vec<u32>,
    /// Tokens that were read and written in all turns, a context counted in each.
    pub read: usize,
    /// Whether the model ended its last answer, and not the limit.
    pub stopped: bool,
    /// Whether all logits were finite. A broken text gets no score: a short text might get a high one.
    finite: bool,
    /// Number of its draws.
    number: u32,
    turns: Vec<String>,
    /// Whether the model has to answer.
    open: bool,
}

impl Played {
    fn of(prompt: &Item, number: u32) -> Self {
        let tokens = prompt.prompt().to_vec();
        Self { tokens, read: 0, stopped: false, finite: true, number, turns: Vec::new(), open: true }
    }

    pub fn score(&self, prompt: &Prompt, reward: &dyn Reward) -> f32 {
        if self.finite { reward.score_episode(prompt, &self.turns) } else { f32::NAN }
    }
}

impl<M: Tunable> Finetune<M> {
    /// Plays episodes with the model without noise: it answers the prompts, and the [replies](Reward::reply) to its answers. Each prompt is played
    /// [`answers`](SamplingConfig::answers) times: `[prompts][answers]`.
    ///
    /// # Errors
    ///
    /// As [`learn_from`](Self::learn_from).
    pub fn play(
        &self,
        reward: &dyn Reward,
        prompts: &[Prompt],
        sampling: &SamplingConfig,
    ) -> Result<Vec<Vec<Episode>>, Error> {
        prompts.iter().try_for_each(|prompt| reward.check(prompt))?;
        let played = self.play_alone(reward, prompts, &self.prompts(prompts)?, &self.stopping(sampling))?;
        let of_prompt = |(prompt, played): (&Prompt, &[Played])| {
            let episode =
                |played: &Played| Episode { turns: played.turns.clone(), score: played.score(prompt, reward) };
            played.iter().map(episode).collect()
        };
        Ok(prompts.iter().zip(played.chunks(sampling.answers)).map(of_prompt).collect())
    }

    /// All episodes of the model without noise.
    pub(super) fn play_alone(
        &self,
        reward: &dyn Reward,
        prompts: &[Prompt],
        items: &[Item],
        sampling: &SamplingConfig,
    ) -> Result<Vec<Played>, Error> {
        let played = self.play_members(1, reward, prompts, items, sampling, |asked, sampling| {
            Ok(vec![generate(self.runner(), &asked[0], sampling)?])
        })?;
        Ok(played.into_iter().flatten().collect())
    }

    /// All episodes of all members: `[members][prompts · answers]`. `write` continues the contexts of each member.
    pub(super) fn play_members(
        &self,
        members: usize,
        reward: &dyn Reward,
        prompts: &[Prompt],
        items: &[Item],
        sampling: &SamplingConfig,
        write: impl Fn(&[Vec<Item>], &SamplingConfig) -> Result<Vec<Vec<Generated>>, Error>,
    ) -> Result<Vec<Vec<Played>>, Error> {
        sampling.validate()?;
        if items.is_empty() {
            return Err(ItemsError::Empty.into());
        }
        let of_member = |_| {
            let of_item = |(place, item): (usize, &Item)| {
                let first = item.draws(place * sampling.answers);
                (0..sampling.answers).map(|answer| Played::of(item, first + answer as u32)).collect::<Vec<_>>()
            };
            items.iter().enumerate().flat_map(of_item).collect::<Vec<_>>()
        };
        let mut all: Vec<Vec<Played>> = (0..members).map(of_member).collect();
        let is_open = |played: &&Played| played.open;
        for turn in 0.. {
            // An episode has its own draws, whichever others are still open.
            let context = |played: &Played| Item::prompt_only(&played.tokens).with_draws(played.number);
            let asked: Vec<Vec<Item>> =
                all.iter().map(|played| played.iter().filter(is_open).map(context).collect()).collect();
            if asked.iter().all(Vec::is_empty) {
                break;
            }
            let written = write(&asked, &sampling.of_turn(turn))?;
            let prompts = || prompts.iter().flat_map(|prompt| std::iter::repeat_n(prompt, sampling.answers));
            scope::suspended(|| {
                all.par_iter_mut().zip(&written).try_for_each(|(played, written)| {
                    let open = played.iter_mut().zip(prompts()).filter(|(played, _)| played.open);
                    let mut turns = open.zip(written);
                    turns
                        .try_for_each(|((played, prompt), text)| self.take_turn(played, prompt, text, reward, sampling))
                })
            })?;
        }
        Ok(all)
    }

    /// Adds an answer, and the program's reply to it.
    fn take_turn(
        &self,
        played: &mut Played,
        prompt: &Prompt,
        text: &Generated,
        reward: &dyn Reward,
        sampling: &SamplingConfig,
    ) -> Result<(), Error> {
        played.read += played.tokens.len() + text.tokens.len();
        played.turns.push(self.tokenizer.decode_after(&played.tokens, &text.tokens)?);
        played.tokens.extend(&text.tokens);
        (played.stopped, played.finite) = (text.stopped, text.finite);
        played.open = false;
        if !text.finite {
            return Ok(());
        }
        if let Some(reply) = reward.reply(prompt, &played.turns) {
            let tokens = self.tokenizer.encode(&reply)?;
            let needed = played.tokens.len() + tokens.len() + sampling.max_tokens;
            if !tokens.is_empty() && needed <= self.runner().limits().context {
                played.tokens.extend(tokens);
                played.turns.push(reply);
                played.open = true;
            }
        }
        Ok(())
    }
}
