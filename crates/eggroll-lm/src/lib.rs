#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod causal;
mod device;
mod error;
mod finetune;
mod generation;
pub mod host;
mod items;
mod language_model;
pub mod llama;
pub mod load;
mod on_host;
mod quantized;
pub mod reward;
mod rows;
mod run;
pub mod rwkv7;
mod sampling;
mod scoring;
mod tunable;
mod values;

pub use causal::CausalModel;
pub use error::Error;
#[cfg(feature = "learner")]
pub use finetune::Lessons;
pub use finetune::{
    Completion, Episode, Finetune, FinetuneConfig, Lesson, Questions, StepReport, Verification, WrittenLesson,
};
pub use generation::{GenerateError, generate, generate_population};
pub use host::{Decoder, HostLlama, HostRwkv7};
pub use items::{Item, Items, ItemsError, TokenLimits};
pub use language_model::{Generated, LanguageModel, Scored};
pub use llama::Llama;
pub use quantized::QuantizedLlama;
pub use rwkv7::Rwkv7;
pub use sampling::{SamplingConfig, SamplingError};
pub use scoring::{score, score_population};
pub use tunable::Tunable;
