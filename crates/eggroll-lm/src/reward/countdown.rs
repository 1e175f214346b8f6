//! Arithmetic to a target: correctness, and a little for the form.

use super::arithmetic::evaluate;
use super::{Grade, Prompt, PromptError, Reward};
use num_rational::Ratio;
use serde_json::Value;

const THINK: [&str; 2] = ["<think>", "</think>"];
const ANSWER: [&str; 2] = ["<answer>", "</answer>"];

/// The reward of Countdown: `R = 0.1·F + A`.
///
/// `A` (correct) is 1 if the **last** closed `<answer>` block of the reply holds only digits, `+ - * / ( )` and spaces, if its integers
/// are the given numbers, each as often as it is given, and if its value is the target; else 0. Values are exact fractions. Division
/// by zero, an overflow of 64 bits and more than 64 nested parentheses are wrong answers.
///
/// `F` (form) is 1 (well-formed) if the reply is `<think>…</think>`, a newline and `<answer>…</answer>`, each tag once; a newline may
/// follow. Else it is 0.1 for a think block and 0.5 for an answer block. Where the prompt opens the answer itself (its
/// [opening](Prompt::opening) is `<answer>`), there is nothing to think: `F` is 1 for that one block and nothing more, else 0.5 for an
/// answer block.
///
/// The reply is the opening and the completion. A completion without its closing `</answer>` scores 0 for the answer: a sampler that
/// stops there must leave it in the text.
///
/// The prompt has two facts: `numbers`, a list of integers, and `target`, an integer or a string with a fraction such as "7/2".
/// Prompts of [`CountdownProblem`](crate::task::CountdownProblem) have them.
///
/// # References
///
/// Qiu et al., *Evolution Strategies at Scale: LLM Fine-Tuning Beyond Reinforcement Learning* (2025),
/// [arXiv:2509.24372](https://arxiv.org/abs/2509.24372), whose values are equal within 1e-5.
///
/// # Example
///
/// ```
/// use eggroll_lm::reward::{CountdownReward, Prompt, Reward};
///
/// let prompt = Prompt::new("…").with_opening("<think>").with_fact("numbers", vec![2, 3, 7]).with_fact("target", 27);
/// let reward = CountdownReward::default();
/// assert_eq!(reward.score(&prompt, "2 + 7 = 9, 9 * 3 = 27</think>\n<answer>(2 + 7) * 3</answer>"), 1.1);
/// let form = reward.grade(&prompt, "2 + 7 = 9</think>\n<answer>2 + 7</answer>");
/// assert_eq!((form.score, form.correct, form.well_formed), (0.1, Some(false), Some(true)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountdownReward {
    /// The weight of the form, 0.1; 0 rewards correctness alone.
    pub format_weight: f32,
}

impl Default for CountdownReward {
    fn default() -> Self {
        Self { format_weight: 0.1 }
    }
}

impl CountdownReward {
    /// Sets [`format_weight`](Self::format_weight).
    pub fn with_format_weight(mut self, format_weight: f32) -> Self {
        self.format_weight = format_weight;
        self
    }
}

impl Reward for CountdownReward {
    fn score(&self, prompt: &Prompt, completion: &str) -> f32 {
        self.grade(prompt, completion).score
    }

    fn grade(&self, prompt: &Prompt, completion: &str) -> Grade {
        let puzzle = Puzzle::of(prompt).unwrap_or_else(|error| panic!("{error}"));
        let reply = prompt.reply(completion);
        let correct = last_answer(&reply).is_some_and(|answer| puzzle.is_solved_by(answer));
        let form = form(&reply, prompt.opening == ANSWER[0]);
        Grade {
            score: self.format_weight * form + f32::from(correct),
            correct: Some(correct),
            well_formed: Some(form == 1.0),
        }
    }

    fn check(&self, prompt: &Prompt) -> Result<(), PromptError> {
        Puzzle::of(prompt).map(|_| ())
    }
}

