//! Configuration of a model: its architecture and sizes.

mod architecture;
mod attention;
mod bounds;
mod fields;
mod gemma;
mod llama;
mod llama_gguf;
mod neutral;
mod rope;
mod rwkv7;
mod rwkv7_files;

pub use attention::{AttentionWindow, LayerAttention};
pub use gemma::GemmaConfig;
pub use llama::LlamaConfig;
pub use rope::RopeScaling;
pub use rwkv7::Rwkv7Config;
pub use rwkv7_files::{FileTensor, Stored};

use super::error::LoadError;
use super::gguf::Gguf;
use super::kind::Kind;
use super::model_files::ModelFiles;
use super::source::read_json;
use fields::ConfigFields;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Architecture and sizes of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ModelConfig {
    /// A transformer of the Llama family: Llama, SmolLM, SmolLM3, Mistral, Qwen2, Qwen3, Gemma-2, the text model of Gemma-3.
    Llama(LlamaConfig),
    /// A recurrent model of the RWKV-7 family.
    Rwkv7(Rwkv7Config),
}

impl ModelConfig {
    /// Reads the configuration of the model at a path, as in [`Weights::open`](super::Weights::open).
    ///
    /// # Errors
    ///
    /// [`LoadError`] if the file is missing or damaged, for an architecture or a setting that is not supported, and for sizes that
    /// [`validate`](Self::validate) refuses.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        match ModelFiles::find(path.as_ref())? {
            ModelFiles::Gguf(path) => Self::from_gguf(&Gguf::open(&path)?),
            ModelFiles::File { folder, .. } | ModelFiles::Index { folder, .. } => {
                Self::from_file(folder.join("config.json"))
            }
        }
    }

    /// Reads a `config.json` of Hugging Face's transformers.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        let path = path.as_ref();
        let advice = "it has the sizes of the model; download it too";
        let json = read_json(path)?.ok_or_else(|| LoadError::MissingFile { path: path.to_owned(), advice })?;
        let fields = ConfigFields::new(path, &json)?;
        let name = fields.text("model_type")?.unwrap_or("missing");
        let config = match (Kind::of_model_type(name), name) {
            (Some(kind), _) => Self::Llama(LlamaConfig::from_fields(&fields, kind)?),
            (None, "rwkv7" | "rwkv7_fla") => Self::Rwkv7(Rwkv7Config::from_fields(&fields)?),
            (None, found) => {
                let supported = "llama, mistral, qwen2, qwen3, smollm3, gemma2, gemma3_text, rwkv7";
                return Err(fields.unsupported("model_type", found, supported));
            }
        };
        config.validate()?;
        Ok(config)
    }

    pub(crate) fn from_gguf(gguf: &Gguf) -> Result<Self, LoadError> {
        let name = gguf.architecture()?;
        let Some(kind) = Kind::of_architecture(name) else {
            let supported = "llama, qwen2, qwen3, smollm3, gemma2 and gemma3 in GGUF files";
            return Err(LoadError::unsupported(gguf.metadata.path(), "architecture", name, supported));
        };
        let config = Self::Llama(LlamaConfig::from_gguf(gguf, kind)?);
        config.validate()?;
        Ok(config)
    }

    /// Checks that a model of this configuration can exist.
    ///
    /// # Errors
    ///
    /// [`LoadError::Config`] for
    /// - a size of 0, heads that do not share keys evenly, an odd head;
    /// - numbers that are not positive and finite in f32;
    /// - a combination of differences from Llama that no architecture has;
    /// - more than 2²⁴ layers, a matrix of more than 2³⁶ weights, more weights than memory can address.
    pub fn validate(&self) -> Result<(), LoadError> {
        match self {
            Self::Llama(config) => config.validate(),
            Self::Rwkv7(config) => config.validate(),
        }
    }

    /// Names and shapes of all tensors of a model of this configuration, as in files of Hugging Face. RWKV-7 is in the second version of
    /// its format ([`Rwkv7::files`](crate::Rwkv7::files)).
    pub fn tensors(&self) -> Box<dyn Iterator<Item = (String, Vec<usize>)> + '_> {
        self.tensors_of(false)
    }

    /// [`tensors`](Self::tensors), for RWKV-7 also of the first version, whose mixes are fused.
    pub(crate) fn tensors_of(&self, fused_mixes: bool) -> Box<dyn Iterator<Item = (String, Vec<usize>)> + '_> {
        match self {
            Self::Llama(config) => Box::new(config.tensors()),
            Self::Rwkv7(config) => Box::new(config.files(fused_mixes).map(|file| (file.name, file.shape))),
        }
    }

    /// Whether the output layer is the embedding, and the name of that.
    pub(crate) fn tied_embeddings(&self) -> Option<&'static str> {
        match self {
            Self::Llama(config) => config.tied_head.then_some("model.embed_tokens.weight"),
            Self::Rwkv7(config) => config.tied_head.then_some("model.embeddings.weight"),
        }
    }

    /// A `config.json` that Hugging Face's transformers reads; RWKV-7 needs flash-linear-attention there.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Llama(config) => config.to_json(),
            Self::Rwkv7(config) => config.to_json(),
        }
    }

    /// Size of the vocabulary: rows of the embedding.
    pub fn vocab_size(&self) -> usize {
        match self {
            Self::Llama(config) => config.vocab_size,
            Self::Rwkv7(config) => config.vocab_size,
        }
    }
}
