//! The program's changes of an estimated gradient before the optimizer's step.

use crate::error::ConfigError;
use crate::named::Named;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A float parameter that is trained, and the estimate of its gradient.
#[derive(Clone, Debug)]
pub struct ParameterGradient {
    pub(crate) position: usize,
    pub(crate) path: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) value: Tensor<1>,
    /// The gradient of `−fitness`, flat: a step of plain descent subtracts it, times the rate. Its length, type and device stay as they are.
    pub gradient: Tensor<1>,
}

impl ParameterGradient {
    /// Path of the parameter in the model.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Shape of the parameter.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Values of the parameter, flat: the [master weights](crate::EvolutionStrategyConfig::with_master_weights) where it has them.
    pub fn value(&self) -> &Tensor<1> {
        &self.value
    }
}

/// A change of the estimated gradient, as a link of the chain that updates a model: estimate → [clip](crate::clip_norm()) → transforms, in the order
/// given → optimizer. A closure is a transform without state.
///
/// Every replica runs it: it must depend on its arguments alone. It is for float parameters: a strategy of integers refuses it.
///
/// # Example
///
/// Momentum, with a velocity for each parameter, in front of plain descent:
///
/// ```
/// use burn::optim::SgdConfig;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_core::EggrollConfig;
/// use eggroll_nn::LinearConfig;
/// use eggroll_train::{EvolutionStrategyConfig, GradientTransform, ParameterGradient};
///
/// struct Momentum(f64);
///
/// impl GradientTransform for Momentum {
///     fn init(&self, values: &[Tensor<1>]) -> Vec<Tensor<1>> {
///         values.iter().map(Tensor::zeros_like).collect()
///     }
///
///     fn update(&self, velocities: &mut [Tensor<1>], parameters: &mut [ParameterGradient]) {
///         for (velocity, parameter) in velocities.iter_mut().zip(parameters) {
///             *velocity = velocity.clone() * self.0 + parameter.gradient.clone();
///             parameter.gradient = velocity.clone();
///         }
///     }
/// }
///
/// # fn main() -> Result<(), eggroll_train::Error> {
/// let device = Device::flex();
/// let mut model = LinearConfig::new(2, 1).init(&device);
/// let x = Tensor::<2>::ones([1, 2], &device);
/// let mut strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new())
///     .with_population_size(64)
///     .with_transform("momentum 0.9", Momentum(0.9))
///     .try_init(&model)?;
/// for _ in 0..100 {
///     let population = strategy.ask();
///     let fitness = population.evaluate(|members| -members.mean((model.forward_shared(x.clone()) - 1.0).square()));
///     strategy.tell(&mut model, population, fitness)?;
/// }
/// let error: f32 = (model.forward(x) - 1.0).abs().into_scalar();
/// assert!(error < 0.1, "{error}");
/// # Ok(())
/// # }
/// ```
pub trait GradientTransform: Send + Sync {
    /// The state before the first generation, from the [values](ParameterGradient::value) of all trained parameters, in the order of the model.
    /// Number, lengths, types and devices of these tensors must not change: records and checkpoints hold them.
    fn init(&self, values: &[Tensor<1>]) -> Vec<Tensor<1>> {
        let _ = values;
        Vec::new()
    }

    /// Changes the gradients of a generation, and the state. The parameters have the model's order, which must not change.
    fn update(&self, state: &mut [Tensor<1>], parameters: &mut [ParameterGradient]);
}

impl<F: Fn(&mut [ParameterGradient]) + Send + Sync> GradientTransform for F {
    fn update(&self, _state: &mut [Tensor<1>], parameters: &mut [ParameterGradient]) {
        self(parameters);
    }
}

/// A [`GradientTransform`] of the program, with the name that files save. Two are equal if their names are. Files hold the name only: to
/// continue a run, give the configuration with the transform again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CustomTransform(Named<dyn GradientTransform>);

impl CustomTransform {
    /// Takes a transform, and a name that says what it is.
    pub fn new(name: impl Into<String>, transform: impl GradientTransform + 'static) -> Self {
        Self(Named::new(name, Arc::new(transform)))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn given(&self) -> Result<Arc<dyn GradientTransform>, ConfigError> {
        self.0.function("transform").cloned()
    }
}
