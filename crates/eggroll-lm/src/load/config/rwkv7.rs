//! RWKV-7.

use super::super::error::LoadError;
use super::bounds::{addressable, buildable, positive, positive_number, total};
use super::fields::ConfigFields;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Sizes of an RWKV-7 model, as flash-linear-attention names them.
///
/// # References
///
/// Peng et al., 2025, [RWKV-7 "Goose"](https://arxiv.org/abs/2503.14456).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rwkv7Config {
    /// Tokens: rows of the embedding.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width of channel mixing.
    pub intermediate_size: usize,
    /// Number of blocks.
    pub layers: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Rank of the decay's low-rank layers, `w`.
    pub decay_rank: usize,
    /// Rank of the in-context learning rate's low-rank layers, `a`.
    pub a_rank: usize,
    /// Rank of the value residual's low-rank layers, `v`.
    pub v_rank: usize,
    /// Rank of the gate's low-rank layers, `g`.
    pub gate_rank: usize,
    /// Term under the root of layer norms.
    pub norm_eps: f64,
    /// Whether the head is the embedding (tied word embeddings).
    pub tied_head: bool,
}

impl Rwkv7Config {
    pub(super) fn from_fields(fields: &ConfigFields) -> Result<Self, LoadError> {
        fields.only("hidden_act", "sqrelu")?;
        fields.only("norm_first", true)?;
        fields.only("norm_bias", true)?;
        fields.only("quantization_config", Value::Null)?;
        fields.only("compression_config", Value::Null)?;
        if fields.has("attn") {
            return Err(fields.unsupported("attn", "with layers of attention", "null"));
        }
        let hidden_size = fields.size("hidden_size")?;
        if fields.has("value_dim") {
            check_values(fields, hidden_size)?;
        }
        let head_dim = fields.optional_size("head_dim")?.unwrap_or(64);
        let heads = hidden_size.checked_div(head_dim).unwrap_or(0);
        fields.only("num_heads", heads)?;
        let ratio = fields.number("hidden_ratio")?.unwrap_or(4.0);
        // Rounded up to a multiple of 32.
        let by_ratio = ((hidden_size as f64 * ratio) as usize).checked_next_multiple_of(32).unwrap_or(0);
        Ok(Self {
            vocab_size: fields.size("vocab_size")?,
            hidden_size,
            intermediate_size: fields.optional_size("intermediate_size")?.unwrap_or(by_ratio),
            layers: fields.size("num_hidden_layers")?,
            head_dim,
            decay_rank: fields.size("decay_low_rank_dim")?,
            a_rank: fields.size("a_low_rank_dim")?,
            v_rank: fields.size("v_low_rank_dim")?,
            gate_rank: fields.size("gate_low_rank_dim")?,
            norm_eps: fields.number("norm_eps")?.unwrap_or(1e-5),
            tied_head: fields.flag("tie_word_embeddings")?.unwrap_or(false),
        })
    }

    pub(crate) fn validate(&self) -> Result<(), LoadError> {
        positive(&[
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("layers", self.layers),
            ("head_dim", self.head_dim),
            ("decay_rank", self.decay_rank),
            ("a_rank", self.a_rank),
            ("v_rank", self.v_rank),
            ("gate_rank", self.gate_rank),
        ])?;
        if !self.hidden_size.is_multiple_of(self.head_dim) {
            let expected = format!("a divisor of hidden_size, {}", self.hidden_size);
            return Err(LoadError::config("head_dim", self.head_dim, expected));
        }
        positive_number("norm_eps", self.norm_eps)?;
        positive_number("head_dim × norm_eps", self.head_dim as f64 * self.norm_eps)?;
        let hidden = self.hidden_size;
        buildable(
            self.layers,
            &[
                ("vocab_size × hidden_size", &[self.vocab_size, hidden]),
                ("hidden_size × hidden_size", &[hidden, hidden]),
                ("intermediate_size × hidden_size", &[self.intermediate_size, hidden]),
                ("decay_rank × hidden_size", &[self.decay_rank, hidden]),
                ("a_rank × hidden_size", &[self.a_rank, hidden]),
                ("v_rank × hidden_size", &[self.v_rank, hidden]),
                ("gate_rank × hidden_size", &[self.gate_rank, hidden]),
            ],
        )?;
        addressable(self.weights())
    }

    /// Number of weights, unless it overflows.
    fn weights(&self) -> Option<usize> {
        let embeddings = if self.tied_head { 1 } else { 2 };
        let ranks = [self.decay_rank, self.a_rank, self.v_rank, self.gate_rank];
        let ranks = ranks.iter().try_fold(0usize, |sum, &rank| sum.checked_add(rank))?;
        let layer = total(&[
            &[4, self.hidden_size, self.hidden_size],
            &[2, self.hidden_size, self.intermediate_size],
            &[2, ranks, self.hidden_size],
            // Mixing coefficients, biases and norms: vectors of the width.
            &[20, self.hidden_size],
        ])?;
        total(&[&[self.layers, layer], &[embeddings, self.vocab_size, self.hidden_size], &[4, self.hidden_size]])
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "architectures": ["RWKV7ForCausalLM"],
            "model_type": "rwkv7",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "hidden_act": "sqrelu",
            "num_hidden_layers": self.layers,
            "head_dim": self.head_dim,
            "num_heads": self.hidden_size.checked_div(self.head_dim),
            "decay_low_rank_dim": self.decay_rank,
            "a_low_rank_dim": self.a_rank,
            "v_low_rank_dim": self.v_rank,
            "gate_low_rank_dim": self.gate_rank,
            "norm_eps": self.norm_eps,
            "norm_first": true,
            "norm_bias": true,
            "tie_word_embeddings": self.tied_head,
            "use_cache": true,
        })
    }
}

/// Values as wide as the residual stream, in all layers.
fn check_values(fields: &ConfigFields, hidden: usize) -> Result<(), LoadError> {
    let widths = fields.sizes("value_dim")?;
    match widths.iter().find(|&&width| width != hidden) {
        Some(width) => Err(fields.unsupported("value_dim", width, format!("hidden_size, {hidden}"))),
        None => Ok(()),
    }
}
