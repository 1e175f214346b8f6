#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod activation;
mod adapter;
pub mod attention;
mod batch_norm;
mod bi_gru;
mod bi_lstm;
pub mod cache;
mod check;
mod conv1d;
mod conv2d;
mod convolution;
mod drop_in;
mod embedding;
mod gate_controller;
#[cfg(feature = "graph")]
pub mod graph;
mod gru;
pub mod integer;
mod layer_norm;
mod linear;
pub mod loss;
mod lstm;
mod minimal_gru;
mod mlp;
mod per_member;
mod rms_norm;
pub mod transformer;
pub mod weights;

pub use batch_norm::{BatchNorm, BatchNormConfig};
pub use bi_gru::{BiGru, BiGruConfig};
pub use bi_lstm::{BiLstm, BiLstmConfig};
// Burn's modules without parameters are the same for every member and take `members · rows` rows like any others.
pub use burn::nn::{
    Dropout, DropoutConfig, Gelu, Initializer, LeakyRelu, LeakyReluConfig, LstmState, PaddingConfig1d, PaddingConfig2d,
    PositionalEncoding, PositionalEncodingConfig, Relu, RotaryEncoding, RotaryEncodingConfig, Sigmoid, Tanh,
    generate_sinusoids, pool,
};
pub use conv1d::{Conv1d, Conv1dConfig};
pub use conv2d::{Conv2d, Conv2dConfig};
pub use embedding::{Embedding, EmbeddingConfig};
pub use gate_controller::GateController;
pub use gru::{Gru, GruConfig};
pub use layer_norm::{LayerNorm, LayerNormConfig};
pub use linear::{Linear, LinearConfig};
pub use lstm::{Lstm, LstmConfig};
pub use minimal_gru::{MinimalGru, MinimalGruConfig};
pub use mlp::{Mlp, MlpConfig};
pub use rms_norm::{RmsNorm, RmsNormConfig};

/// Convolutions, under the path that they have in `burn::nn`.
pub mod conv {
    pub use crate::{Conv1d, Conv1dConfig, Conv2d, Conv2dConfig};
}
