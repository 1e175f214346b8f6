//! Steps.

use super::episodes::Played;
use super::{Finetune, StepReport};
use crate::error::Error;
use crate::host::Changed;
use crate::items::{Item, Items};
use crate::language_model::Scored;
use crate::reward::{Prompt, Reward};
use crate::sampling::SamplingConfig;
use crate::tunable::Tunable;
use eggroll_core::scope;
use eggroll_train::{Fitness, GenerationReport, Population};
use rayon::prelude::*;
use std::ops::Range;
use std::time::Instant;

/// The data of a generation, and the scoring of the members' answers.
pub enum Lesson<'a> {
    /// Given completions: the score of a member is the mean log-probability of their tokens (supervised fine-tuning, SFT). Nothing is
    /// generated, so these are the cheapest scores.
    Completions(Items<'a>),
    /// Prompts that all members continue, and a reward of their answers, in one turn or in more if the reward [replies](Reward::reply).
    Prompts {
        /// The prompts.
        prompts: &'a [Prompt],
        /// The reward.
        reward: &'a dyn Reward,
        /// How answers are written.
        sampling: &'a SamplingConfig,
    },
}

/// The scored answers of members.
pub(super) struct Answers {
    /// The score of each member.
    pub fitness: Fitness,
    /// Statistics of all of them.
    pub asked: Asked,
}

/// A report's statistics of the members asked here; empty if others have asked all.
#[derive(Clone, Copy, Default)]
pub(super) struct Asked {
    tokens: usize,
    tied_items: f64,
    disagreement: f64,
    truncated: Option<f64>,
}

impl Answers {
    /// From the scores of each member's items, in groups with the same items.
    fn new(scores: &[Vec<f32>], groups: usize, tokens: usize, truncated: Option<f64>) -> Self {
        let (tied_items, disagreement) = spread(scores, groups);
        let asked = Asked { tokens, tied_items, disagreement, truncated };
        Self { fitness: Fitness::from(member_scores(scores, groups)), asked }
    }
}

impl Asked {
    /// With other members of the generation: tokens add up, and shares count by their tokens.
    #[cfg(feature = "learner")]
    pub fn joined(self, others: Self) -> Self {
        let tokens = self.tokens + others.tokens;
        let [own, other] = [self.tokens, others.tokens].map(|part| part as f64 / tokens.max(1) as f64);
        Self {
            tokens,
            tied_items: own * self.tied_items + other * others.tied_items,
            disagreement: own * self.disagreement + other * others.disagreement,
            truncated: self.truncated.zip(others.truncated).map(|(a, b)| own * a + other * b),
        }
    }

    /// The report of the step that follows from them.
    pub fn report(self, generation: GenerationReport, seconds: f64, changed: Changed) -> StepReport {
        let Self { tokens, tied_items, disagreement, truncated } = self;
        StepReport { generation, seconds, tokens, tied_items, disagreement, truncated, changed }
    }
}

impl<M: Tunable> Finetune<M> {
    /// A step towards given completions ([`Lesson::Completions`]).
    ///
    /// # Errors
    ///
    /// [`Error::Items`] for items that do not fit the model or the population; [`Error::Run`] if the replay log cannot be written, after
    /// the step was made.
    pub fn learn(&mut self, items: Items) -> Result<StepReport, Error> {
        self.step(&Lesson::Completions(items))
    }

    /// A step towards a higher reward of the members' answers to the prompts ([`Lesson::Prompts`]).
    ///
    /// # Errors
    ///
    /// - [`Error::Prompt`] for a prompt that the reward cannot grade,
    /// - [`Error::Items`] for a prompt that does not fit the model,
    /// - [`Error::Sampling`] for invalid settings,
    /// - [`Error::Load`] if the tokenizer fails,
    /// - [`Error::Run`] if the replay log cannot be written, after the step was made.
    pub fn learn_from(
        &mut self,
        reward: &dyn Reward,
        prompts: &[Prompt],
        sampling: &SamplingConfig,
    ) -> Result<StepReport, Error> {
        self.step(&Lesson::Prompts { prompts, reward, sampling })
    }

    /// A step on a lesson.
    ///
    /// # Errors
    ///
    /// As [`learn`](Self::learn) and [`learn_from`](Self::learn_from).
    pub fn step(&mut self, lesson: &Lesson) -> Result<StepReport, Error> {
        let start = Instant::now();
        let population = self.strategy.ask();
        let answers = self.ask_members(&population, lesson)?;
        let fitness = answers.fitness.clone();
        let (generation, changed) = self.model.tell(&mut self.host, &mut self.strategy, population, fitness)?;
        self.steps = self.strategy.generation();
        if let Some(log) = &mut self.log {
            log.append(&self.strategy, &answers.fitness)?;
            log.sync()?;
        }
        Ok(answers.asked.report(generation, start.elapsed().as_secs_f64(), changed))
    }

    /// Asks some members of a generation whose scores are logged; all of them if members are compared within groups.
    pub(super) fn ask_some(
        &self,
        population: &Population,
        members: Range<usize>,
        lesson: &Lesson,
    ) -> Result<Answers, Error> {
        match lesson {
            Lesson::Completions(Items::Groups(_) | Items::Each(_)) => self.ask_members(population, lesson),
            _ => self.ask_members(&population.slice(members), lesson),
        }
    }

