//! The feed-forward part of a block.

use super::{MeanNorm, MeanNormConfig, Observe, RoundedLinear, RoundedLinearConfig, residual};
use crate::check::check;
use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};

/// Configuration of a [`FeedForward`] part.
#[derive(Config, Debug)]
pub struct FeedForwardConfig {
    /// The size of inputs and outputs.
    pub d_model: usize,
    /// The size between.
    pub d_hidden: usize,
}

impl FeedForwardConfig {
    /// Norm and two layers, GELU between.
    ///
    /// # Panics
    ///
    /// Panics, naming the field, if a size is 0 or larger than memory, or a number does not fit f32.
    #[track_caller]
    pub fn init(&self, device: &Device) -> FeedForward {
        check("FeedForwardConfig", self, &[]);
        FeedForward {
            norm: MeanNormConfig::new(self.d_model).init(device),
            expand: RoundedLinearConfig::new(self.d_model, self.d_hidden).with_activate(true).init(device),
            contract: RoundedLinearConfig::new(self.d_hidden, self.d_model).init(device),
        }
    }
}

/// `x ← rescale(x + contract(GELU(expand(norm(x)))))`
#[derive(Module, Debug)]
pub struct FeedForward {
    /// Before the layers.
    pub norm: MeanNorm,
    /// `[d_model, d_hidden]`, with GELU.
    pub expand: RoundedLinear,
    /// `[d_hidden, d_model]`
    pub contract: RoundedLinear,
}

impl FeedForward {
    /// Applies the layers and adds their output to the input.
    ///
    /// # Shapes
    ///
    /// - input and output: `[..., d_model]`
    ///
    /// # Panics
    ///
    /// As [`RoundedLinear::forward`].
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D, Int>) -> Tensor<D, Int> {
        self.observed(input, &mut |_, _| {})
    }

    /// [`forward`](Self::forward), with all activations shown to `observe`.
    #[track_caller]
    pub(super) fn observed<const D: usize>(&self, input: Tensor<D, Int>, observe: Observe<'_, D>) -> Tensor<D, Int> {
        let x = self.norm.forward(input.clone());
        observe("norm", &x);
        let hidden = self.expand.forward(x);
        observe("expand", &hidden);
        let y = self.contract.forward(hidden);
        observe("contract", &y);
        let sum = residual(input, y);
        observe("sum", &sum);
        sum
    }
}
