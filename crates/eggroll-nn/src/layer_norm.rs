//! The perturbed twin of [`burn::nn::LayerNorm`].

use crate::per_member::{self, scale_and_shift};
use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::nn;
use burn::tensor::{Device, Tensor};
use eggroll_core::scope;

/// Configuration of a [`LayerNorm`]: the same as [`burn::nn::LayerNormConfig`].
#[derive(Config, Debug)]
pub struct LayerNormConfig {
    /// The size of the input features.
    pub d_model: usize,
    /// A value required for numerical stability.
    #[config(default = 1e-5)]
    pub epsilon: f64,
    /// If a bias should be applied during the normalization.
    #[config(default = true)]
    pub bias: bool,
}

impl LayerNormConfig {
    /// Initializes a new [`LayerNorm`].
    pub fn init(&self, device: &Device) -> LayerNorm {
        self.burn().init(device).into()
    }

    fn burn(&self) -> nn::LayerNormConfig {
        nn::LayerNormConfig::new(self.d_model).with_epsilon(self.epsilon).with_bias(self.bias)
    }
}

/// Layer normalization `y = norm(x)·γ + β`, the same as [`burn::nn::LayerNorm`]; inside `evaluate`, gain `γ_m` and bias
/// `β_m` of every member `m` of the population.
///
/// Created by [`LayerNormConfig`] or from a [`burn::nn::LayerNorm`]; fields and records are the same.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_nn::LayerNorm;
///
/// let device = Device::flex();
/// let burn_layer = burn::nn::LayerNormConfig::new(3).with_epsilon(1e-6).init(&device);
/// let layer = LayerNorm::from(burn_layer.clone());
/// let x = Tensor::<2>::from_floats([[1.0, 2.0, 4.0]], &device);
/// assert_eq!(layer.forward(x.clone()).into_data(), burn_layer.forward(x).into_data());
/// ```
///
/// # References
///
/// Ba et al., "Layer Normalization", arXiv 1607.06450.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct LayerNorm {
    /// The gain, `[d_model]`.
    pub gamma: Param<Tensor<1>>,
    /// The bias, `[d_model]`.
    pub beta: Option<Param<Tensor<1>>>,
    /// A value required for numerical stability.
    pub epsilon: f64,
}

impl LayerNorm {
    /// Applies the layer.
    ///
    /// # Shapes
    ///
    /// - input: `[..., any, d_model]`; inside `evaluate` the first axis is `members · rows`, member-major
    /// - output: the same
    ///
    /// # Panics
    ///
    /// Panics if the last axis of `input` is not `d_model`; inside `evaluate` also if the rows are not a multiple of the members.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        match scope::active(self.gamma.id) {
            None => nn::LayerNorm::from(self.clone()).forward(input),
            Some(parameter) => {
                let members = parameter.pairs().members();
                per_member::check_rows(&input.dims(), members);
                let gain = parameter.vector(&self.gamma); // [members, d_model]
                let bias = self.beta.as_ref().map(|beta| per_member::vector(beta, members));
                // Gain 1 and no bias.
                let plain = self.config().with_bias(false).burn().init(&input.device());
                scale_and_shift(plain.forward(input), D - 1, gain, bias)
            }
        }
    }

    fn config(&self) -> LayerNormConfig {
        let [d_model] = self.gamma.shape().dims();
        LayerNormConfig { d_model, epsilon: self.epsilon, bias: self.beta.is_some() }
    }
}

/// Burn keeps ε to itself, but displays it, with all its digits.
fn epsilon_of(layer: &nn::LayerNorm) -> f64 {
    let content = layer.custom_content(Content::new(DisplaySettings::new()));
    let attributes = content.into_iter().flat_map(|content| content.attributes);
    let shown = attributes.filter(|attribute| attribute.name == "epsilon").map(|attribute| attribute.value).next();
    let epsilon = shown.as_deref().and_then(|shown| shown.parse().ok());
    epsilon.unwrap_or_else(|| panic!("Burn's layer norm displays no epsilon, but {shown:?}"))
}

impl From<nn::LayerNorm> for LayerNorm {
    fn from(layer: nn::LayerNorm) -> Self {
        let epsilon = epsilon_of(&layer);
        Self { gamma: layer.gamma, beta: layer.beta, epsilon }
    }
}

impl From<LayerNorm> for nn::LayerNorm {
    fn from(layer: LayerNorm) -> Self {
        let mut burn = layer.config().burn().init(&Device::default());
        (burn.gamma, burn.beta) = (layer.gamma, layer.beta);
        burn
    }
}

impl ModuleDisplay for LayerNorm {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let LayerNormConfig { d_model, epsilon, bias } = self.config();
        content.add("d_model", &d_model).add("epsilon", &epsilon).add("bias", &bias).optional()
    }
}
