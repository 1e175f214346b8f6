//! Linear layers with an activation between: the usual network of a policy.

use crate::activation::activate;
use crate::check::check;
use crate::{Linear, LinearConfig};
use burn::config::Config;
use burn::module::Module;
use burn::nn::Initializer;
use burn::nn::activation::{Activation, ActivationConfig};
use burn::tensor::{Device, Tensor};

/// Configuration of an [`Mlp`].
#[derive(Config, Debug)]
pub struct MlpConfig {
    /// Inputs, widths of the hidden layers, and outputs: at least two.
    pub sizes: Vec<usize>,
    /// The activation after every layer except the last.
    #[config(default = "ActivationConfig::Relu")]
    pub activation: ActivationConfig,
    /// Whether layers have biases.
    #[config(default = true)]
    pub bias: bool,
    /// How weights and biases begin.
    #[config(default = "Initializer::KaimingUniform{gain: 1.0 / 3.0f64.sqrt(), fan_out_only: false}")]
    pub initializer: Initializer,
}

impl MlpConfig {
    /// Initializes a new [`Mlp`].
    ///
    /// # Panics
    ///
    /// Panics if there are fewer than two sizes, with them.
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Mlp {
        check("MlpConfig", self, &[]);
        assert!(self.sizes.len() >= 2, "a network has inputs and outputs, its sizes are {:?}", self.sizes);
        let layer = |sizes: &[usize]| {
            let config = LinearConfig::new(sizes[0], sizes[1]).with_bias(self.bias);
            config.with_initializer(self.initializer.clone()).init(device)
        };
        Mlp { layers: self.sizes.windows(2).map(layer).collect(), activation: self.activation.init(device) }
    }
}

/// Multilayer perceptron: `x·W₁ + b₁`, activation, `·W₂ + b₂`, …, without an activation in the end. Inside `evaluate` every layer
/// is perturbed.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use eggroll_nn::MlpConfig;
///
/// let device = Device::flex();
/// let policy = MlpConfig::new(vec![4, 32, 32, 2]).init(&device);
/// assert_eq!(policy.forward(Tensor::<2>::ones([5, 4], &device)).dims(), [5, 2]);
/// ```
#[derive(Module, Debug)]
pub struct Mlp {
    /// The linear layers, from the first on.
    pub layers: Vec<Linear>,
    /// The activation after every layer except the last.
    pub activation: Activation,
}

impl Mlp {
    /// Applies the network.
    ///
    /// # Shapes
    ///
    /// - input: `[..., d_input]`; inside `evaluate` the first axis is `members · rows`, member-major: rows that all members share go through
    ///   `members.repeat`
    /// - output: `[..., d_output]`
    ///
    /// # Panics
    ///
    /// As [`Linear::forward`].
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        self.after_first(self.layers[0].forward(input))
    }

    /// Applies the network to rows that all members share, as [`Linear::forward_shared`]; outside `evaluate` the same as
    /// [`forward`](Self::forward).
    ///
    /// # Shapes
    ///
    /// - input: `[rows, ..., d_input]`
    /// - output: `[members · rows, ..., d_output]` inside `evaluate`, member-major; `[rows, ..., d_output]` outside
    ///
    /// # Panics
    ///
    /// As [`Linear::forward_shared`].
    #[track_caller]
    pub fn forward_shared<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        self.after_first(self.layers[0].forward_shared(input))
    }

    #[track_caller]
    fn after_first<const D: usize>(&self, y: Tensor<D>) -> Tensor<D> {
        self.layers[1..].iter().fold(y, |y, layer| layer.forward(activate(&self.activation, y)))
    }
}