struct Puzzle {
    /// Sorted.
    numbers: Vec<u32>,
    target: Ratio<i64>,
}

impl Puzzle {
    fn of(prompt: &Prompt) -> Result<Self, PromptError> {
        let expected = "a list of one or more integers, none negative";
        let mut numbers: Vec<u32> = prompt.fact("numbers", expected)?;
        if numbers.is_empty() {
            return Err(prompt.unfit("numbers", expected));
        }
        numbers.sort_unstable();
        let expected = "an integer, or a string with a fraction such as \"7/2\"";
        let target = match prompt.fact("target", expected)? {
            Value::Number(number) => number.as_i64().map(Ratio::from_integer),
            Value::String(text) => evaluate(text.trim()).ok().map(|fraction| fraction.value),
            _ => None,
        };
        Ok(Self { numbers, target: target.ok_or_else(|| prompt.unfit("target", expected))? })
    }

    fn is_solved_by(&self, answer: &str) -> bool {
        evaluate(answer).is_ok_and(|mut found| {
            found.integers.sort_unstable();
            found.integers == self.numbers && found.value == self.target
        })
    }
}

/// What the last closed answer block holds.
fn last_answer(reply: &str) -> Option<&str> {
    let [open, close] = ANSWER;
    let last = reply.rfind(close)?;
    let start = reply[..last].rfind(open)? + open.len();
    reply[start..].split(close).next()
}

/// `F`.
fn form(reply: &str, only_answer: bool) -> f32 {
    let whole = reply.strip_suffix('\n').unwrap_or(reply);
    let exact = if only_answer { is_answer(whole) } else { is_thought_and_answer(whole) };
    match exact {
        true => 1.0,
        false if only_answer => 0.5 * f32::from(has(reply, ANSWER)),
        false => 0.1 * f32::from(has(reply, THINK)) + 0.5 * f32::from(has(reply, ANSWER)),
    }
}

fn is_thought_and_answer(reply: &str) -> bool {
    let thought = reply.strip_prefix(THINK[0]).and_then(|rest| rest.split_once(THINK[1]));
    let Some((thought, rest)) = thought else { return false };
    !has_tag(thought) && rest.strip_prefix('\n').is_some_and(is_answer)
}

fn is_answer(reply: &str) -> bool {
    let answer = reply.strip_prefix(ANSWER[0]).and_then(|rest| rest.strip_suffix(ANSWER[1]));
    answer.is_some_and(|answer| !has_tag(answer))
}

fn has_tag(text: &str) -> bool {
    THINK.iter().chain(&ANSWER).any(|tag| text.contains(tag))
}

