#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod host;
mod items;
pub mod llama;
pub mod load;
pub mod reward;
mod scoring;
pub mod task;

pub use host::{Decoder, HostLlama};
pub use items::{Item, Items, ItemsError};
pub use llama::Llama;
pub use scoring::{Scored, score, score_population};
