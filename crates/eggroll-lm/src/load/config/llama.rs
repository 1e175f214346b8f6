//! The Llama family.

use super::super::error::LoadError;
use super::super::kind::Kind;
use super::attention::{self, AttentionWindow, LayerAttention};
use super::bounds::{addressable, buildable, positive, positive_number, total};
use super::fields::ConfigFields;
use super::gemma::GemmaConfig;
use super::neutral::check_neutral;
use super::rope::{self, RopeScaling};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Sizes of a transformer of the Llama family, and its differences from Llama.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LlamaConfig {
    /// Tokens: rows of the embedding.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width of the feed-forward layers.
    pub intermediate_size: usize,
    /// Number of blocks.
    pub layers: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values, each shared by `heads / kv_heads` heads of queries (grouped-query attention).
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Base `θ` of the rotary frequencies `θ^(−2i / head_dim)`.
    pub rope_theta: f64,
    /// Scaling of the rotary frequencies.
    pub rope_scaling: RopeScaling,
    /// Term under the root of RMSNorm.
    pub rms_norm_eps: f64,
    /// Longest sequence that the model was made for.
    pub context_length: usize,
    /// Whether the head is the embedding (tied word embeddings).
    pub tied_head: bool,
    /// Whether queries, keys and values have biases, as in Qwen2.
    pub attention_bias: bool,
    /// Whether queries and keys are normalized (RMSNorm) in each head, as in Qwen3 and Gemma-3.
    #[serde(default)]
    pub qk_norm: bool,
    /// The window of the layers that do not see all positions.
    #[serde(default)]
    pub window: Option<AttentionWindow>,
    /// The attention of each layer; empty if all layers see all positions and turn queries and keys.
    #[serde(default)]
    pub attention: Vec<LayerAttention>,
    /// Settings of the Gemma family.
    #[serde(default)]
    pub gemma: Option<GemmaConfig>,
}

impl LlamaConfig {
    pub(super) fn from_fields(fields: &ConfigFields, kind: Kind) -> Result<Self, LoadError> {
        check_neutral(fields, kind)?;
        let defaults = kind.defaults();
        let context_length = fields.optional_size("max_position_embeddings")?.unwrap_or(defaults.context);
        let layers = fields.size("num_hidden_layers")?;
        // Before a list of layers is allocated.
        buildable(layers, &[])?;
        let (hidden_size, heads) = (fields.size("hidden_size")?, fields.size("num_attention_heads")?);
        let even = defaults.head_dim.unwrap_or(hidden_size.checked_div(heads).unwrap_or(0));
        // Null means the number of query heads.
        let missing = defaults.kv_heads.filter(|_| !fields.is_named("num_key_value_heads")).unwrap_or(heads);
        let rope = match kind {
            Kind::Gemma3 => rope::by_layer(fields, defaults.rope_theta, context_length)?,
            _ => rope::for_all(fields, defaults.rope_theta, context_length)?,
        };
        let (window, attention) = attention::from_fields(fields, kind, context_length, layers, rope.window_theta)?;
        Ok(Self {
            vocab_size: fields.size("vocab_size")?,
            hidden_size,
            intermediate_size: fields.size("intermediate_size")?,
            layers,
            heads,
            kv_heads: fields.optional_size("num_key_value_heads")?.unwrap_or(missing),
            head_dim: fields.optional_size("head_dim")?.unwrap_or(even),
            rope_theta: rope.theta,
            rope_scaling: rope.scaling,
            rms_norm_eps: fields.number("rms_norm_eps")?.unwrap_or(1e-6),
            context_length,
            tied_head: fields.flag("tie_word_embeddings")?.unwrap_or(defaults.tied_head),
            attention_bias: kind == Kind::Qwen2,
            qk_norm: kind.has_qk_norm(),
            window,
            attention,
            gemma: GemmaConfig::from_fields(fields, kind)?,
        })
    }

    pub(crate) fn validate(&self) -> Result<(), LoadError> {
        positive(&[
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("layers", self.layers),
            ("heads", self.heads),
            ("kv_heads", self.kv_heads),
            ("head_dim", self.head_dim),
            ("context_length", self.context_length),
        ])?;
        if !self.heads.is_multiple_of(self.kv_heads) {
            return Err(LoadError::config("kv_heads", self.kv_heads, format!("a divisor of heads, {}", self.heads)));
        }
        if !self.head_dim.is_multiple_of(2) {
            return Err(LoadError::config("head_dim", self.head_dim, "an even size, for rotary pairs"));
        }
        positive_number("rope_theta", self.rope_theta)?;
        positive_number("rms_norm_eps", self.rms_norm_eps)?;
        self.rope_scaling.validate()?;
        self.validate_attention()?;
        self.gemma.map_or(Ok(()), |gemma| gemma.validate())?;
        self.kind()?;
        buildable(
            self.layers,
            &[
                ("vocab_size × hidden_size", &[self.vocab_size, self.hidden_size]),
                ("heads × head_dim × hidden_size", &[self.heads, self.head_dim, self.hidden_size]),
                ("intermediate_size × hidden_size", &[self.intermediate_size, self.hidden_size]),
            ],
        )?;
        addressable(self.weights())
    }

