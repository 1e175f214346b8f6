//! A small model of letters.

#[path = "letters.rs"]
mod letters;

pub use letters::tokenizer;

use eggroll_lm::load::{LlamaConfig, RopeScaling};

/// A model of two layers for it.
pub fn config() -> LlamaConfig {
    LlamaConfig {
        vocab_size: 27,
        hidden_size: 32,
        intermediate_size: 48,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        head_dim: 8,
        rope_theta: 1e4,
        rope_scaling: RopeScaling::None,
        rms_norm_eps: 1e-5,
        context_length: 32,
        tied_head: false,
        attention_bias: false,
        qk_norm: false,
        window: None,
        attention: Vec::new(),
        gemma: None,
    }
}
