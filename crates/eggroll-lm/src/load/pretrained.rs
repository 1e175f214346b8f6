//! A model's files, opened together.

use super::chat::ChatTemplate;
use super::config::ModelConfig;
use super::error::LoadError;
use super::gguf::Gguf;
use super::model_files::ModelFiles;
use super::tokenizer::Tokenizer;
use super::weights::Weights;
use std::path::Path;

/// A pretrained model on disk: configuration, weights, tokenizer and chat template that fit together.
///
/// # Example
///
/// ```no_run
/// use eggroll_lm::load::{Message, Pretrained};
///
/// # fn main() -> Result<(), eggroll_lm::load::LoadError> {
/// let model = Pretrained::open("smollm2-135m-instruct-q4_1.gguf")?;
/// if let Some(template) = &model.chat_template {
///     let prompt = template.render(&[Message::user("Is the word \"happy\" positive?")], true)?;
///     let ids = model.tokenizer.encode(&prompt)?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Pretrained {
    /// Architecture and sizes.
    pub config: ModelConfig,
    /// The tensors, not read yet.
    pub weights: Weights,
    /// Texts to tokens and back.
    pub tokenizer: Tokenizer,
    /// Chats to texts, if the model is made for chats.
    pub chat_template: Option<ChatTemplate>,
}

impl Pretrained {
    /// Opens a path of [`Weights::open`], and the files next to it.
    ///
    /// # Errors
    ///
    /// [`LoadError`] for files that are missing, damaged or not supported. Also if the tensors of configuration and weights differ in names or
    /// shapes, and for a tokenizer with more tokens than the model. Tensors are compared by the headers of the files.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        let path = path.as_ref();
        let model = match ModelFiles::find(path)? {
            ModelFiles::Gguf(path) => {
                let gguf = Gguf::open(&path)?;
                let config = ModelConfig::from_gguf(&gguf)?;
                let tokenizer = Tokenizer::from_gguf(&gguf)?;
                let chat_template = ChatTemplate::from_gguf(&gguf, &tokenizer)?;
                Self { config, weights: Weights::from_gguf(gguf)?, tokenizer, chat_template }
            }
            ModelFiles::File { folder, .. } | ModelFiles::Index { folder, .. } => {
                let config = ModelConfig::from_file(folder.join("config.json"))?;
                let weights = Weights::open(path)?;
                let tokenizer = Tokenizer::from_folder(&folder)?;
                let chat_template = ChatTemplate::from_folder(&folder, &tokenizer)?;
                Self { config, weights, tokenizer, chat_template }
            }
        };
        model.weights.check(&model.config)?;
        let vocab_size = model.config.vocab_size();
        match model.tokenizer.largest_id() {
            Some(id) if id as usize >= vocab_size => {
                let expected = format!("{} at least, for the tokenizer's largest token", id as usize + 1);
                Err(LoadError::config("vocab_size", vocab_size, expected))
            }
            _ => Ok(model),
        }
    }
}
