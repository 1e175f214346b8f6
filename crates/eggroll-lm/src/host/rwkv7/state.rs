//! What is kept of a sequence.

use crate::load::Rwkv7Config;

/// What is kept of a sequence, of one size however long it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Rwkv7State {
    /// One for each layer.
    pub layers: Vec<Rwkv7LayerState>,
}

/// What a layer keeps of a sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Rwkv7LayerState {
    /// The last row that time mixing was given, `[hidden_size]`.
    pub attention: Vec<f32>,
    /// The last row that channel mixing was given, `[hidden_size]`.
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
