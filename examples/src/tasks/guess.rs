//! A number to be guessed in two turns: after a wrong guess the program says how far it is off.

use super::{Grade, GradedReward, Splits};
use eggroll::lm::reward::{Prompt, PromptError, Reward};

/// The largest number.
const LARGEST: i64 = 20;
/// Numbers of dev and of the test; the other ones are trained on.
const DEV: [i64; 3] = [4, 9, 15];
const TEST: [i64; 6] = [2, 6, 8, 12, 14, 18];

/// What the program asks.
pub const QUESTION: &str = "I think of a whole number from 1 to 20. Guess it. Write only the number.";
/// What it replies to a wrong guess; [`OFF`] stands for how far it is off.
pub const REPLY: &str = "No, it is {off}. Guess again.";
const OFF: &str = "{off}";

/// A prompt for each number from 1 to 20. `question` and `reply` are [`QUESTION`] and [`REPLY`] in the model's chat format.
pub fn prompts(question: &str, reply: &str) -> Splits<Prompt> {
    let prompt = |number| Prompt::new(question).with_fact("number", number).with_fact("reply", reply);
    let trained = |number: &i64| !DEV.contains(number) && !TEST.contains(number);
    Splits {
        train: vec![(1..=LARGEST).filter(trained).map(prompt).collect()],
        dev: DEV.map(prompt).into(),
        test: TEST.map(prompt).into(),
    }
}

/// The mean of both guesses' scores: `1 − |guess − number| / 19`, and 0 without a guess from 1 to 20. A right first guess ends the episode; the second counts as
/// right. An answer's guess is its first number, cut to two digits.
#[derive(Clone, Copy, Debug)]
pub struct GuessReward;

impl GuessReward {
    fn number(prompt: &Prompt) -> Result<i64, PromptError> {
        prompt.fact("number", "a whole number")
    }

    fn frame(prompt: &Prompt) -> Result<String, PromptError> {
        prompt.fact("reply", "a text")
    }
}

impl Reward for GuessReward {
    fn score(&self, prompt: &Prompt, completion: &str) -> f32 {
        self.score_episode(prompt, &[completion.to_owned()])
    }

    fn reply(&self, prompt: &Prompt, turns: &[String]) -> Option<String> {
        let [answer] = turns else { return None };
        let number = Self::number(prompt).unwrap_or_else(|error| panic!("{error}"));
        let frame = Self::frame(prompt).unwrap_or_else(|error| panic!("{error}"));
        match number - guess(answer)? {
            0 => None,
            off if off > 0 => Some(frame.replace(OFF, &format!("{off} more"))),
            off => Some(frame.replace(OFF, &format!("{} less", -off))),
        }
    }

    fn score_episode(&self, prompt: &Prompt, turns: &[String]) -> f32 {
        self.grade_episode(prompt, turns).score
    }

    fn check(&self, prompt: &Prompt) -> Result<(), PromptError> {
        Self::number(prompt)?;
        Self::frame(prompt).map(|_| ())
    }
}

impl GradedReward for GuessReward {
    fn grade(&self, prompt: &Prompt, completion: &str) -> Grade {
        self.grade_episode(prompt, &[completion.to_owned()])
    }

    fn grade_episode(&self, prompt: &Prompt, turns: &[String]) -> Grade {
        let number = Self::number(prompt).unwrap_or_else(|error| panic!("{error}"));
        let guesses: Vec<Option<i64>> = turns.iter().step_by(2).map(|answer| guess(answer)).collect();
        let scores: Vec<f32> = guesses.iter().map(|guess| guess.map_or(0.0, |guess| nearness(guess, number))).collect();
        let first = scores.first().copied().unwrap_or(0.0);
        let last = scores.get(1).copied().unwrap_or(if first == 1.0 { 1.0 } else { 0.0 });
        let well_formed = guesses.iter().all(Option::is_some);
        Grade { score: f32::midpoint(first, last), correct: last == 1.0, well_formed: Some(well_formed) }
    }
}

fn nearness(guess: i64, number: i64) -> f32 {
    1.0 - (guess - number).abs() as f32 / (LARGEST - 1) as f32
}

/// The first number of an answer, cut to two digits, if it is one of the numbers. Uncut, a model that counts would have no score to learn from.
fn guess(answer: &str) -> Option<i64> {
    let digits = answer.split(|letter: char| !letter.is_ascii_digit()).find(|digits| !digits.is_empty())?;
    digits[..digits.len().min(2)].parse().ok().filter(|guess| (1..=LARGEST).contains(guess))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_episodes() {
        let splits = prompts("?", "<No, {off}.>");
        assert_eq!(splits.train[0].len() + splits.dev.len() + splits.test.len(), LARGEST as usize);
        let prompt = &splits.test[1];
        assert_eq!(prompt.fact::<i64>("number", ""), Ok(6));
        let reply = |answer: &str| GuessReward.reply(prompt, &[answer.to_owned()]);
        assert_eq!(reply("Is it 10?").as_deref(), Some("<No, 4 less.>"));
        assert_eq!(reply("5").as_deref(), Some("<No, 1 more.>"));
        assert_eq!([reply("6"), reply("six"), reply("21"), reply("0")], [const { None }; 4]);
        let all = ["5", "<No, 1 more.>", "6"].map(String::from);
        assert_eq!(GuessReward.reply(prompt, &all), None);
        for (turns, score, correct, well_formed) in [
            (&all[..], f32::midpoint(18.0 / 19.0, 1.0), true, true),
            (&["6".to_owned()], 1.0, true, true),
            (&["12345", "<No, 6 less.>", "6"].map(String::from), f32::midpoint(13.0 / 19.0, 1.0), true, true),
            (&["six".to_owned()], 0.0, false, false),
            // The context ended.
            (&["5".to_owned()], 9.0 / 19.0, false, true),
            (&["5", "<No, 1 more.>", "99"].map(String::from), 9.0 / 19.0, false, false),
        ] {
            let grade = GuessReward.grade_episode(prompt, turns);
            assert_eq!(grade, Grade { score, correct, well_formed: Some(well_formed) }, "{turns:?}");
        }
    }
}
