//! The Llama family.

use super::super::error::LoadError;
use super::bounds::{addressable, buildable, positive, positive_number, total};
use super::fields::ConfigFields;
use super::rope::{RopeScaling, theta};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Sizes of a transformer of the Llama family.
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
}

impl LlamaConfig {
    pub(super) fn from_fields(fields: &ConfigFields, kind: &str) -> Result<Self, LoadError> {
        check_neutral(fields)?;
        if kind != "qwen2" {
            // It would add a bias to the output projection too.
            fields.only("attention_bias", false)?;
        }
        // Defaults of transformers, where a field is missing.
        let (context, heads_of_keys) = match kind {
            "mistral" => (131_072, Some(8)),
            "qwen2" => (32_768, Some(32)),
            _ => (2048, None),
        };
        let context_length = fields.optional_size("max_position_embeddings")?.unwrap_or(context);
        let layers = fields.size("num_hidden_layers")?;
        check_window(fields, kind, context_length, layers)?;
        let (hidden_size, heads) = (fields.size("hidden_size")?, fields.size("num_attention_heads")?);
        let even = hidden_size.checked_div(heads).unwrap_or(0);
        // Null means as many as heads of queries.
        let missing = heads_of_keys.filter(|_| !fields.is_named("num_key_value_heads")).unwrap_or(heads);
        Ok(Self {
            vocab_size: fields.size("vocab_size")?,
            hidden_size,
            intermediate_size: fields.size("intermediate_size")?,
            layers,
            heads,
            kv_heads: fields.optional_size("num_key_value_heads")?.unwrap_or(missing),
            head_dim: fields.optional_size("head_dim")?.unwrap_or(even),
            rope_theta: theta(fields)?,
            rope_scaling: RopeScaling::from_fields(fields, context_length)?,
            rms_norm_eps: fields.number("rms_norm_eps")?.unwrap_or(1e-6),
            context_length,
            tied_head: fields.flag("tie_word_embeddings")?.unwrap_or(false),
            attention_bias: kind == "qwen2",
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
        let layer = total(&[
            &[2, self.heads, self.head_dim, self.hidden_size],
            &[2, self.kv_heads, self.head_dim, self.hidden_size],
            &[3, self.intermediate_size, self.hidden_size],
            &[2, self.hidden_size],
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

    /// `[outputs, inputs]` of the linear layers of a layer: q, k, v, o, gate, up, down.
    pub(crate) fn linear_shapes(&self) -> [[usize; 2]; 7] {
        let (hidden, inner) = (self.hidden_size, self.intermediate_size);
        let [queries, keys] = [self.heads, self.kv_heads].map(|heads| heads.saturating_mul(self.head_dim));
        [
            [queries, hidden],
            [keys, hidden],
            [keys, hidden],
            [hidden, queries],
            [inner, hidden],
            [inner, hidden],
            [hidden, inner],
        ]
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
        if self.attention_bias {
            parts.push(("self_attn.q_proj.bias", vec![queries]));
            parts.push(("self_attn.k_proj.bias", vec![keys]));
            parts.push(("self_attn.v_proj.bias", vec![keys]));
        }
        parts.into_iter().map(|(part, shape)| (format!("model.layers.{layer}.{part}"), shape)).collect()
    }

    /// Transformers calls the same model with biases Qwen2.
    pub(super) fn to_json(&self) -> Value {
        let (kind, class) =
            if self.attention_bias { ("qwen2", "Qwen2ForCausalLM") } else { ("llama", "LlamaForCausalLM") };
        json!({
            "architectures": [class],
            "model_type": kind,
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
        })
    }
}

/// Refuses settings that would change the result, unless they change nothing.
fn check_neutral(fields: &ConfigFields) -> Result<(), LoadError> {
    fields.only("hidden_act", "silu")?;
    fields.only("hidden_activation", "silu")?;
    fields.only("is_causal", true)?;
    let off =
        ["mlp_bias", "attention_out_bias", "use_bias", "use_qk_norm", "qk_norm", "qk_layernorm", "alibi", "use_alibi"];
    off.iter().chain(&["use_bidirectional_attention"]).try_for_each(|key| fields.only(key, false))?;
    let factors = ["residual_multiplier", "embedding_multiplier", "logits_scaling", "logit_scale", "scale_emb"];
    factors.iter().chain(&["partial_rotary_factor", "rotary_pct"]).try_for_each(|key| fields.only(key, 1.0))?;
    ["num_experts", "num_local_experts", "n_routed_experts"].iter().try_for_each(|key| fields.only(key, 0))?;
    let none = ["attention_multiplier", "query_pre_attn_scalar", "final_logit_softcapping", "attn_logit_softcapping"];
    let others = [
        "clip_qkv",
        "scale_depth",
        "dim_model_base",
        "no_rope_layers",
        "no_rope_layer_interval",
        "transformers_weights",
    ];
    let stored = ["quantization_config", "compression_config"];
    none.iter().chain(&others).chain(&stored).try_for_each(|key| fields.only(key, Value::Null))?;
    let types = fields.texts("layer_types")?.unwrap_or_default();
    match types.into_iter().find(|kind| *kind != "full_attention") {
        Some(found) => Err(fields.unsupported("layer_types", found, "full_attention")),
        None => Ok(()),
    }
}

/// Refuses attention that sees only the newest tokens, unless that is all of them.
fn check_window(fields: &ConfigFields, kind: &str, context: usize, layers: usize) -> Result<(), LoadError> {
    let used = match kind {
        // Layers from this one on have the window, unless their types are given.
        "qwen2" => {
            fields.flag("use_sliding_window")?.unwrap_or(false)
                && !fields.has("layer_types")
                && fields.optional_size("max_window_layers")?.unwrap_or(28) < layers
        }
        "mistral" => true,
        _ => false,
    };
    // Null means none, a missing field what transformers takes for it.
    let (window, missing) = match fields.is_named("sliding_window") {
        true => (fields.optional_size("sliding_window")?, ""),
        false => (Some(4096), ", which is what a missing field means"),
    };
    match window.filter(|window| used && *window < context) {
        Some(window) => Err(fields.unsupported(
            "sliding_window",
            format!("{window}{missing}"),
            format!("null, or {context} and more"),
        )),
        None => Ok(()),
    }
}
