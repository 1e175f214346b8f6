//! Prompts and patterns that a reward refuses.

/// Why a reward refuses a prompt.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// No reference.
    #[error("the prompt {prompt:?} has no reference, and its reward needs one: add it by Prompt::with_reference")]
    NoReference {
        /// The start of the prompt.
        prompt: String,
    },
    /// No fact of that name.
    #[error("the prompt {prompt:?} has no fact `{name}`, and its reward needs it: add it by Prompt::with_fact")]
    NoFact {
        /// The start of the prompt.
        prompt: String,
        /// The name of the fact.
        name: String,
    },
    /// A fact of another type, or with a value that the reward cannot use.
    #[error("the fact `{name}` of the prompt {prompt:?} is {found}: expected {expected}")]
    Fact {
        /// The start of the prompt.
        prompt: String,
        /// The name of the fact.
        name: String,
        /// Its value.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// The error of a user's reward.
    #[error("{0}")]
    Other(String),
}

eggroll_core::debug_is_message!(PromptError);

/// A regular expression that is not valid.
#[derive(Clone, PartialEq, thiserror::Error)]
#[error("the pattern {pattern:?} is not valid: {reason}")]
pub struct PatternError {
    /// The pattern.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
}

eggroll_core::debug_is_message!(PatternError);
