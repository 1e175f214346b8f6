//! The configuration of the transformer encoder and its layers.

use crate::check::check;
use burn::config::Config;
use burn::nn::Initializer;
use burn::nn::activation::ActivationConfig;
use burn::nn::transformer as plain;

/// Configuration of a [`TransformerEncoder`](super::TransformerEncoder): the same as [`burn::nn::transformer::TransformerEncoderConfig`].
#[derive(Config, Debug)]
pub struct TransformerEncoderConfig {
    /// The size of inputs and outputs.
    pub d_model: usize,
    /// The size inside the feed-forward parts.
    pub d_ff: usize,
    /// The number of attention heads.
    pub n_heads: usize,
    /// The number of layers.
    pub n_layers: usize,
    /// The dropout rate, on autodiff devices only.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// Whether the inputs of a layer's parts are normalized, or the sums with their outputs.
    #[config(default = false)]
    pub norm_first: bool,
    /// Whether attention weights may add up to less than 1.
    #[config(default = false)]
    pub quiet_softmax: bool,
    /// The type of function used to initialize neural network parameters.
    #[config(default = "Initializer::KaimingUniform{gain: 1.0 / 3.0f64.sqrt(), fan_out_only: false}")]
    pub initializer: Initializer,
    /// The activation of the feed-forward parts.
    #[config(default = "ActivationConfig::Gelu")]
    pub activation: ActivationConfig,
    /// Added to variances by the layer norms.
    #[config(default = 1e-5)]
    pub layer_norm_eps: f64,
}

impl TransformerEncoderConfig {
    /// Burn's configuration of the same module.
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub(super) fn plain(&self) -> plain::TransformerEncoderConfig {
        let square = [("d_model", self.d_model), ("d_model", self.d_model)];
        check("TransformerEncoderConfig", self, &[&square, &[("d_model", self.d_model), ("d_ff", self.d_ff)]]);
        plain::TransformerEncoderConfig {
            d_model: self.d_model,
            d_ff: self.d_ff,
            n_heads: self.n_heads,
            n_layers: self.n_layers,
            dropout: self.dropout,
            norm_first: self.norm_first,
            quiet_softmax: self.quiet_softmax,
            initializer: self.initializer.clone(),
            activation: self.activation.clone(),
            layer_norm_eps: self.layer_norm_eps,
        }
    }
}
