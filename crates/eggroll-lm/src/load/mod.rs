//! Pretrained models on disk: Hugging Face folders with SafeTensors, and GGUF files.
//!
//! [`Pretrained::open`] opens everything that belongs to a model; [`Weights`], [`ModelConfig`], [`Tokenizer`] and [`ChatTemplate`] open
//! alone too. [`save_model`] writes a folder that Hugging Face's transformers reads.
//!
//! Files are not trusted: opening any file returns an error or a model, and takes memory in proportion to its size.

mod cache;
mod chat;
pub(crate) mod config;
mod encoding;
mod error;
mod gguf;
mod jinja;
mod kind;
mod model_files;
mod pretrained;
mod replacement;
mod save;
mod source;
mod stale;
mod tokenizer;
mod weights;

pub use cache::smollm2_path;
pub use chat::{ChatTemplate, Message};
pub use config::{AttentionWindow, GemmaConfig, LayerAttention, LlamaConfig, ModelConfig, RopeScaling, Rwkv7Config};
pub(crate) use encoding::Encoding;
pub use error::LoadError;
pub use pretrained::Pretrained;
pub use save::{SavedDtype, save_model};
pub use tokenizer::{SpecialTokens, Tokenizer};
pub(crate) use weights::StoredMatrix;
pub use weights::Weights;
