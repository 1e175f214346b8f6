//! Is a word positive or negative? Asked again if the answer is not one word.

use super::words::Word;
use super::{Grade, GradedReward, Splits, words};
use crate::Failure;
use eggroll::lm::reward::{Prompt, PromptError, Reward};
use std::path::Path;

/// What the program replies to an answer of another form.
pub const REPLY: &str = "Answer with one word, positive or negative.";
/// Words of dev, and of the test: answers take longer than scores.
const HELD_OUT: usize = 64;
const ANSWERS: [&str; 2] = ["negative", "positive"];

/// A prompt for each word of a file, with the splits of [`words`](words::examples), dev and test cut to 64 words. `chat` writes a question in the model's chat format, in which `reply` is
/// [`REPLY`].
///
/// # Errors
///
/// Errors of the file, and of `chat`.
pub fn prompts<E: Into<Failure>>(
    path: &Path,
    chat: impl Fn(String) -> Result<Prompt, E>,
    reply: &str,
) -> Result<Splits<Prompt>, Failure> {
    let prompt = |word: &Word| {
        let question = chat(word.question()).map_err(Into::into)?;
        Ok(question.with_reference(ANSWERS[usize::from(word.is_positive)]).with_fact("reply", reply))
    };
    let Splits { train, mut dev, mut test } = words::words(path)?;
    dev.truncate(HELD_OUT);
    test.truncate(HELD_OUT);
    Splits { train, dev, test }.try_map(|words| words.iter().map(prompt).collect())
}

/// 1 for the right word, 0.25 for the other one; half of that if it comes in the second turn, and 0 without one of both.
#[derive(Clone, Copy, Debug)]
pub struct DialogueReward;

impl DialogueReward {
    fn asked_again(prompt: &Prompt) -> Result<String, PromptError> {
        prompt.fact("reply", "a text")
    }
}

impl Reward for DialogueReward {
    fn score(&self, prompt: &Prompt, completion: &str) -> f32 {
        self.grade(prompt, completion).score
    }

    fn reply(&self, prompt: &Prompt, turns: &[String]) -> Option<String> {
        match turns {
            [first] if word(first).is_none() => {
                Some(Self::asked_again(prompt).unwrap_or_else(|error| panic!("{error}")))
            }
            _ => None,
        }
    }

    fn score_episode(&self, prompt: &Prompt, turns: &[String]) -> f32 {
        self.grade_episode(prompt, turns).score
    }

    fn check(&self, prompt: &Prompt) -> Result<(), PromptError> {
        prompt.expect_reference()?;
        Self::asked_again(prompt).map(|_| ())
    }
}

impl GradedReward for DialogueReward {
    fn grade(&self, prompt: &Prompt, completion: &str) -> Grade {
        self.grade_episode(prompt, &[completion.to_owned()])
    }

    fn grade_episode(&self, prompt: &Prompt, turns: &[String]) -> Grade {
        let right = prompt.expect_reference().unwrap_or_else(|error| panic!("{error}"));
        let answers: Vec<Option<&str>> = turns.iter().step_by(2).map(|answer| word(answer)).collect();
        let last = answers.last().copied().flatten();
        let score = last.map_or(0.0, |word| if word == right { 1.0 } else { 0.25 }) / answers.len().max(1) as f32;
        Grade { score, correct: last == Some(right), well_formed: Some(answers.first().is_some_and(Option::is_some)) }
    }
}

/// The answer, if it is one of both words.
fn word(answer: &str) -> Option<&'static str> {
    let bare = answer.trim().trim_end_matches('.').to_lowercase();
    ANSWERS.into_iter().find(|word| *word == bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_episodes() {
        let prompt = Prompt::new("?").with_reference("positive").with_fact("reply", "<One word.>");
        let reply = |answer: &str| DialogueReward.reply(&prompt, &[answer.to_owned()]);
        assert_eq!(reply("It is positive.").as_deref(), Some("<One word.>"));
        assert_eq!([reply("Positive."), reply(" negative\n")], [const { None }; 2]);
        let twice = |last: &str| ["It is positive.", "<One word.>", last].map(String::from).to_vec();
        assert_eq!(DialogueReward.reply(&prompt, &twice("positive")), None);
        for (turns, score, correct, well_formed) in [
            (vec!["Positive.".to_owned()], 1.0, true, true),
            (vec!["negative".to_owned()], 0.25, false, true),
            (twice("positive"), 0.5, true, false),
            (twice("Negative"), 0.125, false, false),
            (twice("Yes"), 0.0, false, false),
            // The context ended.
            (vec!["It is positive.".to_owned()], 0.0, false, false),
        ] {
            let grade = DialogueReward.grade_episode(&prompt, &turns);
            assert_eq!(grade, Grade { score, correct, well_formed: Some(well_formed) }, "{turns:?}");
        }
        assert!(DialogueReward.check(&Prompt::new("?").with_reference("positive")).is_err());
    }

    #[test]
    fn splits_are_those_of_words() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/words/sentiment.tsv");
        let chat = |question: String| Ok::<_, Failure>(Prompt::new(question));
        let (found, expected) = (prompts(&path, chat, "").expect("reads"), words::examples(&path).expect("reads"));
        for (prompt, example) in found.test.iter().zip(&expected.test) {
            assert_eq!(prompt.reference.as_deref(), Some(example.completion.trim()));
            assert!(example.prompt.contains(&prompt.text()), "{}", prompt.text());
        }
        assert_eq!((found.train.len(), found.test.len()), (2, HELD_OUT));
    }
}
