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
