//! Chats as the text that a model was trained on.

use super::error::LoadError;
use super::gguf::Gguf;
use super::jinja::{Input, Template};
use super::model_files::ModelFiles;
use super::source::{read_json, read_text};
use super::tokenizer::{SpecialTokens, Tokenizer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// The name of a separate template for chats with tools.
const WITH_TOOLS: &str = "tool_use";
const DEFAULT: &str = "default";

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
/// A rendering gives the text of jinja2 3.1.6 in the environment of transformers 5.24, or an error. Rare filters, methods and formats of
/// Python are errors that name them. A template takes at most 1 MiB of source, ten million steps, and memory of 64 MiB and eight times
/// the size of its values.
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
    tokens: SpecialTokens,
    default: TemplateSource,
    /// For chats with tools.
    with_tools: Option<TemplateSource>,
    time: Option<SystemTime>,
}

/// A source and its parsed form. A template that cannot be parsed is an error only on use.
#[derive(Clone, Debug)]
struct TemplateSource {
    text: String,
    parsed: Result<Template, String>,
}

impl TemplateSource {
    fn new(text: String) -> Self {
        let parsed = Template::parse(&text).map_err(|error| error.0);
        Self { text, parsed }
    }

    fn broken(reason: String) -> Self {
        Self { text: String::new(), parsed: Err(reason) }
    }
}

impl ChatTemplate {
    /// Parses a template.
    ///
    /// # Errors
    ///
    /// [`LoadError::Template`] with the line of a syntax error.
    pub fn new(source: impl Into<String>, tokens: SpecialTokens) -> Result<Self, LoadError> {
        let default = TemplateSource::new(source.into());
        match &default.parsed {
            Ok(_) => Ok(Self { tokens, default, with_tools: None, time: None }),
            Err(error) => Err(LoadError::Template(error.clone())),
        }
    }

    /// Reads the template of the model at a path, as in [`Weights::open`](super::Weights::open): `chat_template.jinja` and the files of
    /// `additional_chat_templates`, or `tokenizer_config.json`, or `chat_template.json`; or a GGUF file. `None` if the model has none. A
    /// template that cannot be parsed is an error of [`render`](Self::render).
    ///
    /// # Errors
    ///
    /// [`LoadError`] if a file is damaged.
    pub fn open(path: impl AsRef<Path>, tokenizer: &Tokenizer) -> Result<Option<Self>, LoadError> {
        match ModelFiles::find(path.as_ref())? {
            ModelFiles::Gguf(path) => Self::from_gguf(&Gguf::open(&path)?, tokenizer),
            ModelFiles::File { folder, .. } | ModelFiles::Index { folder, .. } => Self::from_folder(&folder, tokenizer),
        }
    }

    pub(crate) fn from_gguf(gguf: &Gguf, tokenizer: &Tokenizer) -> Result<Option<Self>, LoadError> {
        let Some(default) = gguf.metadata.text("tokenizer.chat_template")? else { return Ok(None) };
        let with_tools = gguf.metadata.text(&format!("tokenizer.chat_template.{WITH_TOOLS}"))?;
        let source = |name: &str, text: &str| (name.to_owned(), TemplateSource::new(text.to_owned()));
        let named = with_tools.map(|text| source(WITH_TOOLS, text));
        Ok(Self::named([source(DEFAULT, default)].into_iter().chain(named), tokenizer))
    }

