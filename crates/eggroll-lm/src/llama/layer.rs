//! A layer of the Llama architecture, on tensors.

use super::cache::LayerCache;
use crate::load::LlamaConfig;
use burn::module::Module;
use burn::tensor::{Bool, Device, Tensor, activation};
use eggroll_nn::{Linear, LinearConfig, RmsNorm, RmsNormConfig};

/// A decoder layer: `x + attention(norm(x))`, then `x + mlp(norm(x))`. Fields have the names that files of weights use.
#[derive(Module, Debug)]
pub struct LlamaLayer {
    /// Normalization before the attention.
    pub input_layernorm: RmsNorm,
    /// The attention.
    pub self_attn: LlamaAttention,
    /// Normalization before the feed-forward part.
    pub post_attention_layernorm: RmsNorm,
    /// The feed-forward part.
    pub mlp: LlamaMlp,
}

/// Causal attention with rotary positions; several heads of queries share one of keys and values.
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
    #[module(skip)]
    heads: usize,
    #[module(skip)]
    kv_heads: usize,
    #[module(skip)]
    head_dim: usize,
}

/// `down(silu(gate(x)) · up(x))`
#[derive(Module, Debug)]
pub struct LlamaMlp {
    /// `[hidden_size, intermediate_size]`
    pub gate_proj: Linear,
    /// `[hidden_size, intermediate_size]`
    pub up_proj: Linear,
    /// `[intermediate_size, hidden_size]`
    pub down_proj: Linear,
}

/// What all layers need of the positions. Axes of length 1 are shared by rows and heads.
pub(super) struct Positions {
    /// `[rows or 1, 1, length, head_dim/2]`
    pub cosines: Tensor<4>,
    /// `[rows or 1, 1, length, head_dim/2]`
    pub sines: Tensor<4>,
    /// `[rows or 1, 1, length, slots]`, true where a position must not look.
    pub hidden: Tensor<4, Bool>,
}

impl LlamaLayer {
    pub(super) fn new(config: &LlamaConfig, device: &Device) -> Self {
        let linear = |d_input, d_output, bias| LinearConfig::new(d_input, d_output).with_bias(bias).init(device);
        let norm = || RmsNormConfig::new(config.hidden_size).with_epsilon(config.rms_norm_eps).init(device);
        let (hidden, bias) = (config.hidden_size, config.attention_bias);
        let [queries, keys] = [config.heads, config.kv_heads].map(|heads| heads * config.head_dim);
        Self {
            input_layernorm: norm(),
            self_attn: LlamaAttention {
                q_proj: linear(hidden, queries, bias),
                k_proj: linear(hidden, keys, bias),
                v_proj: linear(hidden, keys, bias),
                o_proj: linear(queries, hidden, false),
                heads: config.heads,
                kv_heads: config.kv_heads,
                head_dim: config.head_dim,
            },
            post_attention_layernorm: norm(),
            mlp: LlamaMlp {
                gate_proj: linear(hidden, config.intermediate_size, false),
                up_proj: linear(hidden, config.intermediate_size, false),
                down_proj: linear(config.intermediate_size, hidden, false),
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

    /// The normalizations, by name.
    pub(crate) fn norms(&self) -> [(&'static str, &RmsNorm); 2] {
        [("input_layernorm", &self.input_layernorm), ("post_attention_layernorm", &self.post_attention_layernorm)]
    }

    /// [`norms`](Self::norms), to be changed.
    pub(crate) fn norms_mut(&mut self) -> [(&'static str, &mut RmsNorm); 2] {
        [
            ("input_layernorm", &mut self.input_layernorm),
            ("post_attention_layernorm", &mut self.post_attention_layernorm),
        ]
    }

    /// `[rows, length, hidden_size]` to the same; with a cache, of the tokens behind those in it.
    pub(super) fn forward(&self, x: Tensor<3>, positions: &Positions, cache: Option<&mut LayerCache>) -> Tensor<3> {
        let x = x.clone() + self.self_attn.forward(self.input_layernorm.forward(x), positions, cache);
        x.clone() + self.mlp.forward(self.post_attention_layernorm.forward(x))
    }
}

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
        let (heads, kv_heads, dim) = (self.heads, self.kv_heads, self.head_dim);
        let split = |y: Tensor<3>, heads| y.reshape([rows, length, heads, dim]).swap_dims(1, 2); // [rows, heads, length, head_dim]
        let q = rotated(split(self.q_proj.forward(x.clone()), heads), positions);
        let k = rotated(split(self.k_proj.forward(x.clone()), kv_heads), positions);
        let new = [k, split(self.v_proj.forward(x), kv_heads)];
        let [k, v] = match cache {
            Some(cache) => cache.append(new),
            None => new,
        };
        // Heads of queries that share one of keys and values are rows of one product.
        let (slots, together) = (k.dims()[2], heads / kv_heads * length);
        let scores = q.reshape([rows, kv_heads, together, dim]).matmul(k.swap_dims(2, 3)) / (dim as f64).sqrt();
        let scores = scores.reshape([rows, heads, length, slots]);
        let shares = activation::softmax(scores.mask_fill(positions.hidden.clone(), f32::NEG_INFINITY), 3);
        let y = shares.reshape([rows, kv_heads, together, slots]).matmul(v); // [rows, kv_heads, group · length, head_dim]
        let y = y.reshape([rows, heads, length, dim]);
        self.o_proj.forward(y.swap_dims(1, 2).reshape([rows, length, heads * dim]))
    }
}

impl LlamaMlp {
    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let gate = activation::silu(self.gate_proj.forward(x.clone()));
        self.down_proj.forward(gate * self.up_proj.forward(x))
    }
}

/// Turns the pairs `(x[i], x[i + half])` of `[rows, heads, length, head_dim]`.
fn rotated(x: Tensor<4>, positions: &Positions) -> Tensor<4> {
    let half = x.dims()[3] / 2;
    let (first, second) = (x.clone().slice_dim(3, 0..half), x.slice_dim(3, half..2 * half));
    let (cosines, sines) = (positions.cosines.clone(), positions.sines.clone());
    let turned = first.clone() * cosines.clone() - second.clone() * sines.clone();
    Tensor::cat(vec![turned, second * cosines + first * sines], 3)
}
