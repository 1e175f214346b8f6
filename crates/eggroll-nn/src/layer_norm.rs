//! The perturbed twin of [`burn::nn::LayerNorm`].

use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::nn;
use burn::tensor::{Device, Tensor};
use eggroll_core::scope::{self, ActiveParameter};

/// Configuration of a [`LayerNorm`]: the same as [`burn::nn::LayerNormConfig`].
#[derive(Config, Debug)]
pub struct LayerNormConfig {
    /// The size of the normalised axis, the last one.
    pub d_model: usize,
    /// Added to the variance before the division.
    #[config(default = 1e-5)]
    pub epsilon: f64,
    /// Whether there is a shift `β`.
    #[config(default = true)]
    pub bias: bool,
}

impl LayerNormConfig {
    /// Initializes a new [`LayerNorm`]: `γ` 1, `β` 0.
    pub fn init(&self, device: &Device) -> LayerNorm {
        nn::LayerNormConfig { d_model: self.d_model, epsilon: self.epsilon, bias: self.bias }.init(device).into()
    }
}

/// Layer normalization `y = (x − mean)/√(variance + ε)·γ + β` over the last axis, the same as [`burn::nn::LayerNorm`]; inside
/// `evaluate` with `γ_m` and `β_m` of every member `m`.
///
/// Created by [`LayerNormConfig`] or from a [`burn::nn::LayerNorm`]; fields and records are the same.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_nn::{LayerNorm, LayerNormConfig};
///
/// let device = Device::flex();
/// let burn_layer = burn::nn::LayerNormConfig::new(2).with_epsilon(1e-3).init(&device);
/// let layer = LayerNorm::from(burn_layer.clone());
/// let x = Tensor::<2>::from_floats([[1.0, 3.0]], &device);
/// assert_eq!(layer.forward(x.clone()).into_data(), burn_layer.forward(x).into_data());
/// ```
///
/// # References
///
/// Ba et al., "Layer Normalization", arXiv 1607.06450.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct LayerNorm {
    /// `γ`: `[d_model]`
    pub gamma: Param<Tensor<1>>,
    /// `β`: `[d_model]`
    pub beta: Option<Param<Tensor<1>>>,
    epsilon: f64,
}

impl LayerNorm {
    /// Applies the layer.
    ///
    /// # Shapes
    ///
    /// - input: `[..., d_model]`; inside `evaluate` the first axis is `members · rows`, member-major
    /// - output: `[..., d_model]`
    ///
    /// # Panics
    ///
    /// Panics if the last axis of `input` is not `d_model`; inside `evaluate` also if the rows are not a multiple of the
    /// members.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        match scope::active(self.gamma.id) {
            None => nn::LayerNorm::from(self.clone()).forward(input),
            Some(gamma) => self.perturbed(gamma, input),
        }
    }

    #[track_caller]
    fn perturbed<const D: usize>(&self, gamma: ActiveParameter, input: Tensor<D>) -> Tensor<D> {
        let (dims, members) = (input.dims(), gamma.pairs().members());
        let [d_model] = self.gamma.dims();
        assert!(
            dims[0].is_multiple_of(members) && dims[D - 1] == d_model,
            "layer norm: the input {dims:?} is not rows of {members} members with {d_model} columns"
        );
        let ones = Tensor::ones([d_model], (&input.device(), self.gamma.dtype()));
        let plain = Self { gamma: Param::from_tensor(ones), beta: None, epsilon: self.epsilon };
        let rows = dims.iter().product::<usize>() / (members * d_model).max(1);
        let normal = nn::LayerNorm::from(plain).forward(input).reshape([members, rows, d_model]);
        let scaled = normal * gamma.vector(&self.gamma).unsqueeze_dim::<3>(1); // [members, 1, d_model]
        let shifted = match &self.beta {
            None => scaled,
            Some(beta) => match scope::active(beta.id) {
                Some(active) => scaled + active.vector(beta).unsqueeze_dim::<3>(1),
                // Not of the scope's model: it stays plain.
                None => scaled + beta.val().unsqueeze::<3>(),
            },
        };
        shifted.reshape(dims)
    }
}

impl From<nn::LayerNorm> for LayerNorm {
    fn from(layer: nn::LayerNorm) -> Self {
        // Burn's field is private; what it displays of it is the shortest decimal that reads back as the same number.
        let content = layer.custom_content(Content::new(DisplaySettings::new())).expect("a layer norm has content");
        let epsilon = content.attributes.iter().find(|attribute| attribute.name == "epsilon");
        let epsilon =
            epsilon.and_then(|epsilon| epsilon.value.parse().ok()).expect("a layer norm displays its epsilon");
        Self { gamma: layer.gamma, beta: layer.beta, epsilon }
    }
}

impl From<LayerNorm> for nn::LayerNorm {
    fn from(LayerNorm { gamma, beta, epsilon }: LayerNorm) -> Self {
        let [d_model] = gamma.dims();
        let config = nn::LayerNormConfig { d_model, epsilon, bias: beta.is_some() };
        let mut layer = config.init(&gamma.device());
        (layer.gamma, layer.beta) = (gamma, beta);
        layer
    }
}

impl ModuleDisplay for LayerNorm {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let [d_model] = self.gamma.dims();
        content.add("d_model", &d_model).add("epsilon", &self.epsilon).add("bias", &self.beta.is_some()).optional()
    }
}
