//! A block of RWKV-7.

use super::state::LayerState;
use super::time_mix::{TimeMix, shifted};
use super::vector::{of_rows, uniform};
use crate::load::Rwkv7Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, activation};
use eggroll_nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};

/// A block: `x + att(ln1(x))`, then `x + ffn(ln2(x))`.
#[derive(Module, Debug)]
pub struct Rwkv7Block {
    /// Normalization before time mixing.
    pub ln1: LayerNorm,
    /// Time mixing.
    pub att: TimeMix,
    /// Normalization before channel mixing.
    pub ln2: LayerNorm,
    /// Channel mixing.
    pub ffn: ChannelMix,
}

/// Channel mixing, the feed-forward part: `relu(x_k·key)²·value` of `x_k = x + (x′ − x) ⊙ μ`, with the row `x′` before `x` (Peng et al.,
/// arXiv 2503.14456, Section 4.2).
#[derive(Module, Debug)]
pub struct ChannelMix {
    /// The mix `μ`, `[hidden_size]`.
    pub x_k: Param<Tensor<1>>,
    /// `[hidden_size, intermediate_size]`
    pub key: Linear,
    /// `[intermediate_size, hidden_size]`
    pub value: Linear,
}

impl Rwkv7Block {
    pub(super) fn new(config: &Rwkv7Config, layer: usize, device: &Device) -> Self {
        let norm = || LayerNormConfig::new(config.hidden_size).with_epsilon(config.norm_eps).init(device);
        let linear = |d_input, d_output| LinearConfig::new(d_input, d_output).with_bias(false).init(device);
        let ffn = ChannelMix {
            x_k: uniform(config.hidden_size, (0.0, 1.0), device),
            key: linear(config.hidden_size, config.intermediate_size),
            value: linear(config.intermediate_size, config.hidden_size),
        };
        Self { ln1: norm(), att: TimeMix::new(config, layer, device), ln2: norm(), ffn }
    }

    /// `[rows, length, hidden_size]` to the same.
    pub(super) fn forward(&self, x: Tensor<3>, state: &mut LayerState, first: &mut Option<Tensor<3>>) -> Tensor<3> {
        let x = x.clone() + self.att.forward(self.ln1.forward(x), state, first);
        x.clone() + self.ffn.forward(self.ln2.forward(x), &mut state.feed_forward)
    }
}

impl ChannelMix {
    fn forward(&self, x: Tensor<3>, last: &mut Tensor<2>) -> Tensor<3> {
        let rows = x.dims()[0];
        let difference = shifted(x.clone(), last) - x.clone();
        let k = activation::relu(self.key.forward(x + difference * of_rows(&self.x_k, rows)));
        self.value.forward(k.clone() * k)
    }
}
