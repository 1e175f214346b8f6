//! The perturbed drop-in replacement of [`burn::nn::RmsNorm`].

use crate::check::check;
use crate::drop_in::drop_in;
use crate::per_member::{self, scale_and_shift};
use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::nn;
use burn::tensor::{Device, Tensor};
use eggroll_core::ops::rms_normalized;

/// Configuration of a [`RmsNorm`]: the same as [`burn::nn::RmsNormConfig`].
#[derive(Config, Debug)]
pub struct RmsNormConfig {
    /// The size of the input features.
    pub d_model: usize,
    /// A value required for numerical stability.
    #[config(default = 1e-5)]
    pub epsilon: f64,
}

impl RmsNormConfig {
    /// Initializes a new [`RmsNorm`].
    ///
    /// # Panics
    ///
    /// Panics if `epsilon` is not positive.
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> RmsNorm {
        check("RmsNormConfig", self, &[]);
        nn::RmsNormConfig::new(self.d_model).with_epsilon(self.epsilon).init(device).into()
    }
}

/// Root-mean-square normalization `y = x / √(mean(x²) + ε)·γ`, the same as [`burn::nn::RmsNorm`]; inside `evaluate`, the gain
/// `γ_m` of every member `m` of the population.
///
/// Created by [`RmsNormConfig`] or from a [`burn::nn::RmsNorm`]; fields and records are the same.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_nn::RmsNorm;
///
/// let device = Device::flex();
/// let burn_layer = burn::nn::RmsNormConfig::new(3).init(&device);
/// let layer = RmsNorm::from(burn_layer.clone());
/// let x = Tensor::<2>::from_floats([[1.0, 2.0, 4.0]], &device);
/// assert_eq!(layer.forward(x.clone()).into_data(), burn_layer.forward(x).into_data());
/// ```
///
/// # References
///
/// Zhang and Sennrich, "Root Mean Square Layer Normalization", arXiv 1910.07467.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct RmsNorm {
    /// The gain, `[d_model]`.
    pub gamma: Param<Tensor<1>>,
    /// A value required for numerical stability.
    pub epsilon: f64,
}

impl RmsNorm {
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
        let Some(parameter) = per_member::active(&self.gamma, None) else {
            return nn::RmsNorm::from(self.clone()).forward(input);
        };
        let (dims, [d_model]) = (input.dims(), self.gamma.shape().dims());
        assert!(dims[D - 1] == d_model, "RMS norm: the input {dims:?} does not fit the gain [{d_model}]");
        per_member::check_rows(&parameter, &dims);
        let normalized = rms_normalized(input, self.epsilon as f32);
        if parameter.is_frozen() {
            return normalized * self.gamma.val().unsqueeze();
        }
        let gain = parameter.vector(&self.gamma); // [members, d_model]
        scale_and_shift(normalized, D - 1, gain, None)
    }
}

drop_in!(RmsNorm, nn::RmsNorm { gamma, epsilon });

impl ModuleDisplay for RmsNorm {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let [d_model] = self.gamma.shape().dims();
        content.add("d_model", &d_model).add("epsilon", &self.epsilon).optional()
    }
}
