//! 1 for the reference, 0 for anything else.

use super::{Prompt, PromptError, Reward};

/// 1 if the completion is the reference, else 0. Space around both is ignored; the [opening](Prompt::opening) is not
/// compared.
///
/// # Example
///
/// ```
/// use eggroll_lm::reward::{ExactMatch, Prompt, Reward};
///
/// let prompt = Prompt::new("The capital of France? ").with_reference("Paris");
/// assert_eq!(ExactMatch.score(&prompt, " Paris\n"), 1.0);
/// assert_eq!(ExactMatch.score(&prompt, "Paris, I think"), 0.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExactMatch;

impl Reward for ExactMatch {
    fn score(&self, prompt: &Prompt, completion: &str) -> f32 {
        let reference = prompt.expect_reference().unwrap_or_else(|error| panic!("{error}"));
        f32::from(completion.trim() == reference.trim())
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
        for (completion, expected) in
            [("Yes", 1.0), ("\t Yes\r\n", 1.0), ("yes", 0.0), ("Yes.", 0.0), ("", 0.0), ("Yes\nNo", 0.0)]
        {
            assert_eq!(ExactMatch.score(&prompt, completion), expected, "{completion:?}");
        }
    }

    #[test]
    #[should_panic(expected = "has no reference")]
    fn a_prompt_without_a_reference_is_refused() {
        assert!(ExactMatch.check(&Prompt::new("?")).is_err());
        ExactMatch.score(&Prompt::new("?"), "");
    }
}
