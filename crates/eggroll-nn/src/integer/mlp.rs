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
    /// Whether what is negative between the layers becomes 0.
    #[config(default = false)]
    pub relu: bool,
}

impl MlpConfig {
    /// Two layers.
    ///
    /// # Panics
    ///
    /// Panics if a size is 0 or larger than memory, or f32 cannot hold a number, with the field.
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

/// Two linear layers. In the paper nothing is between them but what dividing and clipping do; [`relu`](Self::relu) learns more.
#[derive(Module, Debug)]
pub struct Mlp {
    /// `[d_model, d_hidden]`
    pub expand: Linear,
    /// `[d_hidden, d_model]`
    pub contract: Linear,
    /// Whether what is negative between them becomes 0.
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
