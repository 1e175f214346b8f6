//! The transformer encoder, the same as [`burn::nn::transformer`]'s. With a causal mask it is a decoder-only model.

mod config;
mod encoder;
mod layer;
mod pwff;

pub use config::TransformerEncoderConfig;
pub use encoder::{TransformerEncoder, TransformerEncoderAutoregressiveCache, TransformerEncoderInput};
pub use layer::{TransformerEncoderLayer, TransformerEncoderLayerAutoregressiveCache};
pub use pwff::{PositionWiseFeedForward, PositionWiseFeedForwardConfig};
