//! Chats as the text that a model was trained on.

use super::error::LoadError;
use super::gguf::Gguf;
use super::place::Place;
use super::source::{read_json, read_text};
use super::tokenizer::{SpecialTokens, Tokenizer};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, context};
use minijinja_contrib::pycompat::unknown_method_callback;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Instructions that a template may take: about a second.
const FUEL: u64 = 10_000_000;
const NAME: &str = "chat_template";

/// One turn of a chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks: `system`, `user` or `assistant`.
    pub role: String,
    /// What they say.
    pub content: String,
}

impl Message {
    /// A turn of any role.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into() }
    }

    /// A turn of the user.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }

    /// A turn of the model.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new("assistant", content)
    }

    /// Instructions ahead of all turns.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new("system", content)
    }
}

/// The template of a model that writes a chat as one text, in Jinja, with the settings and functions of Hugging Face's transformers.
///
/// # Example
///
/// ```
/// use eggroll_lm::load::{ChatTemplate, Message, SpecialTokens};
///
/// # fn main() -> Result<(), eggroll_lm::load::LoadError> {
/// let source = "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}";
/// let template = ChatTemplate::new(source, SpecialTokens::default())?;
/// assert_eq!(template.render(&[Message::user("Hello")], false)?, "<user>Hello");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    source: String,
    tokens: SpecialTokens,
    environment: Environment<'static>,
}

impl ChatTemplate {
    /// Parses a template.
    ///
    /// # Errors
    ///
    /// [`LoadError::Template`] with the line of a syntax error.
    pub fn new(source: impl Into<String>, tokens: SpecialTokens) -> Result<Self, LoadError> {
        let source = source.into();
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(template_error)?);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_unknown_method_callback(unknown_method_callback);
        environment.set_fuel(Some(FUEL));
        environment.add_function("raise_exception", |reason: String| -> Result<Value, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, format!("the template refuses this chat: {reason}")))
        });
        environment.add_template_owned(NAME, source.clone()).map_err(template_error)?;
        Ok(Self { source, tokens, environment })
    }

    /// Reads the template of the model at a path, which is one of [`Weights::open`](super::Weights::open): `chat_template.jinja`,
    /// `tokenizer_config.json` or a GGUF file. `None` if the model has none.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if a file is damaged or the template has a syntax error.
    pub fn open(path: impl AsRef<Path>, tokenizer: &Tokenizer) -> Result<Option<Self>, LoadError> {
        match Place::find(path.as_ref())? {
            Place::Gguf(path) => Self::from_gguf(&Gguf::open(&path)?, tokenizer),
            Place::File { folder, .. } | Place::Index { folder, .. } => Self::from_folder(&folder, tokenizer),
        }
    }

    pub(crate) fn from_gguf(gguf: &Gguf, tokenizer: &Tokenizer) -> Result<Option<Self>, LoadError> {
        let source = gguf.metadata.text("tokenizer.chat_template")?;
        source.map(|source| Self::new(source, tokenizer.special_tokens().clone())).transpose()
    }

    pub(crate) fn from_folder(folder: &Path, tokenizer: &Tokenizer) -> Result<Option<Self>, LoadError> {
        let source = match read_text(&folder.join("chat_template.jinja"))? {
            Some(source) => Some(source),
            None => read_json(&folder.join("tokenizer_config.json"))?.as_ref().and_then(in_settings),
        };
        source.map(|source| Self::new(source, tokenizer.special_tokens().clone())).transpose()
    }

    /// The text of a chat; with `add_generation_prompt`, the begin of the model's turn follows.
    ///
    /// # Errors
    ///
    /// [`LoadError::Template`] if the template fails, refuses the chat or does not end.
    pub fn render(&self, messages: &[Message], add_generation_prompt: bool) -> Result<String, LoadError> {
        let messages: Vec<Value> = messages
            .iter()
            .map(|message| context! { role => message.role.as_str(), content => message.content.as_str() })
            .collect();
        let tokens = Value::from_pairs(self.tokens.named());
        let values = context! {
            messages,
            add_generation_prompt,
            tools => Value::from(()),
            documents => Value::from(()),
            ..tokens
        };
        self.environment.get_template(NAME).and_then(|template| template.render(values)).map_err(template_error)
    }

    /// The template's text.
    pub fn source(&self) -> &str {
        &self.source
    }
}

/// One template, or several with names, among which `default` is the one for chats.
fn in_settings(settings: &serde_json::Value) -> Option<String> {
    let template = settings.get("chat_template")?;
    let default = || {
        let named =
            template.as_array()?.iter().find(|named| named.get("name").is_some_and(|name| name == "default"))?;
        named.get("template")?.as_str()
    };
    template.as_str().or_else(default).map(str::to_owned)
}

fn template_error(error: Error) -> LoadError {
    LoadError::Template(match error.kind() {
        ErrorKind::OutOfFuel => format!("it does not end within {FUEL} instructions"),
        _ => format!("{error}"),
    })
}
