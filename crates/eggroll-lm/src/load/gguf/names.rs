//! Names of Hugging Face for the tensors of a GGUF file.

use super::super::kind::Kind;

/// The name of Hugging Face for a tensor of an architecture; other names stay as they are.
pub(crate) fn hugging_face(kind: Kind, name: &str) -> String {
    known(kind, name).unwrap_or_else(|| name.to_owned())
}

fn known(kind: Kind, name: &str) -> Option<String> {
    match name {
        "token_embd.weight" => return Some("model.embed_tokens.weight".into()),
        "output_norm.weight" => return Some("model.norm.weight".into()),
        "output.weight" => return Some("lm_head.weight".into()),
        _ => {}
    }
    let (layer, part) = name.strip_prefix("blk.")?.split_once('.')?;
    let (part, value) = part.rsplit_once('.')?;
    let part = match part {
        "attn_norm" => "input_layernorm",
        "ffn_norm" if !kind.is_gemma() => "post_attention_layernorm",
        "ffn_norm" => "pre_feedforward_layernorm",
        "post_attention_norm" if kind.is_gemma() => "post_attention_layernorm",
        "post_ffw_norm" if kind.is_gemma() => "post_feedforward_layernorm",
        "attn_q_norm" if kind.has_qk_norm() => "self_attn.q_norm",
        "attn_k_norm" if kind.has_qk_norm() => "self_attn.k_norm",
        "attn_q" => "self_attn.q_proj",
        "attn_k" => "self_attn.k_proj",
        "attn_v" => "self_attn.v_proj",
        "attn_output" => "self_attn.o_proj",
        "ffn_gate" => "mlp.gate_proj",
        "ffn_up" => "mlp.up_proj",
        "ffn_down" => "mlp.down_proj",
        _ => return None,
    };
    let canonical = layer.parse::<u32>().is_ok_and(|number| number.to_string() == layer);
    canonical.then(|| format!("model.layers.{layer}.{part}.{value}"))
}

#[cfg(test)]
mod tests {
    use super::{Kind, hugging_face};

    #[test]
    fn names_of_the_layers_are_translated() {
        let gemma = |name: &str| hugging_face(Kind::Gemma3, name);
        assert_eq!(gemma("blk.0.ffn_norm.weight"), "model.layers.0.pre_feedforward_layernorm.weight");
        assert_eq!(gemma("blk.1.attn_k_norm.weight"), "model.layers.1.self_attn.k_norm.weight");
        let hugging_face = |name: &str| hugging_face(Kind::Llama, name);
        assert_eq!(hugging_face("blk.1.attn_k_norm.weight"), "blk.1.attn_k_norm.weight");
        assert_eq!(hugging_face("token_embd.weight"), "model.embed_tokens.weight");
        assert_eq!(hugging_face("blk.12.attn_k.bias"), "model.layers.12.self_attn.k_proj.bias");
        assert_eq!(hugging_face("blk.0.ffn_norm.weight"), "model.layers.0.post_attention_layernorm.weight");
        assert_eq!(hugging_face("rope_freqs.weight"), "rope_freqs.weight");
        assert_eq!(hugging_face("blk.x.attn_k.weight"), "blk.x.attn_k.weight");
    }
}
