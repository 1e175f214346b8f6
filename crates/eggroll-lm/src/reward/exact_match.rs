//! 1 for the reference, 0 for anything else.

use super::{Grade, Prompt, PromptError, Reward};

/// 1 if the completion is the reference, else 0. Space around both is ignored; the [opening](Prompt::opening) is not compared.
///
/// # Example
///
/// ```
/// use eggroll_lm::reward::{ExactMatch, Prompt, Reward};
///
/// let prompt = Prompt::new("The capital of France? ").with_reference("Paris");
/// assert_eq!(ExactMatch::default().score(&prompt, " Paris\n"), 1.0);
/// assert_eq!(ExactMatch::default().score(&prompt, "paris\nIt is"), 0.0);
/// let lenient = ExactMatch::default().with_first_line(true).with_ignore_case(true);
/// assert_eq!(lenient.score(&prompt, "paris\nIt is"), 1.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExactMatch {
    /// Compares only the first line of the completion that is not blank.
    pub first_line: bool,
    /// Compares lower-case forms (of Unicode).
    pub ignore_case: bool,
}

impl ExactMatch {
    /// Sets [`first_line`](Self::first_line).
    pub fn with_first_line(mut self, first_line: bool) -> Self {
        self.first_line = first_line;
        self
    }

    /// Sets [`ignore_case`](Self::ignore_case).
    pub fn with_ignore_case(mut self, ignore_case: bool) -> Self {
        self.ignore_case = ignore_case;
        self
    }

    fn matches(&self, reference: &str, completion: &str) -> bool {
        let reference = reference.trim();
        let mut completion = completion.trim();
        if self.first_line {
            completion = completion.lines().next().unwrap_or("").trim_end();
        }
        match self.ignore_case {
            true => completion.to_lowercase() == reference.to_lowercase(),
            false => completion == reference,
        }
    }
}

impl Reward for ExactMatch {
    fn score(&self, prompt: &Prompt, completion: &str) -> f32 {
        self.grade(prompt, completion).score
    }

    fn grade(&self, prompt: &Prompt, completion: &str) -> Grade {
        let reference = prompt.expect_reference().unwrap_or_else(|error| panic!("{error}"));
        let correct = self.matches(reference, completion);
        Grade { score: f32::from(correct), correct: Some(correct), well_formed: None }
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
        let prompt = Prompt::new("?").with_reference(" Yes ");
        let exact = ExactMatch::default();
        let line = exact.with_first_line(true);
        let case = exact.with_ignore_case(true);
        for (reward, completion, expected) in [
            (exact, "Yes", true),
            (exact, "\t Yes\r\n", true),
            (exact, "yes", false),
            (exact, "Yes.", false),
            (exact, "", false),
            (exact, "Yes\nNo", false),
            (line, "\n Yes \nNo", true),
            (line, "No\nYes", false),
            (line, "", false),
            (case, "YES", true),
            (case, "YES\nno", false),
        ] {
            assert_eq!(reward.grade(&prompt, completion).correct, Some(expected), "{reward:?} {completion:?}");
            assert_eq!(reward.score(&prompt, completion), f32::from(expected));
        }
    }

    #[test]
    #[should_panic(expected = "has no reference")]
    fn a_prompt_without_a_reference_is_refused() {
        assert!(ExactMatch::default().check(&Prompt::new("?")).is_err());
        ExactMatch::default().score(&Prompt::new("?"), "");
    }
}
