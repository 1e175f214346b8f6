//! A layer of the Llama architecture, packed.

use crate::host::linear::{Changed, PackedLinear, vector};
use crate::llama::LlamaLayer;
use crate::load::{LayerAttention, LlamaConfig};
use burn::module::ParamId;
use eggroll_core::transformer::{AttentionScores, Precision};
use eggroll_nn::RmsNorm;

/// Linear layers of one layer.
pub(super) const LINEAR: usize = 7;

#[derive(Debug)]
pub(super) struct HostLlamaLayer {
    pub norms: Norms,
    /// q, k, v, o, gate, up, down.
    pub linear: [PackedLinear; LINEAR],
    /// Which positions it sees, and whether it knows their order.
    pub attention: LayerAttention,
    pub scores: AttentionScores,
}

/// Gains of a layer's normalizations.
#[derive(Debug)]
pub(super) struct Norms {
    /// Before the attention.
    pub attention: Vec<f32>,
    /// Before the feed-forward part.
    pub mlp: Vec<f32>,
    /// After the attention and after the feed-forward part, in the Gemma family.
    pub behind: Option<[Vec<f32>; 2]>,
    /// Of heads of queries and keys, in Qwen3 and Gemma-3.
    pub heads: Option<[Vec<f32>; 2]>,
}

impl Norms {
    fn new(layer: &LlamaLayer) -> Self {
        let gains = |norm: &RmsNorm| vector(&norm.gamma);
        let (input, second) = (gains(&layer.input_layernorm), gains(&layer.post_attention_layernorm));
        let heads = layer.self_attn.q_norm.as_ref().zip(layer.self_attn.k_norm.as_ref());
        let around = layer.pre_feedforward_layernorm.as_ref().zip(layer.post_feedforward_layernorm.as_ref());
        let (mlp, behind) = match around {
            None => (second, None),
            Some((before, behind)) => (gains(before), Some([second, gains(behind)])),
        };
        Self { attention: input, mlp, behind, heads: heads.map(|(q, k)| [gains(q), gains(k)]) }
    }
}

impl HostLlamaLayer {
    pub fn new(config: &LlamaConfig, index: usize, layer: &LlamaLayer, precision: Precision) -> Self {
        let linear = layer.linear();
        let packed = |k: usize| PackedLinear::new(linear[k].1, LINEAR * index + k, precision);
        Self::of(config, index, layer, std::array::from_fn(packed))
    }

    /// From packed linear layers.
    pub fn of(config: &LlamaConfig, index: usize, layer: &LlamaLayer, linear: [PackedLinear; LINEAR]) -> Self {
        let attention = config.attention_of(index);
        let divisor = config.gemma.map_or(config.head_dim, |gemma| gemma.query_pre_attn_scalar);
        let scores = AttentionScores {
            cap: config.gemma.and_then(|gemma| gemma.attention_cap).map(|cap| cap as f32),
            window: config.window.filter(|_| attention.windowed).map(|window| window.positions),
            ..AttentionScores::of_dimension(divisor)
        };
        Self { norms: Norms::new(layer), linear, attention, scores }
    }

    /// Packs the trained weights again.
    pub fn update(&mut self, layer: &LlamaLayer, trained: impl Fn(ParamId) -> bool) -> Changed {
        if layer.norms().any(|(_, norm)| trained(norm.gamma.id)) {
            self.norms = Norms::new(layer);
        }
        let packed = self.linear.iter_mut().zip(layer.linear());
        packed.map(|(packed, (_, layer))| packed.update(layer, &trained)).sum()
    }
}
