//! The Llama family in GGUF files.

use super::super::encoding::Encoding;
use super::super::error::LoadError;
use super::super::gguf::{self, Gguf, Metadata};
use super::super::kind::Kind;
use super::super::source::SourceFile;
use super::attention::{self, AttentionWindow, LayerAttention};
use super::bounds::{buildable, positive};
use super::gemma::GemmaConfig;
use super::llama::LlamaConfig;
use super::rope::RopeScaling;

impl LlamaConfig {
    pub(super) fn from_gguf(gguf: &Gguf, kind: Kind) -> Result<Self, LoadError> {
        let metadata = &gguf.metadata;
        let name = gguf.architecture()?;
        let key = |field: &str| format!("{name}.{field}");
        let size = |name: &str| metadata.required(&key(name), metadata.size(&key(name))?);
        check(gguf, name, kind)?;
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
        let (layers, context_length) = (size("block_count")?, size("context_length")?);
        // Before a list of layers is allocated.
        buildable(layers, &[])?;
        let (window, attention) = attention(metadata, name, kind, context_length, layers)?;
        Ok(Self {
            vocab_size: metadata.size(&key("vocab_size"))?.unwrap_or(embedding),
            hidden_size,
            intermediate_size: size("feed_forward_length")?,
            layers,
            heads,
            kv_heads: metadata.size(&key("attention.head_count_kv"))?.unwrap_or(heads),
            head_dim,
            rope_theta,
            rope_scaling: scaling(gguf, name, head_dim, rope_theta)?,
            rms_norm_eps: metadata.required(
                &key("attention.layer_norm_rms_epsilon"),
                metadata.number(&key("attention.layer_norm_rms_epsilon"))?,
            )?,
            context_length,
            tied_head: gguf.tensor("output.weight").is_none(),
            attention_bias: gguf.tensor("blk.0.attn_q.bias").is_some(),
            qk_norm: kind.has_qk_norm(),
            window,
            attention,
            gemma: gemma(metadata, name, kind, [hidden_size, heads, head_dim, layers])?,
        })
    }
}

/// Windows and layers without positions, as in llama.cpp, unless the file has another period. The last layer of each period sees all
/// positions, or knows none.
fn attention(
    metadata: &Metadata,
    name: &str,
    kind: Kind,
    context: usize,
    layers: usize,
) -> Result<(Option<AttentionWindow>, Vec<LayerAttention>), LoadError> {
    let key = |field: &str| format!("{name}.{field}");
    let period = match kind {
        Kind::SmolLm3 => 4,
        Kind::Gemma2 | Kind::Gemma3 => {
            let usual = if kind == Kind::Gemma2 { 2 } else { 6 };
            metadata.size(&key("attention.sliding_window_pattern"))?.unwrap_or(usual)
        }
        _ => return Ok((None, Vec::new())),
    };
    positive(&[("sliding_window_pattern", period)])?;
    let window = if kind.is_gemma() {
        let length = key("attention.sliding_window");
        let positions = metadata.required(&length, metadata.size(&length)?)?;
        let local = metadata.number(&key("rope.freq_base_swa"))?.unwrap_or(10_000.0);
        Some(AttentionWindow { positions, rope_theta: (kind == Kind::Gemma3).then_some(local) })
    } else {
        None
    };
    let attention = |layer: usize| match (layer + 1).is_multiple_of(period) {
        last if kind.is_gemma() => LayerAttention { windowed: !last, rotary: true },
        last => LayerAttention { windowed: false, rotary: !last },
    };
    Ok(attention::canonical(window, context, (0..layers).map(attention).collect()))
}

/// Caps of the metadata, and the scale of queries. llama.cpp derives the scale from the number of layers: the largest models of both
/// generations have another one.
fn gemma(
    metadata: &Metadata,
    name: &str,
    kind: Kind,
    [hidden_size, heads, head_dim, layers]: [usize; 4],
) -> Result<Option<GemmaConfig>, LoadError> {
    let largest = match kind {
        Kind::Gemma2 => 46,
        Kind::Gemma3 => 62,
        _ => return Ok(None),
    };
    let cap = |field: &str| {
        let key = format!("{name}.{field}");
        let cap = metadata.number(&key)?;
        // Without the key, llama.cpp uses caps that are not in the file.
        let cap = if kind == Kind::Gemma2 { Some(metadata.required(&key, cap)?) } else { cap };
        Ok(cap.filter(|&cap| cap != 0.0))
    };
    Ok(Some(GemmaConfig {
        query_pre_attn_scalar: if layers == largest { hidden_size.checked_div(heads).unwrap_or(0) } else { head_dim },
        attention_cap: cap("attn_logit_softcapping")?,
        logit_cap: cap("final_logit_softcapping")?,
    }))
}

