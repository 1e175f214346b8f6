//! The perturbed drop-in replacement of [`burn::nn::transformer::PositionWiseFeedForward`].

use crate::Linear;
use crate::activation::activate;
use crate::check::check;
use crate::drop_in::drop_in;
use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay};
use burn::nn::activation::{Activation, ActivationConfig};
use burn::nn::transformer as plain;
use burn::nn::{Dropout, Initializer};
use burn::tensor::{Device, Tensor};

/// Configuration of a [`PositionWiseFeedForward`]: the same as [`burn::nn::transformer::PositionWiseFeedForwardConfig`].
#[derive(Config, Debug)]
pub struct PositionWiseFeedForwardConfig {
    /// The size of inputs and outputs.
    pub d_model: usize,
    /// The size between the layers.
    pub d_ff: usize,
    /// The dropout rate between the layers, on autodiff devices only.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// The type of function used to initialize neural network parameters.
    #[config(default = "Initializer::KaimingUniform{gain: 1.0 / 3.0f64.sqrt(), fan_out_only: false}")]
    pub initializer: Initializer,
    /// The activation between the layers.
    #[config(default = "ActivationConfig::Gelu")]
    pub activation: ActivationConfig,
}

impl PositionWiseFeedForwardConfig {
    /// Initializes a new [`PositionWiseFeedForward`].
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> PositionWiseFeedForward {
        check("PositionWiseFeedForwardConfig", self, &[&[("d_model", self.d_model), ("d_ff", self.d_ff)]]);
        plain::PositionWiseFeedForwardConfig {
            d_model: self.d_model,
            d_ff: self.d_ff,
            dropout: self.dropout,
            initializer: self.initializer.clone(),
            activation: self.activation.clone(),
        }
        .init(device)
        .into()
    }
}

/// `activation(x·W_1 + b_1)·W_2 + b_2`, the same as [`burn::nn::transformer::PositionWiseFeedForward`]; inside `evaluate` under
/// the weights of every member.
///
/// Created by [`PositionWiseFeedForwardConfig`] or from Burn's; fields and records are the same. Parameters of the activation
/// are not part of the module, as in Burn: they are neither saved nor trained.
///
/// # References
///
/// Vaswani et al., "Attention Is All You Need", arXiv 1706.03762, Eq. 2.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct PositionWiseFeedForward {
    /// `[d_model, d_ff]`
    pub linear_inner: Linear,
    /// `[d_ff, d_model]`
    pub linear_outer: Linear,
    /// Dropout between the layers.
    pub dropout: Dropout,
    /// The activation between the layers.
    #[module(skip)]
    pub activation: Activation,
}

impl PositionWiseFeedForward {
    /// Applies the module.
    ///
    /// # Shapes
    ///
    /// - input: `[..., d_model]`; inside `evaluate` the first axis is `members · rows`, member-major
    /// - output: `[..., d_model]`
    ///
    /// # Panics
    ///
    /// As [`Linear::forward`].
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        let inner = activate(&self.activation, self.linear_inner.forward(input));
        self.linear_outer.forward(self.dropout.forward(inner))
    }
}

drop_in!(PositionWiseFeedForward, plain::PositionWiseFeedForward { linear_inner, linear_outer, dropout, activation });

impl ModuleDisplay for PositionWiseFeedForward {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let [d_model, d_ff] = self.linear_inner.weight.shape().dims();
        content.add("d_model", &d_model).add("d_ff", &d_ff).add("prob", &self.dropout.prob).optional()
    }
}
