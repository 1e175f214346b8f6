//! A layer of the Llama architecture, on tensors.

use super::cache::LayerCache;
use super::positions::{LayerPositions, Positions};
use crate::load::{LayerAttention, LlamaConfig};
use burn::module::Module;
use burn::tensor::{Device, Tensor, activation};
use eggroll_nn::{Linear, LinearConfig, RmsNorm, RmsNormConfig};

/// A decoder layer: `x + attention(norm(x))`, then `x + mlp(norm(x))`; in the Gemma family `x + norm(attention(norm(x)))` and
/// `x + norm(mlp(norm(x)))`. Fields have the names that files of weights use.
#[derive(Module, Debug)]
pub struct LlamaLayer {
    /// Normalization before the attention.
    pub input_layernorm: RmsNorm,
    /// The attention.
    pub self_attn: LlamaAttention,
    /// Normalization before the feed-forward part; in the Gemma family after the attention.
    pub post_attention_layernorm: RmsNorm,
    /// Normalization before the feed-forward part, in the Gemma family.
    pub pre_feedforward_layernorm: Option<RmsNorm>,
    /// Normalization after the feed-forward part, in the Gemma family.
    pub post_feedforward_layernorm: Option<RmsNorm>,
    /// The feed-forward part.
    pub mlp: LlamaMlp,
}

/// Causal attention with rotary positions, or none; several heads of queries share one of keys and values.
#[derive(Module, Debug)]
pub struct LlamaAttention {
    /// Queries, `[hidden_size, heads · head_dim]`.
    pub q_proj: Linear,
    /// Keys, `[hidden_size, kv_heads · head_dim]`.
    pub k_proj: Linear,
    /// Values, `[hidden_size, kv_heads · head_dim]`.
    pub v_proj: Linear,
    /// The output, `[heads · head_dim, hidden_size]`.
    pub o_proj: Linear,
    /// Normalization of each head of queries, in Qwen3 and Gemma-3.
    pub q_norm: Option<RmsNorm>,
    /// Normalization of each head of keys, in Qwen3 and Gemma-3.
    pub k_norm: Option<RmsNorm>,
    #[module(skip)]
    kind: LayerAttention,
    /// Scores are divided by the root of it.
    #[module(skip)]
    divisor: usize,
    #[module(skip)]
    cap: Option<f64>,
    #[module(skip)]
    heads: usize,
    #[module(skip)]
    kv_heads: usize,
    #[module(skip)]
    head_dim: usize,
}

/// `down(silu(gate(x)) · up(x))`; in the Gemma family GELU, approximated by tanh, is in the place of SiLU.
#[derive(Module, Debug)]
pub struct LlamaMlp {
    /// `[hidden_size, intermediate_size]`
    pub gate_proj: Linear,
    /// `[hidden_size, intermediate_size]`
    pub up_proj: Linear,
    /// `[intermediate_size, hidden_size]`
    pub down_proj: Linear,
    #[module(skip)]
    gelu: bool,
}

impl LlamaLayer {
    pub(super) fn new(config: &LlamaConfig, layer: usize, device: &Device) -> Self {
        let linear = |d_input, d_output, bias| LinearConfig::new(d_input, d_output).with_bias(bias).init(device);
        let norm_of = |size| RmsNormConfig::new(size).with_epsilon(config.rms_norm_eps).init(device);
        let norm = || norm_of(config.hidden_size);
        let head_norm = || config.qk_norm.then(|| norm_of(config.head_dim));
        let gemma_norm = || config.gemma.is_some().then(norm);
        let (hidden, bias) = (config.hidden_size, config.attention_bias);
        let [queries, keys] = [config.heads, config.kv_heads].map(|heads| heads * config.head_dim);
        Self {
            input_layernorm: norm(),
            self_attn: LlamaAttention {
                q_proj: linear(hidden, queries, bias),
                k_proj: linear(hidden, keys, bias),
                v_proj: linear(hidden, keys, bias),
                o_proj: linear(queries, hidden, false),
                q_norm: head_norm(),
                k_norm: head_norm(),
                kind: config.attention_of(layer),
                divisor: config.gemma.map_or(config.head_dim, |gemma| gemma.query_pre_attn_scalar),
                cap: config.gemma.and_then(|gemma| gemma.attention_cap),
                heads: config.heads,
                kv_heads: config.kv_heads,
                head_dim: config.head_dim,
            },
            post_attention_layernorm: norm(),
            pre_feedforward_layernorm: gemma_norm(),
            post_feedforward_layernorm: gemma_norm(),
            mlp: LlamaMlp {
                gate_proj: linear(hidden, config.intermediate_size, false),
                up_proj: linear(hidden, config.intermediate_size, false),
                down_proj: linear(config.intermediate_size, hidden, false),
                gelu: config.gemma.is_some(),
            },
        }
    }