    /// Asks the members of a population.
    pub(super) fn ask_members(&self, population: &Population, lesson: &Lesson) -> Result<Answers, Error> {
        match *lesson {
            Lesson::Completions(items) => {
                let scored = self.score_members(population, items)?;
                let scores = scored.iter().map(|items| items.iter().map(Scored::mean_log_probability).collect());
                let of_member = |(_, items): (usize, &[Item])| items.iter().map(Item::tokens).sum::<usize>();
                let tokens = items.of_members(&population.range(), population).into_iter().map(of_member).sum();
                let answers = Answers::new(&scores.collect::<Vec<_>>(), items.groups(), tokens, None);
                match self.token_scores(population, items, &scored) {
                    Some(fitness) => Ok(Answers { fitness, ..answers }),
                    None => Ok(answers),
                }
            }
            Lesson::Prompts { prompts, reward, sampling } => self.reward_members(population, prompts, reward, sampling),
        }
    }

    fn reward_members(
        &self,
        population: &Population,
        prompts: &[Prompt],
        reward: &dyn Reward,
        sampling: &SamplingConfig,
    ) -> Result<Answers, Error> {
        prompts.iter().try_for_each(|prompt| reward.check(prompt))?;
        let (items, sampling) = (self.prompts(prompts)?, &self.stopping(sampling));
        let write = |asked: &[Vec<Item>], sampling: &SamplingConfig| {
            self.generate_members(population, Items::Each(asked), sampling)
        };
        let played = self.play_members(population.range().len(), reward, prompts, &items, sampling, write)?;
        let of_prompt = |(prompt, played): (&Prompt, &[Played])| {
            let scores: Vec<f32> = played.iter().map(|played| played.score(prompt, reward)).collect();
            sampling.prompt_score(&scores)
        };
        let of_member =
            |played: &Vec<Played>| prompts.iter().zip(played.chunks(sampling.answers)).map(of_prompt).collect();
        let scores: Vec<Vec<f32>> = scope::suspended(|| played.par_iter().map(of_member).collect());
        let all = || played.iter().flatten();
        let cut = all().filter(|played| !played.stopped).count() as f64 / all().count() as f64;
        let answers = Answers::new(&scores, 1, all().map(|played| played.read).sum(), Some(cut));
        Ok(match self.prompt_scores(population, (reward, prompts, &items), sampling, &scores)? {
            Some(fitness) => Answers { fitness, ..answers },
            None => answers,
        })
    }
}

/// The score of each member: the mean over its items of its score, in several groups minus the mean of all members with that item. A NaN score makes the
/// member's score NaN, and so does having no item.
fn member_scores(scores: &[Vec<f32>], groups: usize) -> Vec<f32> {
    let each = scores.len() / groups;
    let of_group = |members: &[Vec<f32>]| {
        let mean = |item: usize| {
            let scores = members.iter().filter_map(|scores| scores.get(item));
            let finite: Vec<f64> = scores.map(|score| f64::from(*score)).filter(|score| score.is_finite()).collect();
            finite.iter().sum::<f64>() / finite.len().max(1) as f64
        };
        let items = members.iter().map(Vec::len).max().unwrap_or(0);
        // With one group the common mean is kept, for reports; lists of members may be of different lengths.
        let means: Vec<f64> = (0..items).map(|item| if groups == 1 { 0.0 } else { mean(item) }).collect();
        let member = |scores: &Vec<f32>| {
            let sum: f64 = scores.iter().zip(&means).map(|(score, mean)| f64::from(*score) - mean).sum();
            (sum / scores.len() as f64) as f32
        };
        members.iter().map(member).collect::<Vec<f32>>()
    };
    scores.chunks(each.max(1)).flat_map(of_group).collect()
}

/// Share of items with equal scores of all members in a group, and share of pairs of opposite members with different scores for an
/// item.
fn spread(scores: &[Vec<f32>], groups: usize) -> (f64, f64) {
    let each = (scores.len() / groups).max(1);
    let (mut tied, mut items) = (0, 0);
    for members in scores.chunks(each) {
        for item in 0..members.first().map_or(0, Vec::len) {
            items += 1;
            tied += usize::from(members.iter().all(|scores| scores.get(item) == Some(&members[0][item])));
        }
    }
    let (mut differ, mut pairs) = (0, 0);
    for pair in scores.chunks_exact(2) {
        pairs += pair[0].len();
        differ += pair[0].iter().zip(&pair[1]).filter(|(a, b)| a != b).count();
    }
    (f64::from(tied as u32) / items.max(1) as f64, f64::from(differ as u32) / pairs.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_compared_with_themselves() {
        let scores = vec![vec![1.0, 3.0], vec![3.0, 5.0], vec![10.0], vec![30.0]];
        assert_eq!(member_scores(&scores, 2), [-1.0, 1.0, -10.0, 10.0]);
        assert_eq!(member_scores(&scores[..2], 1), [2.0, 4.0]);
        // Lists of different lengths, in one group.
        assert_eq!(member_scores(&[vec![1.0], vec![3.0, 5.0]], 1), [1.0, 4.0]);
        assert_eq!(member_scores(&[vec![3.0, 5.0], vec![1.0]], 1), [4.0, 1.0]);
        assert_eq!(spread(&[vec![3.0, 5.0], vec![3.0]], 1), (0.5, 0.0));
        assert!(member_scores(&[vec![], vec![1.0]], 1)[0].is_nan());
        let broken = vec![vec![1.0], vec![f32::NAN]];
        let found = member_scores(&broken, 1);
        assert!(found[0] == 1.0 && found[1].is_nan());
    }

    #[test]
    fn ties_and_disagreement() {
        let scores = vec![vec![1.0, 2.0], vec![1.0, 3.0], vec![1.0, 2.0], vec![1.0, 2.0]];
        assert_eq!(spread(&scores, 1), (0.5, 0.25));
    }
}
