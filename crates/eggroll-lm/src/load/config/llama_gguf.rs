//! The Llama family in GGUF files.

use super::super::encoding::Encoding;
use super::super::error::LoadError;
use super::super::gguf::{self, Gguf, Metadata};
use super::super::source::SourceFile;
use super::llama::LlamaConfig;
use super::rope::RopeScaling;

impl LlamaConfig {
    pub(super) fn from_gguf(gguf: &Gguf, kind: &str) -> Result<Self, LoadError> {
        let metadata = &gguf.metadata;
        let key = |name: &str| format!("{kind}.{name}");
        let size = |name: &str| metadata.required(&key(name), metadata.size(&key(name))?);
        check(gguf, kind)?;
        let embedding = gguf.tensor("token_embd.weight").and_then(|tensor| tensor.shape.first().copied());
        let embedding = embedding.ok_or_else(|| LoadError::MissingTensor {
            path: metadata.path().to_owned(),
            name: "token_embd.weight".into(),
            tensors: gguf.layout.tensors.len(),
            similar: Vec::new(),
        })?;
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
        Ok(Self {
            vocab_size: metadata.size(&key("vocab_size"))?.unwrap_or(embedding),
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
    // Zero means that it is not set.
    let off = ["attention.scale", "attention.clamp_kqv", "attn_logit_softcapping", "final_logit_softcapping"];
    let factors = ["embedding_scale", "residual_scale", "logit_scale", "rope.scaling.attn_factor"];
    for (name, neutral) in off.map(|name| (name, 0.0)).into_iter().chain(factors.map(|name| (name, 1.0))) {
        let key = format!("{kind}.{name}");
        if let Some(found) = metadata.number(&key)?.filter(|&number| number != 0.0 && number != neutral) {
            return Err(LoadError::unsupported(metadata.path(), key, found, neutral));
        }
    }
    let causal = format!("{kind}.attention.causal");
    if metadata.flag(&causal)? == Some(false) {
        return Err(LoadError::unsupported(metadata.path(), causal, false, true));
    }
    match gguf.layout.tensors.iter().map(|tensor| &tensor.name).find(|name| !is_read(name)) {
        Some(name) => Err(LoadError::UnreadTensor {
            path: metadata.path().to_owned(),
            name: name.clone(),
            expected: "a Llama has the usual matrices and norms, and biases of queries, keys and values only",
        }),
        None => Ok(()),
    }
}

/// Whether a tensor is one of those that a model can have, in some layer.
fn is_read(name: &str) -> bool {
    let hugging_face = gguf::hugging_face(name);
    match hugging_face.strip_suffix(".bias") {
        Some(layer) => ["q_proj", "k_proj", "v_proj"].iter().any(|part| layer.ends_with(part)),
        None => name == "rope_freqs.weight" || hugging_face != name && name.ends_with(".weight"),
    }
}

/// Linear scaling is metadata; that of Llama 3 is a tensor with what each frequency is divided by.
fn scaling(gguf: &Gguf, kind: &str, head_dim: usize, theta: f64) -> Result<RopeScaling, LoadError> {
    let metadata = &gguf.metadata;
    let old = metadata.number(&format!("{kind}.rope.scale_linear"))?;
    let factor = metadata.number(&format!("{kind}.rope.scaling.factor"))?.or(old);
    let scaling = metadata.text(&format!("{kind}.rope.scaling.type"))?;
    if let Some(divisors) = divisors(gguf)? {
        // Divided by both.
        if let Some(factor) = factor.filter(|&factor| factor != 1.0 && scaling != Some("none")) {
            let supported = "factors of Llama 3, or one factor";
            return Err(LoadError::unsupported(
                metadata.path(),
                "rope_freqs.weight with rope.scaling.factor",
                factor,
                supported,
            ));
        }
        return llama3(metadata, &divisors, head_dim, theta);
    }
    match scaling {
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

fn floats(source: &SourceFile, offset: u64, bytes: u64) -> Result<Vec<f32>, LoadError> {
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
