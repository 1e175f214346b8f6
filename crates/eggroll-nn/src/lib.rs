#![doc = include_str!("../README.md")]

mod batch_norm;
mod conv1d;
mod conv2d;
mod convolution;
mod embedding;
pub mod integer;
mod layer_norm;
mod linear;
pub mod loss;
mod per_member;
mod rms_norm;

pub use batch_norm::{BatchNorm, BatchNormConfig};
pub use conv1d::{Conv1d, Conv1dConfig};
pub use conv2d::{Conv2d, Conv2dConfig};
pub use embedding::{Embedding, EmbeddingConfig};
pub use layer_norm::{LayerNorm, LayerNormConfig};
pub use linear::{Linear, LinearConfig};
pub use rms_norm::{RmsNorm, RmsNormConfig};
