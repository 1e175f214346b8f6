#![doc = include_str!("../README.md")]

mod activation;
pub mod attention;
mod bi_gru;
mod bi_lstm;
pub mod cache;
mod gate_controller;
mod gru;
pub mod integer;
mod layer_norm;
mod linear;
pub mod loss;
mod lstm;
mod minimal_gru;
pub mod transformer;

// Without parameters, Burn's own are the same for every member and take `members · rows` rows as they take any.
pub use bi_gru::{BiGru, BiGruConfig};
pub use bi_lstm::{BiLstm, BiLstmConfig};
pub use burn::nn::{
    LstmState, PositionalEncoding, PositionalEncodingConfig, RotaryEncoding, RotaryEncodingConfig, generate_sinusoids,
};
pub use gate_controller::GateController;
pub use gru::{Gru, GruConfig};
pub use layer_norm::{LayerNorm, LayerNormConfig};
pub use linear::{Linear, LinearConfig};
pub use lstm::{Lstm, LstmConfig};
pub use minimal_gru::{MinimalGru, MinimalGruConfig};
