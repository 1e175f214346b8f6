//! The Llama family in GGUF files.

use super::super::error::LoadError;
use super::super::gguf::{Gguf, Metadata};
use super::super::source::Source;
use super::super::weights::Encoding;
use super::llama::LlamaConfig;
use super::rope::RopeScaling;

impl LlamaConfig {
    pub(super) fn from_gguf(gguf: &Gguf, kind: &str) -> Result<Self, LoadError> {
        let metadata = &gguf.metadata;
        let key = |name: &str| format!("{kind}.{name}");
        let size = |name: &str| metadata.required(&key(name), metadata.size(&key(name))?);
        check(gguf, kind)?;
        let (hidden_size, heads) = (size("embedding_length")?, size("attention.head_count")?);
        let head_dim = match metadata.size(&key("attention.key_length"))? {
            Some(size) => size,
            None => hidden_size.checked_div(heads).unwrap_or(0),
        };
        for name in ["rope.dimension_count", "attention.value_length"] {
            if let Some(found) = metadata.size(&key(name))?.filter(|&size| size != head_dim) {
                return Err(LoadError::unsupported(
                    metadata.path(),
                    key(name),
                    found,
                    format!("{head_dim}, the size of a head"),
                ));
            }
        }
        let rope_theta = metadata.number(&key("rope.freq_base"))?.unwrap_or(10_000.0);
        let embedding = gguf.tensor("token_embd.weight").and_then(|tensor| tensor.shape.first().copied());
        let vocab_size = metadata.size(&key("vocab_size"))?.or(embedding);
        Ok(Self {
            vocab_size: metadata.required(&key("vocab_size"), vocab_size)?,
            hidden_size,
            intermediate_size: size("feed_forward_length")?,
            layers: size("block_count")?,
            heads,
            kv_heads: metadata.size(&key("attention.head_count_kv"))?.unwrap_or(heads),
            head_dim,
            rope_theta,
            rope_scaling: scaling(gguf, kind, head_dim, rope_theta)?,
            rms_norm_eps: metadata.required(
                &key("attention.layer_norm_rms_epsilon"),
                metadata.number(&key("attention.layer_norm_rms_epsilon"))?,
            )?,
            context_length: size("context_length")?,
            tied_head: gguf.tensor("output.weight").is_none(),
            attention_bias: gguf.tensor("blk.0.attn_q.bias").is_some(),
        })
    }
}

/// Refuses relatives of Llama that compute something else.
fn check(gguf: &Gguf, kind: &str) -> Result<(), LoadError> {
    let metadata = &gguf.metadata;
    let experts = format!("{kind}.expert_count");
    if let Some(found) = metadata.size(&experts)?.filter(|&count| count > 0) {
        return Err(LoadError::unsupported(metadata.path(), experts, found, "no mixture of experts"));
    }
    let window = format!("{kind}.attention.sliding_window");
    let context = metadata.size(&format!("{kind}.context_length"))?.unwrap_or(0);
    if let Some(found) = metadata.size(&window)?.filter(|&window| window > 0 && window < context) {
        return Err(LoadError::unsupported(metadata.path(), window, found, format!("none, or {context} and more")));
    }
    let known =
        ["attn_output.bias", "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias", "attn_q_norm.weight", "attn_qkv.weight"];
    let found = known.iter().map(|part| format!("blk.0.{part}")).find(|name| gguf.tensor(name).is_some());
    match found {
        Some(name) => {
            Err(LoadError::unsupported(metadata.path(), "tensor", name, "biases of queries, keys and values only"))
        }
        None => Ok(()),
    }
}

/// Linear scaling is metadata; that of Llama 3 is a tensor with what each frequency is divided by.
fn scaling(gguf: &Gguf, kind: &str, head_dim: usize, theta: f64) -> Result<RopeScaling, LoadError> {
    let metadata = &gguf.metadata;
    if let Some(divisors) = divisors(gguf)? {
        return llama3(metadata, &divisors, head_dim, theta);
    }
    let old = metadata.number(&format!("{kind}.rope.scale_linear"))?;
    let factor = metadata.number(&format!("{kind}.rope.scaling.factor"))?.or(old);
    match metadata.text(&format!("{kind}.rope.scaling.type"))? {
        Some("linear") => Ok(RopeScaling::Linear { factor: metadata.required("rope.scaling.factor", factor)? }),
        Some("none") => Ok(RopeScaling::None),
        None => Ok(factor
            .filter(|&factor| factor != 1.0)
            .map_or(RopeScaling::None, |factor| RopeScaling::Linear { factor })),
        Some(found) => {
            Err(LoadError::unsupported(metadata.path(), "rope.scaling.type", found, "none, linear, factors of Llama 3"))
        }
    }
}

fn divisors(gguf: &Gguf) -> Result<Option<Vec<f32>>, LoadError> {
    let Some(tensor) = gguf.tensor("rope_freqs.weight") else { return Ok(None) };
    if tensor.encoding != Encoding::F32 {
        let found = tensor.encoding.name();
        return Err(LoadError::unsupported(gguf.source.path(), "type of rope_freqs.weight", found, "F32"));
    }
    floats(&gguf.source, tensor.offset, tensor.bytes().unwrap_or(0)).map(Some)
}

fn floats(source: &Source, offset: u64, bytes: u64) -> Result<Vec<f32>, LoadError> {
    let bytes = source.range(offset, bytes)?.unwrap_or_default();
    Ok(bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
}

/// The settings are those of every published Llama 3 but for the factor, which is the largest divisor.
fn llama3(metadata: &Metadata, divisors: &[f32], head_dim: usize, theta: f64) -> Result<RopeScaling, LoadError> {
    let factor = f64::from(divisors.iter().copied().fold(1.0, f32::max));
    let scaling = RopeScaling::Llama3 { factor, low_freq_factor: 1.0, high_freq_factor: 4.0, original_context: 8192 };
    let expected = if head_dim / 2 == divisors.len() { scaling.divisors(head_dim, theta) } else { Vec::new() };
    let close = |(found, expected): (&f32, &f64)| (f64::from(*found) - expected).abs() <= 1e-3 * expected;
    if expected.len() == divisors.len() && divisors.iter().zip(&expected).all(close) {
        return Ok(scaling);
    }
    let found = "with other factors than those of Llama 3";
    Err(LoadError::unsupported(
        metadata.path(),
        "tensor rope_freqs.weight",
        found,
        "low 1, high 4, original context 8192",
    ))
}
