//! An answer that a regular expression finds.

use super::{PatternError, Prompt, PromptError, Reward};
use fancy_regex::Regex;

/// 1 if the answer in the reply is the reference, else 0. The answer is the match of the pattern's first group, or the
/// whole match of a pattern without groups.
///
/// The last match counts. Space around answer and reference is ignored. The reply includes the
/// [opening](Prompt::opening) of the prompt. Patterns have the syntax of the crate fancy-regex; a pattern that
/// backtracks a million times in a reply finds no answer.
///
/// # Example
///
/// ```
/// use eggroll_lm::reward::{Prompt, RegexMatch, Reward};
///
/// let prompt = Prompt::new("How much is 3 times 4?").with_reference("12");
/// let reward = RegexMatch::new(r"(?i)answer is (\d+)")?;
/// assert_eq!(reward.score(&prompt, "3 times 4, so the answer is 12."), 1.0);
/// assert_eq!(reward.score(&prompt, "12"), 0.0);
/// # Ok::<(), eggroll_lm::reward::PatternError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RegexMatch(Regex);

impl RegexMatch {
    /// The reward of a pattern.
    ///
    /// # Errors
    ///
    /// [`PatternError`] for a pattern that is not valid.
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        let refused = |error: fancy_regex::Error| PatternError { pattern: pattern.into(), reason: error.to_string() };
        Regex::new(pattern).map(Self).map_err(refused)
    }

    fn answer<'a>(&self, reply: &'a str) -> Option<&'a str> {
        let mut matches = self.0.captures_iter(reply);
        let last = matches.try_fold(None, |_, found| found.map(Some)).ok()??;
        last.get(usize::from(last.len() > 1)).map(|answer| answer.as_str())
    }
}

impl Reward for RegexMatch {
    fn score(&self, prompt: &Prompt, completion: &str) -> f32 {
        let reference = prompt.expect_reference().unwrap_or_else(|error| panic!("{error}"));
        let reply = prompt.reply(completion);
        f32::from(self.answer(&reply).is_some_and(|answer| answer.trim() == reference.trim()))
    }

    fn check(&self, prompt: &Prompt) -> Result<(), PromptError> {
        prompt.expect_reference().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        let prompt = Prompt::new("?").with_opening("The answer is ").with_reference("12");
        for (pattern, completion, expected) in [
            (r"answer is (\d+)", "12", 1.0),
            (r"answer is (\d+)", "11. No, the answer is 12", 1.0),
            (r"answer is (\d+)", "12. No, the answer is 11", 0.0),
            (r"\d+", "3 times 4, 12", 1.0),
            (r"answer is(.*)", "12 ", 1.0),
            (r"(?:x(12))?12", "12", 0.0), // the group has no part in the match
            (r"answer was (\d+)", "12", 0.0),
        ] {
            let reward = RegexMatch::new(pattern).unwrap();
            assert_eq!(reward.score(&prompt, completion), expected, "{pattern} {completion:?}");
        }
    }

    #[test]
    fn patterns_that_are_not_valid_or_take_too_long() {
        let error = RegexMatch::new("(").unwrap_err().to_string();
        assert!(error.starts_with("the pattern \"(\" is not valid: "), "{error}");
        let (slow, reply) = (RegexMatch::new(r"^(a|aa)+\1c$").unwrap(), "a".repeat(60));
        assert!(slow.0.is_match(&reply).is_err(), "canary: it takes too long");
        assert_eq!(slow.score(&Prompt::new("?").with_reference("a"), &reply), 0.0);
    }
}
