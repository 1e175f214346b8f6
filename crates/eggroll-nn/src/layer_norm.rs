//! The perturbed drop-in replacement of [`burn::nn::LayerNorm`].

use crate::check::check;
use crate::per_member::{self, scale_and_shift};
use burn::config::Config;
use burn::module::{
    Content, Devices, DisplaySettings, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor,
};
use burn::nn;
use burn::tensor::{Device, Tensor};
use std::fmt::{self, Display};
use std::ops::{Deref, DerefMut};

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
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> LayerNorm {
        check("LayerNormConfig", self, &[]);
        nn::LayerNormConfig::new(self.d_model).with_epsilon(self.epsilon).with_bias(self.bias).init(device).into()
    }
}

/// Layer normalization `y = norm(x)·γ + β`, the same as [`burn::nn::LayerNorm`]; inside `evaluate`, gain `γ_m` and bias
/// `β_m` of every member `m` of the population.
///
/// Created by [`LayerNormConfig`] or from a [`burn::nn::LayerNorm`], which it holds and dereferences to: fields and records are the same.
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
#[derive(Clone, Debug)]
pub struct LayerNorm(nn::LayerNorm);

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
        let Some(parameter) = per_member::active(&self.gamma, self.beta.as_ref()) else {
            return self.0.forward(input);
        };
        let members = parameter.pairs().members();
        per_member::check_rows(&parameter, &input.dims());
        let gain = parameter.vector(&self.gamma); // [members, d_model]
        let bias = self.beta.as_ref().map(|beta| per_member::vector(beta, members));
        scale_and_shift(self.plain().forward(input), D - 1, gain, bias)
    }

    /// The layer with gain 1 and without a bias.
    fn plain(&self) -> nn::LayerNorm {
        let mut plain = self.0.clone();
        plain.gamma = self.gamma.clone().map(|gamma| gamma.ones_like());
        plain.beta = None;
        plain
    }
}

impl Deref for LayerNorm {
    type Target = nn::LayerNorm;

    fn deref(&self) -> &nn::LayerNorm {
        &self.0
    }
}

impl DerefMut for LayerNorm {
    fn deref_mut(&mut self) -> &mut nn::LayerNorm {
        &mut self.0
    }
}

impl From<nn::LayerNorm> for LayerNorm {
    fn from(layer: nn::LayerNorm) -> Self {
        Self(layer)
    }
}

impl From<LayerNorm> for nn::LayerNorm {
    fn from(layer: LayerNorm) -> Self {
        layer.0
    }
}

/// Burn's layer itself, so that paths and records are its own: a derived module would have one more level.
impl Module for LayerNorm {
    fn collect_devices(&self, devices: Devices) -> Devices {
        self.0.collect_devices(devices)
    }

    fn fork(self, device: &Device) -> Self {
        Self(self.0.fork(device))
    }

    fn to_device(self, device: &Device) -> Self {
        Self(self.0.to_device(device))
    }

    fn train(self) -> Self {
        Self(self.0.train())
    }

    fn valid(&self) -> Self {
        Self(self.0.valid())
    }

    fn materialize(self) -> Self {
        Self(self.0.materialize())
    }

    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.0.visit(visitor);
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        Self(self.0.map(mapper))
    }
}

impl ModuleDisplayDefault for LayerNorm {
    fn content(&self, content: Content) -> Option<Content> {
        self.0.content(content)
    }

    fn num_params(&self) -> usize {
        Module::num_params(&self.0)
    }
}

impl ModuleDisplay for LayerNorm {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        self.0.custom_settings()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        self.0.custom_content(content)
    }
}

impl Display for LayerNorm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
