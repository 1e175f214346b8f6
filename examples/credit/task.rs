//! What is learned: a network that one may reach into, data, and a figure to judge by.

use crate::learn::Method;
use burn::module::Module;
use burn::tensor::{Int, Tensor};
use eggroll::nn::Linear;
use eggroll::prelude::{EvolutionStrategyConfig, OptimizerConfig};
use eggroll_examples::Failure;

/// What a layer has made of its input may be changed: the layer, `x` and `x·W + b`.
pub type Hook<'a> = dyn FnMut(&Linear, Tensor<2>, Tensor<2>) -> Tensor<2> + 'a;

/// A network of linear layers.
pub trait Network: Module + Clone + Sync {
    /// Logits of rows: `[rows, d_input]` to `[rows, classes]`; inside `evaluate`, or with a hook that makes rows of members, to
    /// `[members · rows, classes]`.
    fn logits(&self, x: Tensor<2>, hook: &mut Hook<'_>) -> Tensor<2>;

    /// The same, unchanged.
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.logits(x, &mut |_, _, y| y)
    }
}

/// Rows with their labels: each row is a part, with a loss of its own.
#[derive(Clone)]
pub struct Batch {
    /// `[rows, d_input]`
    pub inputs: Tensor<2>,
    /// `[rows]`
    pub labels: Tensor<1, Int>,
}

/// A task whose loss is the cross-entropy of rows.
pub trait Task {
    type Network: Network;

    /// Rows of a sequence, each of which the next ones may depend on.
    const STEPS: usize = 1;

    /// The network before training.
    fn network(&self) -> Self::Network;

    /// What a step learns from.
    fn batch(&mut self, step: u64) -> Batch;

    /// Evolution's population and noise.
    fn evolution(&self) -> EvolutionStrategyConfig;

    /// Of all methods.
    fn optimizer(&self) -> OptimizerConfig;

    /// The learning rate at the beginning, which falls to 0 over the run: the best of several by `--dev`.
    fn rate(&self, method: Method) -> f64;

    /// The figure on data that is not learned from.
    fn judge(&self, network: &Self::Network) -> Result<f64, Failure>;
}
