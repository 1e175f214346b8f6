//! The perturbed drop-in replacement of [`burn::nn::BatchNorm`].

use crate::check::check;
use crate::drop_in::drop_in;
use crate::per_member::{self, scale_and_shift};
use burn::config::Config;
use burn::module::{Content, DisplaySettings, Flag, Module, ModuleDisplay, Param, RunningState};
use burn::nn;
use burn::tensor::{Device, Tensor};
use eggroll_core::scope;

/// Configuration of a [`BatchNorm`]: the same as [`burn::nn::BatchNormConfig`].
#[derive(Config, Debug)]
pub struct BatchNormConfig {
    /// The number of features. Must be greater than zero.
    pub num_features: usize,
    /// A finite, positive value required for numerical stability.
    #[config(default = 1e-5)]
    pub epsilon: f64,
    /// A finite momentum in `[0, 1]` used to update the running statistics.
    #[config(default = 0.1)]
    pub momentum: f64,
}

impl BatchNormConfig {
    /// Initializes a new [`BatchNorm`].
    ///
    /// # Panics
    ///
    /// Panics where [`burn::nn::BatchNormConfig::init`] does: no features, or values out of range.
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> BatchNorm {
        check("BatchNormConfig", self, &[]);
        let config = nn::BatchNormConfig::new(self.num_features);
        config.with_epsilon(self.epsilon).with_momentum(self.momentum).init(device).into()
    }
}

/// Batch normalization `y = (x − μ)/√(v + ε)·γ + β`, the same as [`burn::nn::BatchNorm`]; inside `evaluate`, gain `γ_m` and bias
/// `β_m` of every member `m` of the population.
///
/// # Running statistics
///
/// Inside `evaluate` the mean `μ` and the variance `v` are the running ones, the same for all members, and never change. Statistics
/// of a member's rows would make its fitness depend on its number of rows; statistics of all rows, on the other members. Running
/// statistics are not parameters: they have no noise and no estimate. To update them, run the model outside `evaluate` on an
/// autodiff device, as with Burn's.
///
/// Created by [`BatchNormConfig`] or from a [`burn::nn::BatchNorm`]; fields and records are the same.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_nn::BatchNorm;
///
/// let device = Device::flex();
/// let burn_layer = burn::nn::BatchNormConfig::new(2).init(&device);
/// let layer = BatchNorm::from(burn_layer.clone());
/// let x = Tensor::<3>::from_floats([[[1.0, 2.0], [4.0, -1.0]]], &device);
/// assert_eq!(layer.forward(x.clone()).into_data(), burn_layer.forward(x).into_data());
/// ```
///
/// # References
///
/// Ioffe and Szegedy, "Batch Normalization", arXiv 1502.03167.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct BatchNorm {
    /// The gain, `[num_features]`.
    pub gamma: Param<Tensor<1>>,
    /// The bias, `[num_features]`.
    pub beta: Param<Tensor<1>>,
    /// Whether the layer updates its running statistics on autodiff devices.
    pub training: Param<Flag>,
    /// The running mean, `[num_features]`.
    pub running_mean: RunningState<Tensor<1>>,
    /// The running variance, `[num_features]`.
    pub running_var: RunningState<Tensor<1>>,
    /// Momentum used to update the running statistics.
    pub momentum: f64,
    /// A value required for numerical stability.
    pub epsilon: f64,
}

impl BatchNorm {
    /// Applies the layer.
    ///
    /// # Shapes
    ///
    /// - input: `[rows, num_features, ...]`; inside `evaluate` the first axis is `members · rows`, member-major
    /// - output: the same
    ///
    /// # Panics
    ///
    /// Panics if the second axis of `input` is not `num_features`; inside `evaluate` also if the rows are not a multiple of the
    /// members.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        let Some(parameter) = scope::active(&self.gamma) else {
            return nn::BatchNorm::from(self.clone()).forward(input);
        };
        let (dims, [features]) = (input.dims(), self.gamma.shape().dims());
        assert!(D > 1 && dims[1] == features, "batch norm: the input {dims:?} does not fit {features} features");
        let members = parameter.pairs().members();
        per_member::check_rows(&parameter, &dims);
        let device = input.device();
        let mean = self.running_mean.value().to_device(&device).unsqueeze::<2>(); // [1, features]
        let variance = self.running_var.value().to_device(&device).unsqueeze::<2>();
        // One gain and one bias for each member: γ/√(v + ε), and β − μ·γ/√(v + ε).
        let gain = parameter.vector(&self.gamma) / (variance + self.epsilon).sqrt(); // [members, features]
        let bias = per_member::vector(&self.beta, members) - mean * gain.clone();
        scale_and_shift(input, 1, gain, Some(bias))
    }
}

drop_in!(BatchNorm, nn::BatchNorm { gamma, beta, training, running_mean, running_var, momentum, epsilon });

impl ModuleDisplay for BatchNorm {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let [num_features] = self.beta.shape().dims();
        let content =
            content.add("num_features", &num_features).add("momentum", &self.momentum).add("epsilon", &self.epsilon);
        if self.training.is_enabled() { content.optional() } else { content.add("training", &self.training).optional() }
    }
}
