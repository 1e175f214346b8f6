//! The prompt of a model, with data for its reward.

use super::PromptError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Characters of a prompt that an error shows.
const SHOWN: usize = 60;

/// A prompt, with data for its reward.
///
/// In JSON, a prompt is `{"prompt": …, "opening": …, "reference": …}`, of which only `prompt` is needed; every other
/// field is a [fact](Self::facts).
///
/// # Example
///
/// ```
/// use eggroll_lm::reward::Prompt;
///
/// let prompt = Prompt::new("Is 7 prime? ").with_opening("It").with_reference("prime").with_fact("number", 7);
/// assert_eq!(prompt.text(), "Is 7 prime? It");
/// assert_eq!(prompt.reply(" is prime."), "It is prime.");
/// assert_eq!(prompt.fact::<u32>("number", "a number"), Ok(7));
///
/// let chat = prompt.with_question(|question| format!("User: {question}\nAssistant: "));
/// assert_eq!(chat.text(), "User: Is 7 prime? \nAssistant: It");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// The text before the reply, with any control tokens of a chat.
    #[serde(rename = "prompt")]
    pub question: String,
    /// The start of the reply, which the model is given and continues; empty for none. Also called a prefill.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub opening: String,
    /// The expected reply, if the reward compares with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Other data for the reward, by name.
    #[serde(flatten)]
    pub facts: Map<String, Value>,
}

impl Prompt {
    /// A prompt without an opening, a reference or facts.
    pub fn new(question: impl Into<String>) -> Self {
        Self { question: question.into(), ..Self::default() }
    }

    /// Sets the [opening](Self::opening).
    pub fn with_opening(mut self, opening: impl Into<String>) -> Self {
        self.opening = opening.into();
        self
    }

    /// Sets the [reference](Self::reference).
    pub fn with_reference(mut self, reference: impl Into<String>) -> Self {
        self.reference = Some(reference.into());
        self
    }

    /// Sets a [fact](Self::facts).
    pub fn with_fact(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.facts.insert(name.into(), value.into());
        self
    }

    /// Replaces the question by a function of it, such as a chat template; the opening still follows it.
    pub fn with_question(mut self, template: impl FnOnce(&str) -> String) -> Self {
        self.question = template(&self.question);
        self
    }

    /// What the model reads: the question, then the opening.
    pub fn text(&self) -> String {
        format!("{}{}", self.question, self.opening)
    }

    /// The whole reply: the opening, then what the model wrote.
    pub fn reply(&self, completion: &str) -> String {
        format!("{}{completion}", self.opening)
    }

    /// The reference.
    ///
    /// # Errors
    ///
    /// [`PromptError::NoReference`] if there is none.
    pub fn expect_reference(&self) -> Result<&str, PromptError> {
        self.reference.as_deref().ok_or_else(|| PromptError::NoReference { prompt: self.start() })
    }

    /// The fact `name`, which is `expected`, such as "a list of positive integers" (for the error).
    ///
    /// # Errors
    ///
    /// [`PromptError::NoFact`] if there is none, [`PromptError::Fact`] if it has another type.
    pub fn fact<T: DeserializeOwned>(&self, name: &str, expected: &str) -> Result<T, PromptError> {
        let Some(value) = self.facts.get(name) else {
            return Err(PromptError::NoFact { prompt: self.start(), name: name.into() });
        };
        T::deserialize(value).map_err(|_| {
            let (prompt, found) = (self.start(), value.to_string());
            PromptError::Fact { prompt, name: name.into(), found, expected: expected.into() }
        })
    }

    /// The start of the text, to name the prompt in an error.
    fn start(&self) -> String {
        let mut start: String = self.question.chars().take(SHOWN).collect();
        if start.len() < self.question.len() {
            start.push('…');
        }
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_json_that_are_not_ours_are_facts() {
        let line = r#"{"prompt":"Why?","reference":"So.","level":3,"tags":["a"]}"#;
        let prompt: Prompt = serde_json::from_str(line).unwrap();
        assert_eq!(prompt.question, "Why?");
        assert_eq!(prompt.reference.as_deref(), Some("So."));
        assert_eq!(prompt.fact::<u8>("level", "a level"), Ok(3));
        assert_eq!(prompt.fact::<Vec<String>>("tags", "a list"), Ok(vec!["a".into()]));
        let again: Prompt = serde_json::from_str(&serde_json::to_string(&prompt).unwrap()).unwrap();
        assert_eq!(again, prompt);
    }

    #[test]
    fn errors_name_the_prompt_and_the_value() {
        let prompt = Prompt::new("é".repeat(61)).with_fact("target", 2.5);
        let shown = format!("{}…", "é".repeat(60));
        assert_eq!(prompt.expect_reference(), Err(PromptError::NoReference { prompt: shown.clone() }));
        let missing = prompt.fact::<u8>("numbers", "numbers").unwrap_err();
        assert_eq!(missing, PromptError::NoFact { prompt: shown.clone(), name: "numbers".into() });
        let wrong = prompt.fact::<i64>("target", "an integer").unwrap_err().to_string();
        assert_eq!(wrong, format!("the fact `target` of the prompt {shown:?} is 2.5: expected an integer"));
    }
}
