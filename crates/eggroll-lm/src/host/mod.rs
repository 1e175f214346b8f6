//! Language models on the host: weights packed for products, rows of any sequences of any members, states kept from token to token.

mod decoder;
mod embeddings;
mod head;
mod linear;
mod llama;
mod noise;
mod rwkv7;
mod tasks;

pub use decoder::{Decoder, Sequence};
pub use linear::Changed;
pub use llama::HostLlama;
pub(crate) use llama::Moves;
pub use noise::Noise;
pub use rwkv7::{HostRwkv7, Rwkv7LayerState, Rwkv7State};
pub(crate) use tasks::{MemberTask, ROWS, fitting, run_parts, run_tasks};
