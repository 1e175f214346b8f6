//! Tasks of language models: data, and rewards of what models write.
//!
//! | task | learned from | data |
//! |---|---|---|
//! | [`words`] | the likelihood of the answer | a file of words with their valence |
//! | [`sft`] | the likelihood of the completion | a text, or a file of JSON lines |
//! | [`conciseness`] | a reward: replies as long as the reference | 10 short questions |
//! | [`countdown`] | a reward: an expression with a given value | generated problems |
//! | [`dialogue`] | a reward of two turns: one word, asked again by the program | the file of [`words`] |

mod arithmetic;
pub mod conciseness;
pub mod countdown;
pub mod dialogue;
mod lines;
mod random;
pub mod sft;
pub mod words;

use eggroll::lm::reward::{Prompt, Reward};

/// The data of a task. No part has anything of another, unless the task says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Splits<T> {
    /// Kinds that steps ask in turn, so that none has the upper hand by chance.
    pub train: Vec<Vec<T>>,
    /// For the choice of settings and checkpoints.
    pub dev: Vec<T>,
    /// For the result that is reported.
    pub test: Vec<T>,
}

impl<T> Splits<T> {
    /// The same parts and kinds of something else.
    ///
    /// # Errors
    ///
    /// The first error of `convert`.
    pub fn try_map<U, E>(&self, convert: impl Fn(&[T]) -> Result<Vec<U>, E>) -> Result<Splits<U>, E> {
        let train = self.train.iter().map(|kind| convert(kind)).collect::<Result<_, _>>()?;
        Ok(Splits { train, dev: convert(&self.dev)?, test: convert(&self.test)? })
    }
}

/// A prompt, and the completion that a model learns to give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// What the model reads; empty for text without a prompt.
    pub prompt: String,
    /// What it learns to write; not empty.
    pub completion: String,
    /// Its line in the file, from 1.
    pub line: usize,
}

/// What a reward says of one completion: accuracy and form apart, because a higher score can come from either.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grade {
    /// What training maximizes.
    pub score: f32,
    /// Whether the answer is right, in any form.
    pub correct: bool,
    /// Whether the reply has the form that the task wants, with any answer; `None` if the task wants none.
    pub well_formed: Option<bool>,
}

/// A reward that knows more than a number.
pub trait GradedReward: Reward {
    /// The [score](Reward::score), and what it comes from.
    ///
    /// # Panics
    ///
    /// Panics if [`check`](Reward::check) refuses the prompt.
    fn grade(&self, prompt: &Prompt, completion: &str) -> Grade;

    /// The [score of an episode](Reward::score_episode), and what it comes from; that of the last answer unless it is implemented.
    fn grade_episode(&self, prompt: &Prompt, turns: &[String]) -> Grade {
        self.grade(prompt, turns.last().map_or("", String::as_str))
    }
}
