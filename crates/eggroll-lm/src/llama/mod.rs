//! The Llama architecture: RMSNorm, rotary positions, grouped-query attention, SwiGLU.

mod layer;
mod model;
mod rotary;

pub use layer::{LlamaAttention, LlamaLayer, LlamaMlp};
pub use model::Llama;
pub(crate) use rotary::Frequencies;
