//! Questions with an answer of one word, and a reward for replies as long as that word.

use super::{Grade, GradedReward, Splits};
use eggroll::lm::reward::{Prompt, PromptError, Reward};

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

/// The difference of lengths that scores 0.
const LONGEST: usize = 2000;

/// The questions, without a chat template: 2 to train on, which dev has too, and 8 to test with. The test tells a
/// trained model from an untrained one, and no finer.
pub fn prompts() -> Splits<Prompt> {
    let prompts = |questions: &[(&str, &str)]| -> Vec<Prompt> {
        questions.iter().map(|(question, answer)| Prompt::new(*question).with_reference(*answer)).collect()
    };
    Splits { train: vec![prompts(&TRAIN)], dev: prompts(&TRAIN), test: prompts(&TEST) }
}

/// How near the completion's length is to that of the reference: with `R = −|characters(completion) −
/// characters(reference)|`, held above −2000, the score is `1 + R/2000`, in \[0, 1\].
///
/// Any text of the right length scores 1. So [`Grade::correct`] says whether the words of the reference occur in the
/// completion, next to each other and in this order; upper and lower case are the same. It has no part in the score.
///
/// # References
///
/// Qiu et al., *Evolution Strategies at Scale: LLM Fine-Tuning Beyond Reinforcement Learning* (2025),
/// [arXiv:2509.24372](https://arxiv.org/abs/2509.24372).
#[derive(Clone, Copy, Debug)]
pub struct Conciseness;

impl Reward for Conciseness {
    fn score(&self, prompt: &Prompt, completion: &str) -> f32 {
        self.grade(prompt, completion).score
    }

    fn check(&self, prompt: &Prompt) -> Result<(), PromptError> {
        prompt.expect_reference().map(|_| ())
    }
}

impl GradedReward for Conciseness {
    fn grade(&self, prompt: &Prompt, completion: &str) -> Grade {
        let reference = prompt.expect_reference().unwrap_or_else(|error| panic!("{error}"));
        let difference = completion.chars().count().abs_diff(reference.chars().count()).min(LONGEST);
        let score = 1.0 - difference as f32 / LONGEST as f32;
        Grade { score, correct: says(completion, reference), well_formed: None }
    }
}

/// Whether the words of `reference` are a run of the words of `completion`.
fn says(completion: &str, reference: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|letter: char| !letter.is_alphanumeric());
        words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    };
    let (said, wanted) = (words(completion), words(reference));
    wanted.is_empty() || said.windows(wanted.len()).any(|run| run == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        let prompt =
            Prompt::new("A question whose length must not matter").with_opening("It is ").with_reference("Café");
        for (completion, score, correct) in [
            ("Café", 1.0, true),
            ("Thé!", 1.0, false),
            ("", 1.0 - 4.0 / 2000.0, false),
            ("a café.", 1.0 - 3.0 / 2000.0, true),
            ("Cafés", 1.0 - 1.0 / 2000.0, false),
            (&"x".repeat(1004), 0.5, false),
            (&"x".repeat(9999), 0.0, false),
        ] {
            let grade = Conciseness.grade(&prompt, completion);
            assert_eq!((grade.score, grade.correct), (score, correct), "{completion:?}");
        }
    }

    #[test]
    fn words_are_compared_as_a_run() {
        assert!(says("It was William Shakespeare, I think", "william shakespeare"));
        assert!(!says("William is not Shakespeare", "William Shakespeare"));
        assert!(!says("184", "84"));
    }
}