    /// The linear layers, by name.
    pub(crate) fn linear(&self) -> [(&'static str, &Linear); 7] {
        let (attention, mlp) = (&self.self_attn, &self.mlp);
        let [q, k, v, o] = [&attention.q_proj, &attention.k_proj, &attention.v_proj, &attention.o_proj];
        named([q, k, v, o, &mlp.gate_proj, &mlp.up_proj, &mlp.down_proj])
    }

    /// [`linear`](Self::linear), to be changed.
    pub(crate) fn linear_mut(&mut self) -> [(&'static str, &mut Linear); 7] {
        let (attention, mlp) = (&mut self.self_attn, &mut self.mlp);
        let [q, k, v, o] = [&mut attention.q_proj, &mut attention.k_proj, &mut attention.v_proj, &mut attention.o_proj];
        named([q, k, v, o, &mut mlp.gate_proj, &mut mlp.up_proj, &mut mlp.down_proj])
    }

    /// The normalizations that the architecture has, by name.
    pub(crate) fn norms(&self) -> impl Iterator<Item = (&'static str, &RmsNorm)> {
        let norms = [
            Some(&self.input_layernorm),
            Some(&self.post_attention_layernorm),
            self.pre_feedforward_layernorm.as_ref(),
            self.post_feedforward_layernorm.as_ref(),
            self.self_attn.q_norm.as_ref(),
            self.self_attn.k_norm.as_ref(),
        ];
        NORMS.into_iter().zip(norms).filter_map(|(name, norm)| Some((name, norm?)))
    }

    /// [`norms`](Self::norms), to be changed.
    pub(crate) fn norms_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut RmsNorm)> {
        let attention = &mut self.self_attn;
        let norms = [
            Some(&mut self.input_layernorm),
            Some(&mut self.post_attention_layernorm),
            self.pre_feedforward_layernorm.as_mut(),
            self.post_feedforward_layernorm.as_mut(),
            attention.q_norm.as_mut(),
            attention.k_norm.as_mut(),
        ];
        NORMS.into_iter().zip(norms).filter_map(|(name, norm)| Some((name, norm?)))
    }

    /// `[rows, length, hidden_size]` to the same; with a cache, for the tokens after the cached ones.
    pub(super) fn forward(&self, x: Tensor<3>, positions: &Positions, cache: Option<&mut LayerCache>) -> Tensor<3> {
        let attended = self.self_attn.forward(self.input_layernorm.forward(x.clone()), positions, cache);
        let (Some(before), Some(behind)) = (&self.pre_feedforward_layernorm, &self.post_feedforward_layernorm) else {
            let x = x + attended;
            return x.clone() + self.mlp.forward(self.post_attention_layernorm.forward(x));
        };
        let x = x + self.post_attention_layernorm.forward(attended);
        x.clone() + behind.forward(self.mlp.forward(before.forward(x)))
    }
}

/// Names of normalizations in files.
const NORMS: [&str; 6] = [
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
    "self_attn.q_norm",
    "self_attn.k_norm",
];

/// Linear layers with their names in files.
fn named<T>(layers: [T; 7]) -> [(&'static str, T); 7] {
    let mut names = [
        "self_attn.q_proj",
        "self_attn.k_proj",
        "self_attn.v_proj",
        "self_attn.o_proj",
        "mlp.gate_proj",
        "mlp.up_proj",
        "mlp.down_proj",
    ]
    .into_iter();
    layers.map(|layer| (names.next().expect("as many names as layers"), layer))
}

impl LlamaAttention {
    fn forward(&self, x: Tensor<3>, positions: &Positions, cache: Option<&mut LayerCache>) -> Tensor<3> {
        let [rows, length, _] = x.dims();
        let positions = positions.of(self.kind);
        let (heads, kv_heads, dim) = (self.heads, self.kv_heads, self.head_dim);
        let split = |y: Tensor<3>, heads| y.reshape([rows, length, heads, dim]).swap_dims(1, 2); // [rows, heads, length, head_dim]
        let placed = |y: Tensor<4>, norm: &Option<RmsNorm>| {
            let y = norm.as_ref().map_or(y.clone(), |norm| norm.forward(y));
            if self.kind.rotary { rotated(y, positions) } else { y }
        };
        let q = placed(split(self.q_proj.forward(x.clone()), heads), &self.q_norm);
        let k = placed(split(self.k_proj.forward(x.clone()), kv_heads), &self.k_norm);
        let new = [k, split(self.v_proj.forward(x), kv_heads)];
        let [k, v] = match cache {
            Some(cache) => cache.append(new),
            None => new,
        };
        // Heads of queries that share one of keys and values are rows of one product.
        let (slots, together) = (k.dims()[2], heads / kv_heads * length);
        let scores =
            q.reshape([rows, kv_heads, together, dim]).matmul(k.swap_dims(2, 3)) / (self.divisor as f64).sqrt();
        let scores = self.cap.map_or(scores.clone(), |cap| (scores / cap).tanh() * cap);
        let scores = scores.reshape([rows, heads, length, slots]);
        let shares = activation::softmax(scores.mask_fill(positions.hidden.clone(), f32::NEG_INFINITY), 3);
        let y = shares.reshape([rows, kv_heads, together, slots]).matmul(v); // [rows, kv_heads, group · length, head_dim]
        let y = y.reshape([rows, heads, length, dim]);
        self.o_proj.forward(y.swap_dims(1, 2).reshape([rows, length, heads * dim]))
    }
}

impl LlamaMlp {
    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let gate = self.gate_proj.forward(x.clone());
        let gate = if self.gelu { gelu(gate) } else { activation::silu(gate) };
        self.down_proj.forward(gate * self.up_proj.forward(x))
    }
}

/// `x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))`. The power is written as a product: on some devices a power of a negative
/// number is NaN.
fn gelu(x: Tensor<3>) -> Tensor<3> {
    let inner = x.clone() + x.clone() * x.clone() * x.clone() * 0.044715;
    let inner = inner * (2.0 / std::f64::consts::PI).sqrt();
    x * (inner.tanh() + 1.0) * 0.5
}

/// Turns the pairs `(x[i], x[i + half])` of `[rows, heads, length, head_dim]`.
fn rotated(x: Tensor<4>, positions: &LayerPositions) -> Tensor<4> {
    let half = x.dims()[3] / 2;
    let (first, second) = (x.clone().slice_dim(3, 0..half), x.slice_dim(3, half..2 * half));
    let (cosines, sines) = (positions.cosines.clone(), positions.sines.clone());
    let turned = first.clone() * cosines.clone() - second.clone() * sines.clone();
    Tensor::cat(vec![turned, second * cosines + first * sines], 3)
}
