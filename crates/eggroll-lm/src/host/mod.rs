//! Language models on the host: weights packed for products, rows of any sequences of any members, states kept from token to token.

mod decoder;
mod linear;
mod llama;
mod noise;
mod run;
mod tasks;

pub use decoder::{Decoder, Sequence};
pub use linear::Changed;
pub(crate) use linear::floats;
pub use llama::HostLlama;
pub(crate) use llama::transposed;
pub use noise::Noise;
pub(crate) use run::{ROWS, Run, fitting};
pub(crate) use tasks::{Task, run_parts, run_tasks};