/// Whether a block is opened and, later, closed.
fn has(reply: &str, [open, close]: [&str; 2]) -> bool {
    reply.split_once(open).is_some_and(|(_, rest)| rest.contains(close))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn puzzle(numbers: &[u32], target: impl Into<Value>) -> Prompt {
        Prompt::new("?").with_opening(THINK[0]).with_fact("numbers", numbers).with_fact("target", target)
    }

    fn correct(prompt: &Prompt, answer: &str) -> bool {
        let grade = CountdownReward::default().grade(prompt, &format!("so</think>\n<answer>{answer}</answer>"));
        assert_eq!(grade.well_formed, Some(true));
        assert_eq!(grade.score, 0.1 + f32::from(grade.correct == Some(true)));
        grade.correct == Some(true)
    }

    #[test]
    fn every_number_is_used_as_often_as_given() {
        let repeat = puzzle(&[4, 4, 6], 14);
        assert!(correct(&repeat, "4 + 4 + 6"));
        assert!(!correct(&repeat, "4 + 10")); // a number that is not given
        assert!(!correct(&repeat, "4 + 6 + 4 + 0"));
        assert!(!correct(&repeat, "14"));
        let ten = puzzle(&[4, 4, 6], 10);
        assert!(!correct(&ten, "4 + 6")); // as sets, {4, 6} would do
        assert!(!correct(&puzzle(&[4, 6], 14), "4 + 4 + 6"));
        assert!(!correct(&puzzle(&[4, 4, 6], 16), "4 + 6 + 6"));
        assert!(!correct(&puzzle(&[1, 2], 12), "12")); // digits are not numbers
        assert!(correct(&puzzle(&[12], 12), "12"));
    }

    #[test]
    fn fractions_are_neither_truncated_nor_rounded() {
        let prompt = puzzle(&[37, 10], 3);
        assert!(!correct(&prompt, "37 / 10")); // 3.7
        assert!(correct(&puzzle(&[37, 10], "37/10"), "37 / 10"));
        assert!(correct(&puzzle(&[1, 3, 3], 1), "1 / 3 * 3"));
        assert!(correct(&puzzle(&[3, 8, 8, 3], 24), "8 / (3 - 8 / 3)"));
        // Within 1e-5, and still wrong: 99999/100000 against 1.
        assert!(!correct(&puzzle(&[99_999, 100_000], 1), "99999 / 100000"));
    }

    #[test]
    fn fractional_and_negative_targets_can_be_reached() {
        assert!(correct(&puzzle(&[5, 2], "5/2"), "5 / 2"));
        assert!(correct(&puzzle(&[5, 2], "10/4"), "5/2"));
        assert!(correct(&puzzle(&[2, 5], -3), "2 - 5"));
        assert!(correct(&puzzle(&[2, 5], "-3"), "2 - 5"));
        assert!(correct(&puzzle(&[2, 5], -3), "-5 + 2"));
        assert!(!correct(&puzzle(&[2, 5], -3), "5 - 2"));
        assert!(correct(&puzzle(&[5, 5], 0), "5 - 5"));
        assert!(!correct(&puzzle(&[5, 6], 0), "5 - 6"));
        assert!(correct(&puzzle(&[0], 0), "0"));
    }

    #[test]
    fn other_characters_are_wrong() {
        let prompt = puzzle(&[2, 3], 8);
        for answer in ["2 ** 3", "2**3", "2^3", "pow(2, 3)", "8 = 2 3", "2 + 3 = 8", "8", "", " ", "1 / 0", "((2 + 3"] {
            assert!(!correct(&prompt, answer), "{answer:?}");
        }
        let prompt = puzzle(&[2, 3], 6);
        assert!(correct(&prompt, " 2*3 "));
        for answer in ["2 × 3", "2*3\n", "2*3 = 6", "2*3.", "2.0*3", "$2*3$", "２*3", "2*3 # ok", "2\u{a0}*3"] {
            assert!(!correct(&prompt, answer), "{answer:?}");
        }
    }

    #[test]
    fn the_last_closed_answer_counts() {
        let (prompt, reward) = (puzzle(&[2, 3], 6), CountdownReward::default());
        let is_correct = |reply: &str| reward.grade(&prompt, reply).correct == Some(true);
        assert!(is_correct("</think><answer>2+3</answer><answer>2*3</answer>"));
        assert!(!is_correct("</think><answer>2*3</answer><answer>2+3</answer>"));
        assert!(is_correct("<answer>2*3</answer><answer>2+"));
        assert!(is_correct("<answer>2*3</answer></answer>"));
        assert!(is_correct("<answer>2+<answer>2*3</answer>"));
        assert!(!is_correct("<answer>2*3"));
        assert!(!is_correct("2*3</answer>"));
        assert!(!is_correct("2*3"));
    }

    #[test]
    fn the_prompt_is_not_graded() {
        let prompt = puzzle(&[2, 3], 6).with_question(|_| "<think>a</think>\n<answer>2*3</answer>\n".into());
        for completion in ["", "2*3", "</think>"] {
            let grade = CountdownReward::default().grade(&prompt, completion);
            assert_eq!((grade.correct, grade.well_formed), (Some(false), Some(false)));
        }
    }

    #[test]
    fn forms_score_apart_from_correctness() {
        let (prompt, reward) = (puzzle(&[2, 3], 6), CountdownReward::default());
        for (completion, form) in [
            ("a\nb</think>\n<answer>x</answer>", 1.0),
            ("</think>\n<answer></answer>", 1.0),
            ("a</think>\n<answer>x</answer>\n", 1.0),
            ("a</think>\n<answer>x</answer>\n\n", 0.6),
            ("a</think><answer>x</answer>", 0.6),
            ("a</think> \n<answer>x</answer>", 0.6),
            ("a</think>\n\n<answer>x</answer>", 0.6),
            ("a</think>\n<answer>x</answer> Done", 0.6),
            ("a</think>\n<answer>x</answer>\n<answer>y</answer>", 0.6),
            ("<think>a</think>\n<answer>x</answer>", 0.6),
            ("<answer>x</answer>", 0.5),
            ("a</think> x", 0.1),
            ("a</think>\n<answer>x", 0.1),
            ("x", 0.0),
            ("", 0.0),
        ] {
            let grade = reward.grade(&prompt, completion);
            assert!((grade.score - 0.1 * form).abs() < 1e-7, "{completion:?}: {}", grade.score);
            assert_eq!(grade.well_formed, Some(form == 1.0), "{completion:?}");
        }
        let bare = prompt.clone().with_opening("");
        assert_eq!(reward.grade(&bare, "a</think>\n<answer>2*3</answer>").score, 1.05);
        assert_eq!(reward.grade(&bare, "<think>a</think>\n<answer>2*3</answer>").score, 1.1);
        assert_eq!(reward.with_format_weight(0.0).score(&bare, "<think>a</think>\n<answer>3</answer>"), 0.0);
    }

    #[test]
    fn a_prompt_that_opens_the_answer_wants_nothing_else() {
        let (prompt, reward) = (puzzle(&[2, 3], 6).with_opening(ANSWER[0]), CountdownReward::default());
        assert_eq!(reward.score(&prompt, "2*3</answer>"), 1.1);
        assert_eq!(reward.score(&prompt, "2*3</answer>\n"), 1.1);
        assert_eq!(reward.score(&prompt, "2*3</answer> and"), 1.05);
        assert_eq!(reward.score(&prompt, "2+3</answer>"), 0.1);
        assert_eq!(reward.score(&prompt, "2*3"), 0.0);
    }

    #[test]
    fn prompts_that_cannot_be_graded_are_refused() {
        let check = |prompt: Prompt| CountdownReward::default().check(&prompt).map_err(|error| error.to_string());
        assert_eq!(check(puzzle(&[1, 2], 3)), Ok(()));
        assert!(check(Prompt::new("?")).unwrap_err().contains("no fact `numbers`"));
        assert!(check(puzzle(&[], 3)).unwrap_err().contains("is []: expected a list"));
        assert!(check(puzzle(&[1, 2], 2.5)).unwrap_err().contains("is 2.5: expected an integer"));
        assert!(check(puzzle(&[1, 2], "1/0")).is_err());
        assert!(check(puzzle(&[1, 2], Value::Null)).is_err());
        assert!(check(puzzle(&[1, 2], 3).with_fact("numbers", vec![-1, 2])).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*", tags in prop::collection::vec("<think>|</think>|\n|<answer>|</answer>|[0-9+*/() -]{0,9}", 0..9)) {
            for completion in [text, tags.concat()] {
                let grade = CountdownReward::default().grade(&puzzle(&[2, 3], 6), &completion);
                prop_assert!((0.0..=1.1).contains(&grade.score));
                prop_assert_eq!(grade.correct, Some(grade.score >= 1.0));
            }
        }
    }
}
