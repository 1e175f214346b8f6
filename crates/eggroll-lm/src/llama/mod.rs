//! The Llama architecture: RMSNorm, rotary positions, grouped-query attention, SwiGLU.

mod cache;
mod layer;
mod model;
mod positions;
mod rotary;

pub(crate) use cache::KvCache;
pub use layer::{LlamaAttention, LlamaLayer, LlamaMlp};
pub use model::Llama;
pub(crate) use rotary::Frequencies;