    pub(crate) fn from_folder(folder: &Path, tokenizer: &Tokenizer) -> Result<Option<Self>, LoadError> {
        let mut named = Vec::new();
        if let Some(source) = read(&folder.join("chat_template.jinja"))? {
            named.push((DEFAULT.to_owned(), source));
        }
        for entry in fs::read_dir(folder.join("additional_chat_templates")).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(name) = name.strip_suffix(".jinja")
                && let Some(source) = read(&entry.path())?
            {
                named.push((name.to_owned(), source));
            }
        }
        for file in ["tokenizer_config.json", "chat_template.json"] {
            if named.is_empty() {
                named = read_json(&folder.join(file))?.as_ref().map(in_settings).unwrap_or_default();
            }
        }
        Ok(Self::named(named, tokenizer))
    }

    /// Templates with names; `default` is for chats.
    fn named(named: impl IntoIterator<Item = (String, TemplateSource)>, tokenizer: &Tokenizer) -> Option<Self> {
        let (mut default, mut with_tools, mut names) = (None, None, Vec::new());
        for (name, source) in named {
            match name.as_str() {
                DEFAULT => default = Some(source),
                WITH_TOOLS => with_tools = Some(source),
                _ => {}
            }
            names.push(name);
        }
        if names.is_empty() {
            return None;
        }
        let none = || {
            TemplateSource::broken(format!(
                "the model has the templates {}, but none named {DEFAULT}",
                names.join(", ")
            ))
        };
        let default = default.unwrap_or_else(none);
        Some(Self { tokens: tokenizer.special_tokens().clone(), default, with_tools, time: None })
    }

    /// Sets the time of `strftime_now` in templates, in UTC. By default it is the local time of rendering.
    pub fn with_time(mut self, time: SystemTime) -> Self {
        self.time = Some(time);
        self
    }

    /// The text of a chat; with `add_generation_prompt`, the beginning of the model's turn follows.
    ///
    /// # Errors
    ///
    /// [`LoadError::Template`] if the template cannot be parsed, fails, refuses the chat or does not end.
    pub fn render(&self, messages: &[Message], add_generation_prompt: bool) -> Result<String, LoadError> {
        let text = |text: &str| Input::Text(text.to_owned());
        let message = |message: &Message| {
            Input::Object(vec![("role".into(), text(&message.role)), ("content".into(), text(&message.content))])
        };
        self.render_input(vec![
            ("messages".into(), Input::Array(messages.iter().map(message).collect())),
            ("add_generation_prompt".into(), Input::Bool(add_generation_prompt)),
        ])
    }

    /// The text for any values by name, as a JSON object: `messages`, `tools`, `documents`, `add_generation_prompt` and other names that
    /// the template knows. The order of keys counts. With `tools`, a model's separate template for tools is used.
    ///
    /// # Errors
    ///
    /// As [`render`](Self::render), and for JSON that is not an object.
    pub fn render_json(&self, values: &str) -> Result<String, LoadError> {
        match serde_json::from_str(values) {
            Ok(Input::Object(values)) => self.render_input(values),
            Ok(_) => Err(LoadError::Template("its values are not an object of JSON".into())),
            Err(error) => Err(LoadError::Template(format!("its values are not JSON: {error}"))),
        }
    }

    fn render_input(&self, given: Vec<(String, Input)>) -> Result<String, LoadError> {
        let has_tools = given.iter().any(|(name, value)| name == "tools" && !matches!(value, Input::Null));
        let source = self.with_tools.as_ref().filter(|_| has_tools).unwrap_or(&self.default);
        let template = source.parsed.as_ref().map_err(|error| LoadError::Template(error.clone()))?;
        let mut values: Vec<_> = ["tools", "documents"].map(|name| (name.to_owned(), Input::Null)).into();
        values.extend(self.tokens.named().map(|(name, token)| (name.to_owned(), Input::Text(token.to_owned()))));
        values.extend(self.tokens.others.iter().map(|(name, token)| (name.clone(), Input::Text(token.clone()))));
        values.retain(|(name, _)| given.iter().all(|(other, _)| other != name));
        values.extend(given.into_iter().map(|(name, value)| match value {
            Input::Array(messages) if name == "messages" => {
                (name, Input::Array(messages.into_iter().map(as_message).collect()))
            }
            value => (name, value),
        }));
        let now = match self.time {
            Some(time) => chrono::DateTime::<chrono::Utc>::from(time).fixed_offset(),
            None => chrono::Local::now().fixed_offset(),
        };
        template.render(&Input::Object(values), now).map_err(|error| LoadError::Template(error.0))
    }

    /// The template's text.
    pub fn source(&self) -> &str {
        &self.default.text
    }

    /// The templates as `tokenizer_config.json` has them, if there is one for chats.
    pub(crate) fn setting(&self) -> Option<Value> {
        let source = self.source();
        match &self.with_tools {
            _ if source.is_empty() && self.default.parsed.is_err() => None,
            None => Some(source.into()),
            Some(with_tools) => Some(json!([
                { "name": DEFAULT, "template": source },
                { "name": WITH_TOOLS, "template": with_tools.text },
            ])),
        }
    }
}

/// A template's file. One that is not UTF-8 is a template that cannot be parsed.
fn read(path: &Path) -> Result<Option<TemplateSource>, LoadError> {
    match read_text(path) {
        Err(error @ LoadError::Malformed { .. }) => Ok(Some(TemplateSource::broken(error.to_string()))),
        text => Ok(text?.map(TemplateSource::new)),
    }
}

/// One template, or several with names.
fn in_settings(settings: &Value) -> Vec<(String, TemplateSource)> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    match settings.get("chat_template") {
        Some(Value::String(template)) => vec![(DEFAULT.to_owned(), TemplateSource::new(template.clone()))],
        Some(Value::Array(all)) => {
            let source = |one| Some((text(one, "name")?, TemplateSource::new(text(one, "template")?)));
            all.iter().filter_map(source).collect()
        }
        _ => Vec::new(),
    }
}

/// A message in the form that transformers passes to a template: without null values, and with the reasoning under both of its newer names.
fn as_message(message: Input) -> Input {
    let Input::Object(mut pairs) = message else { return message };
    pairs.retain(|(_, value)| !matches!(value, Input::Null));
    let get = |key: &str| pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
    let thought = ["reasoning_content", "thinking", "reasoning"].into_iter().find_map(get);
    if let Some(thought) = thought {
        let thinking = get("thinking").unwrap_or_else(|| thought.clone());
        pairs.retain(|(name, _)| name != "thinking");
        pairs.insert(0, ("thinking".to_owned(), thinking));
        match pairs.iter_mut().find(|(name, _)| name == "reasoning_content") {
            Some((_, old)) => *old = thought,
            None => pairs.push(("reasoning_content".to_owned(), thought)),
        }
    }
    Input::Object(pairs)
}