    /// Number of weights, unless it overflows.
    fn weights(&self) -> Option<usize> {
        let embeddings = if self.tied_head { 1 } else { 2 };
        let biases = usize::from(self.attention_bias);
        let (norms, head_norms) = (if self.gemma.is_some() { 4 } else { 2 }, 2 * usize::from(self.qk_norm));
        let layer = total(&[
            &[2, self.heads, self.head_dim, self.hidden_size],
            &[2, self.kv_heads, self.head_dim, self.hidden_size],
            &[3, self.intermediate_size, self.hidden_size],
            &[norms, self.hidden_size],
            &[head_norms, self.head_dim],
            &[biases, self.heads, self.head_dim],
            &[2, biases, self.kv_heads, self.head_dim],
        ])?;
        total(&[&[self.layers, layer], &[embeddings, self.vocab_size, self.hidden_size], &[self.hidden_size]])
    }

    /// Names and shapes of all tensors of a model of this configuration, as Hugging Face names them.
    ///
    /// # Example
    ///
    /// ```no_run
    /// # use eggroll_lm::load::{LlamaConfig, LoadError, Weights};
    /// # fn all(config: &LlamaConfig, weights: &Weights) -> Result<(), LoadError> {
    /// for (name, shape) in config.tensors() {
    ///     let values = weights.read(&name, &shape)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn tensors(&self) -> impl Iterator<Item = (String, Vec<usize>)> {
        let head = (!self.tied_head).then(|| ("lm_head.weight".into(), vec![self.vocab_size, self.hidden_size]));
        let first = ("model.embed_tokens.weight".into(), vec![self.vocab_size, self.hidden_size]);
        let norm = ("model.norm.weight".into(), vec![self.hidden_size]);
        [first]
            .into_iter()
            .chain((0..self.layers).flat_map(|layer| self.layer_tensors(layer)))
            .chain([norm])
            .chain(head)
    }

    /// The number subtracted from stored gains of normalizations: 1 in the Gemma family.
    pub(crate) fn gain_offset(&self) -> f32 {
        if self.gemma.is_some() { 1.0 } else { 0.0 }
    }

    fn layer_tensors(&self, layer: usize) -> Vec<(String, Vec<usize>)> {
        let (hidden, inner) = (self.hidden_size, self.intermediate_size);
        let (queries, keys) = (self.heads.saturating_mul(self.head_dim), self.kv_heads.saturating_mul(self.head_dim));
        let mut parts = vec![
            ("input_layernorm.weight", vec![hidden]),
            ("self_attn.q_proj.weight", vec![queries, hidden]),
            ("self_attn.k_proj.weight", vec![keys, hidden]),
            ("self_attn.v_proj.weight", vec![keys, hidden]),
            ("self_attn.o_proj.weight", vec![hidden, queries]),
            ("post_attention_layernorm.weight", vec![hidden]),
            ("mlp.gate_proj.weight", vec![inner, hidden]),
            ("mlp.up_proj.weight", vec![inner, hidden]),
            ("mlp.down_proj.weight", vec![hidden, inner]),
        ];
        if self.gemma.is_some() {
            parts.push(("pre_feedforward_layernorm.weight", vec![hidden]));
            parts.push(("post_feedforward_layernorm.weight", vec![hidden]));
        }
        if self.qk_norm {
            parts.push(("self_attn.q_norm.weight", vec![self.head_dim]));
            parts.push(("self_attn.k_norm.weight", vec![self.head_dim]));
        }
        if self.attention_bias {
            parts.push(("self_attn.q_proj.bias", vec![queries]));
            parts.push(("self_attn.k_proj.bias", vec![keys]));
            parts.push(("self_attn.v_proj.bias", vec![keys]));
        }
        parts.into_iter().map(|(part, shape)| (format!("model.layers.{layer}.{part}"), shape)).collect()
    }

    /// In the format of transformers, for the architecture that computes the same.
    pub(super) fn to_json(&self) -> Value {
        // An invalid configuration is also written; no model has one.
        let kind = self.kind().unwrap_or(Kind::Llama);
        let (name, class) = kind.names();
        let mut json = json!({
            "architectures": [class],
            "model_type": name,
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "rope_theta": self.rope_theta,
            "rope_scaling": self.rope_scaling.to_json(),
            "rms_norm_eps": self.rms_norm_eps,
            "max_position_embeddings": self.context_length,
            "tie_word_embeddings": self.tied_head,
            "use_cache": true,
        });
        if let Some(json) = json.as_object_mut() {
            if let Some(gemma) = self.gemma {
                json.remove("hidden_act");
                json.extend(gemma.to_json());
            }
            json.extend(self.attention_json(kind));
        }
        json
    }
}
