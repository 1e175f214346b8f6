//! Tasks: prompts with what their rewards need, and examples for likelihood training.
//!
//! | task | prompts | reward |
//! |---|---|---|
//! | [`Countdown`] | generated, split by the problem | [`CountdownReward`](crate::reward::CountdownReward) |
//! | [`Words`] | one for each word of a file | the likelihood of the answer, or [`ExactMatch`](crate::reward::ExactMatch) |
//! | [`conciseness_prompts`] | 10 short questions | [`Conciseness`](crate::reward::Conciseness) |
//! | [`read_prompts`] | a file of JSON lines | your own |
//! | [`SftExample`] | a text or a file of JSON lines | the likelihood of the completion |
//!
//! Train on [`Split::Train`], choose settings and checkpoints on [`Split::Dev`], and report [`Split::Test`], once.

mod conciseness;
mod countdown;
mod distinct;
mod error;
mod lines;
mod random;
mod sft;
mod words;

pub use conciseness::conciseness_prompts;
pub use countdown::{Countdown, CountdownConfig, CountdownProblem, CountdownStyle};
pub use error::TaskError;
pub use lines::{parse_prompts, read_prompts};
pub use sft::SftExample;
pub use words::{Word, Words};

/// What a part of a task's data is for. No part has anything of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// Training.
    Train,
    /// Choice of settings and checkpoints. Also called validation.
    Dev,
    /// The result that is reported.
    Test,
}
