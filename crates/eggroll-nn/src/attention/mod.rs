//! Attention, the same as [`burn::nn::attention`]. Masks and their generators are Burn's: they have no parameters.

mod mha;

pub use burn::nn::attention::{
    GeneratePaddingMask, MhaOutput, SeqLengthOption, generate_autoregressive_mask, generate_padding_mask,
};
pub use mha::{MhaCache, MhaInput, MultiHeadAttention, MultiHeadAttentionConfig};
