//! The state of a sequence.

use crate::load::Rwkv7Config;

/// The state of a sequence; its size does not depend on the length.
#[derive(Clone, Debug, PartialEq)]
pub struct Rwkv7State {
    /// One for each layer.
    pub layers: Vec<Rwkv7LayerState>,
}

/// A layer's state of a sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Rwkv7LayerState {
    /// The last input row of time mixing, `[hidden_size]`.
    pub attention: Vec<f32>,
    /// The last input row of channel mixing, `[hidden_size]`.
    pub feed_forward: Vec<f32>,
    /// The state of the recurrence, `[heads, head_dim of keys, head_dim of values]`.
    pub wkv: Vec<f32>,
}

impl Rwkv7State {
    pub(super) fn empty(config: &Rwkv7Config) -> Self {
        let Rwkv7Config { hidden_size, head_dim, layers, .. } = *config;
        let [attention, feed_forward, wkv] = [1, 1, head_dim].map(|rows| vec![0.0; rows * hidden_size]);
        Self { layers: vec![Rwkv7LayerState { attention, feed_forward, wkv }; layers] }
    }

    pub(super) fn bytes(config: &Rwkv7Config) -> usize {
        let Rwkv7Config { hidden_size, head_dim, layers, .. } = *config;
        [layers, hidden_size, head_dim + 2, 4].into_iter().fold(1, usize::saturating_mul)
    }

    /// Whether it is a state of a model of that configuration.
    pub(super) fn fits(&self, config: &Rwkv7Config) -> bool {
        let hidden = config.hidden_size;
        let layer_fits = |layer: &Rwkv7LayerState| {
            let sizes = [layer.attention.len(), layer.feed_forward.len(), layer.wkv.len()];
            sizes == [hidden, hidden, hidden * config.head_dim]
        };
        self.layers.len() == config.layers && self.layers.iter().all(layer_fits)
    }
}
