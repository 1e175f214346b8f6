//! The feed-forward part of a block.

use super::{Linear, LinearConfig};
use crate::check::check;
use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};

/// Configuration of an [`Mlp`].
#[derive(Config, Debug)]
pub struct MlpConfig {
    /// The size of inputs and outputs.
    pub d_model: usize,
    /// The size between: four times that, if not given.
    pub d_hidden: Option<usize>,
    /// Whether negative values between the layers become 0.
    #[config(default = false)]
    pub relu: bool,
}

impl MlpConfig {
    /// Two layers.
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Mlp {
        check("integer MlpConfig", self, &[]);
        let hidden = self.d_hidden.unwrap_or(self.d_model.saturating_mul(4));
        Mlp {
            expand: LinearConfig::new(self.d_model, hidden).init(device),
            contract: LinearConfig::new(hidden, self.d_model).init(device),
            relu: self.relu,
        }
    }
}

/// Two linear layers. In the paper only division and clipping act between them; with [`relu`](Self::relu) the model learns
/// more.
#[derive(Module, Debug)]
pub struct Mlp {
    /// `[d_model, d_hidden]`
    pub expand: Linear,
    /// `[d_hidden, d_model]`
    pub contract: Linear,
    /// Whether negative values between them become 0.
    #[module(skip)]
    pub relu: bool,
}

impl Mlp {
    /// Applies both layers.
    ///
    /// # Shapes
    ///
    /// - input and output: `[..., d_model]`
    ///
    /// # Panics
    ///
    /// As [`Linear::forward`].
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D, Int>) -> Tensor<D, Int> {
        let hidden = self.expand.forward(input);
        self.contract.forward(if self.relu { hidden.clamp_min(0) } else { hidden })
    }
}