/// Refuses relatives of Llama that compute something else.
fn check(gguf: &Gguf, name: &str, kind: Kind) -> Result<(), LoadError> {
    let metadata = &gguf.metadata;
    let experts = format!("{name}.expert_count");
    if let Some(found) = metadata.size(&experts)?.filter(|&count| count > 0) {
        return Err(LoadError::unsupported(metadata.path(), experts, found, "no mixture of experts"));
    }
    let window = format!("{name}.attention.sliding_window");
    let context = metadata.size(&format!("{name}.context_length"))?.unwrap_or(0);
    let has_window = |window: usize| !kind.is_gemma() && window > 0 && window < context;
    if let Some(found) = metadata.size(&window)?.filter(|&window| has_window(window)) {
        return Err(LoadError::unsupported(metadata.path(), window, found, format!("none, or {context} and more")));
    }
    let local = format!("{name}.rope.freq_base_swa");
    if let Some(found) = metadata.number(&local)?.filter(|_| kind != Kind::Gemma3) {
        return Err(LoadError::unsupported(metadata.path(), local, found, "not set"));
    }
    // Zero means that it is not set.
    let off = ["attention.scale", "attention.clamp_kqv", "attn_logit_softcapping", "final_logit_softcapping"];
    let off = &off[..if kind.is_gemma() { 2 } else { 4 }];
    let factors = ["embedding_scale", "residual_scale", "logit_scale", "rope.scaling.attn_factor"];
    for (field, neutral) in off.iter().map(|field| (*field, 0.0)).chain(factors.map(|field| (field, 1.0))) {
        let key = format!("{name}.{field}");
        if let Some(found) = metadata.number(&key)?.filter(|&number| number != 0.0 && number != neutral) {
            return Err(LoadError::unsupported(metadata.path(), key, found, neutral));
        }
    }
    let causal = format!("{name}.attention.causal");
    if metadata.flag(&causal)? == Some(false) {
        return Err(LoadError::unsupported(metadata.path(), causal, false, true));
    }
    match gguf.layout.tensors.iter().map(|tensor| &tensor.name).find(|tensor| !is_read(kind, tensor)) {
        Some(name) => Err(LoadError::UnreadTensor {
            path: metadata.path().to_owned(),
            name: name.clone(),
            expected: "a Llama has the usual matrices and norms, and biases of queries, keys and values only",
        }),
        None => Ok(()),
    }
}

/// Whether a model can have this tensor in some layer.
fn is_read(kind: Kind, name: &str) -> bool {
    let hugging_face = gguf::hugging_face(kind, name);
    match hugging_face.strip_suffix(".bias") {
        Some(layer) => ["q_proj", "k_proj", "v_proj"].iter().any(|part| layer.ends_with(part)),
        None => name == "rope_freqs.weight" || hugging_face != name && name.ends_with(".weight"),
    }
}

/// Linear scaling is metadata; Llama 3's scaling is a tensor of the divisors of the frequencies.
fn scaling(gguf: &Gguf, name: &str, head_dim: usize, theta: f64) -> Result<RopeScaling, LoadError> {
    let metadata = &gguf.metadata;
    let old = metadata.number(&format!("{name}.rope.scale_linear"))?;
    let factor = metadata.number(&format!("{name}.rope.scaling.factor"))?.or(old);
    let scaling = metadata.text(&format!("{name}.rope.scaling.type"))?;
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

/// The settings of every published Llama 3, with the largest divisor as the factor.
fn llama3(metadata: &Metadata, divisors: &[f32], head_dim: usize, theta: f64) -> Result<RopeScaling, LoadError> {
    let factor = f64::from(divisors.iter().copied().fold(1.0, f32::max));
    let scaling = RopeScaling::Llama3 { factor, low_freq_factor: 1.0, high_freq_factor: 4.0, original_context: 8192 };
    let expected = if head_dim / 2 == divisors.len() { scaling.divisors(head_dim, theta) } else { Vec::new() };
    let close = |(found, expected): (&f32, &f64)| (f64::from(*found) - expected).abs() <= 1e-3 * expected;
    if expected.len() == divisors.len() && divisors.iter().zip(&expected).all(close) {
        return Ok(scaling);
    }
    let found = "with other factors than Llama 3";
    Err(LoadError::unsupported(
        metadata.path(),
        "tensor rope_freqs.weight",
        found,
        "low 1, high 4, original context 8192",
    ))
}
