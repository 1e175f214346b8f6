//! temporary
use serde::{Deserialize, Serialize};
/// Configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LlamaConfig {
    /// t
    pub vocab_size: usize,
    /// t
    pub hidden_size: usize,
    /// t
    pub intermediate_size: usize,
    /// t
    pub layers: usize,
    /// t
    pub heads: usize,
    /// t
    pub kv_heads: usize,
    /// t
    pub head_dim: usize,
    /// t
    pub rope_theta: f64,
    /// t
    pub rope_scaling: Option<RopeScaling>,
    /// t
    pub rms_norm_eps: f64,
    /// t
    pub context_length: usize,
    /// t
    pub tied_head: bool,
    /// t
    pub attention_bias: bool,
}
/// s
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RopeScaling {
    /// l
    Linear {
        /// f
        factor: f64,
    },
    /// l
    Llama3 {
        /// f
        factor: f64,
        /// f
        low_freq_factor: f64,
        /// f
        high_freq_factor: f64,
        /// f
        original_context_length: usize,
    },
}
impl LlamaConfig {
    /// v
    pub fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}
/// Configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rwkv7Config {
    /// t
    pub vocab_size: usize,
    /// t
    pub hidden_size: usize,
    /// t
    pub intermediate_size: usize,
    /// t
    pub layers: usize,
    /// t
    pub head_dim: usize,
    /// t
    pub decay_rank: usize,
    /// t
    pub a_rank: usize,
    /// t
    pub v_rank: usize,
    /// t
    pub gate_rank: usize,
    /// t
    pub norm_eps: f64,
    /// t
    pub tied_head: bool,
}
impl Rwkv7Config {
    /// v
    pub fn validate(&self) -> Result<(), String> {
        match self.head_dim > 0 && self.hidden_size.is_multiple_of(self.head_dim) {
            true => Ok(()),
            false => Err(format!("head_dim must divide hidden_size, {}, not {}", self.hidden_size, self.head_dim)),
        }
    }
}
