//! Settings of a `config.json` that would change the result.

use super::super::error::LoadError;
use super::super::kind::Kind;
use super::fields::ConfigFields;
use serde_json::Value;

/// Refuses settings that would change the result, unless they change nothing or are read.
pub(super) fn check_neutral(fields: &ConfigFields, kind: Kind) -> Result<(), LoadError> {
    let activation = if kind.is_gemma() { "gelu_pytorch_tanh" } else { "silu" };
    fields.only("hidden_act", activation)?;
    fields.only("hidden_activation", activation)?;
    fields.only("is_causal", true)?;
    if kind != Kind::Qwen2 {
        // It would add a bias to the output projection too.
        fields.only("attention_bias", false)?;
    }
    let off =
        ["mlp_bias", "attention_out_bias", "use_bias", "use_qk_norm", "qk_norm", "qk_layernorm", "alibi", "use_alibi"];
    off.iter().chain(&["use_bidirectional_attention"]).try_for_each(|key| fields.only(key, false))?;
    let factors = ["residual_multiplier", "embedding_multiplier", "logits_scaling", "logit_scale", "scale_emb"];
    factors.iter().chain(&["partial_rotary_factor", "rotary_pct"]).try_for_each(|key| fields.only(key, 1.0))?;
    ["num_experts", "num_local_experts", "n_routed_experts"].iter().try_for_each(|key| fields.only(key, 0))?;
    let gemma = ["query_pre_attn_scalar", "final_logit_softcapping", "attn_logit_softcapping"];
    let smollm3 = ["no_rope_layers", "no_rope_layer_interval"];
    let gemma = gemma.iter().filter(|_| !kind.is_gemma());
    let smollm3 = smollm3.iter().filter(|_| kind != Kind::SmolLm3);
    let others = ["attention_multiplier", "clip_qkv", "scale_depth", "dim_model_base", "transformers_weights"];
    let stored = ["quantization_config", "compression_config"];
    let none = gemma.chain(smollm3).chain(&others).chain(&stored);
    none.copied().try_for_each(|key| fields.only(key, Value::Null))
}
