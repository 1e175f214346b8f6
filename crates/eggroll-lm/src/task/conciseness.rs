//! Questions with short answers.

use super::Split;
use crate::reward::Prompt;

const TRAIN: [(&str, &str); 2] = [("How much is 3 + 5?", "8"), ("Can penguins fly?", "No")];

const TEST: [(&str, &str); 8] = [
    ("Which city is the capital of France?", "Paris"),
    ("How much is 12 times 7?", "84"),
    ("How many days does a week have?", "Seven"),
    ("What is water called once it has frozen?", "Ice"),
    ("Which planet do we live on?", "Earth"),
    ("Which word means the opposite of hot?", "Cold"),
    ("Is a whale a fish?", "No"),
    ("Which color do blue and yellow paint give?", "Green"),
];

/// Questions with an answer of one word, for [`Conciseness`](crate::reward::Conciseness): 2 to train on, 8 to test with, and none of
/// [`Split::Dev`]. The questions are bare; an instruction-tuned model needs its chat template around them
/// ([`Prompt::with_question`]).
///
/// With 8 questions, the test tells a trained model from an untrained one, and no finer.
///
/// # Example
///
/// ```
/// use eggroll_lm::reward::{Conciseness, Reward};
/// use eggroll_lm::task::{Split, conciseness_prompts};
///
/// let prompts = conciseness_prompts(Split::Test);
/// assert_eq!(prompts[0].reference.as_deref(), Some("Paris"));
/// assert_eq!(Conciseness.score(&prompts[0], "Paris"), 1.0);
/// ```
pub fn conciseness_prompts(split: Split) -> Vec<Prompt> {
    let questions: &[(&str, &str)] = match split {
        Split::Train => &TRAIN,
        Split::Dev => &[],
        Split::Test => &TEST,
    };
    questions.iter().map(|(question, answer)| Prompt::new(*question).with_reference(*answer)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_question_is_in_two_splits() {
        let (train, test) = (conciseness_prompts(Split::Train), conciseness_prompts(Split::Test));
        assert_eq!((train.len(), test.len(), conciseness_prompts(Split::Dev).len()), (2, 8, 0));
        assert!(train.iter().all(|prompt| test.iter().all(|other| other.question != prompt.question)));
        assert!(test.iter().all(|prompt| !prompt.reference.as_deref().unwrap().contains(' ')));
    }
}
