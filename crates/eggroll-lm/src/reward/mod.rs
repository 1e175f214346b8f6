//! Rewards of language models (also called verifiers, graders or scoring functions): from a prompt and a completion to
//! a number.
//!
//! Evolution strategies need no gradient of a reward, so any Rust function will do:
//!
//! ```
//! use eggroll_lm::reward::{Prompt, Reward};
//!
//! let shouting = |_: &Prompt, completion: &str| {
//!     let letters = completion.chars().filter(|letter| letter.is_alphabetic()).count().max(1);
//!     completion.chars().filter(|letter| letter.is_uppercase()).count() as f32 / letters as f32
//! };
//! assert_eq!(shouting.score(&Prompt::new("Are you there?"), "YES, here"), 3.0 / 7.0);
//! ```

mod error;
mod exact_match;
mod program;
mod prompt;
mod regex_match;

pub use error::{PatternError, PromptError};
pub use exact_match::ExactMatch;
pub use program::RewardProgram;
pub use prompt::Prompt;
pub use regex_match::RegexMatch;

/// A reward: implement [`score`](Self::score), or write a closure `|prompt: &Prompt, completion: &str| -> f32`.
///
/// # Example
///
/// ```
/// use eggroll_lm::reward::{Prompt, PromptError, Reward};
///
/// /// The share of the reference's words that the completion has.
/// struct Recall;
///
/// impl Reward for Recall {
///     fn score(&self, prompt: &Prompt, completion: &str) -> f32 {
///         let words: Vec<&str> = prompt.reference.as_deref().unwrap_or("").split_whitespace().collect();
///         let found = words.iter().filter(|word| completion.contains(*word)).count();
///         found as f32 / words.len().max(1) as f32
///     }
///
///     fn check(&self, prompt: &Prompt) -> Result<(), PromptError> {
///         prompt.expect_reference().map(|_| ())
///     }
/// }
///
/// let prompt = Prompt::new("Name the primary colors.").with_reference("red yellow blue");
/// assert_eq!(Recall.score(&prompt, "red and green"), 1.0 / 3.0);
/// assert!(Recall.check(&Prompt::new("Name a color.")).is_err());
/// ```
pub trait Reward: Sync {
    /// The score of a completion, larger is better: a finite number. NaN if the completion cannot be graded, for
    /// example because a called program fails: the member then ranks with the worst of the step.
    ///
    /// `completion` is what the model wrote, without the prompt; [`Prompt::reply`] adds the [opening](Prompt::opening)
    /// that the prompt gave.
    ///
    /// # Panics
    ///
    /// The rewards of this crate panic if [`check`](Self::check) refuses the prompt.
    fn score(&self, prompt: &Prompt, completion: &str) -> f32;

    /// The program's reply to the model's latest answer, which the model answers in turn; `None`, the default, ends the episode. `turns` are the model's
    /// answers and the program's replies, alternating: the first and the last are the model's. A reply ends the model's turn and begins the next one, with all
    /// control tokens of a chat.
    ///
    /// An episode also ends if the next answer might not fit into the model's context.
    fn reply(&self, prompt: &Prompt, turns: &[String]) -> Option<String> {
        let _ = (prompt, turns);
        None
    }

    /// The score of an episode with turns as in [`reply`](Self::reply); by default the score of the last answer.
    fn score_episode(&self, prompt: &Prompt, turns: &[String]) -> f32 {
        self.score(prompt, turns.last().map_or("", String::as_str))
    }

    /// Checks that the reward can grade replies to this prompt; call it for every prompt before training.
    ///
    /// # Errors
    ///
    /// [`PromptError`] if the prompt has no reference that the reward needs, or no facts.
    fn check(&self, prompt: &Prompt) -> Result<(), PromptError> {
        let _ = prompt;
        Ok(())
    }
}

impl<F: Fn(&Prompt, &str) -> f32 + Sync> Reward for F {
    fn score(&self, prompt: &Prompt, completion: &str) -> f32 {
        self(prompt, completion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closures_and_objects_are_rewards() {
        let length = |_: &Prompt, completion: &str| completion.len() as f32;
        let object: &dyn Reward = &length;
        assert_eq!(object.score(&Prompt::new("Name?"), "four"), 4.0);
        assert_eq!(object.check(&Prompt::new("")), Ok(()));
    }
}
