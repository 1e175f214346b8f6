//! A task: a network with hooks, data, and a figure to judge by.

use crate::learn::Method;
use burn::module::Module;
use burn::tensor::{Int, Tensor};
use eggroll::nn::Linear;
use eggroll::prelude::{EvolutionStrategyConfig, OptimizerConfig};
use eggroll_examples::Failure;

/// Called with each layer, its input `x` and its output `x·W + b`; returns the output to use.
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

/// Rows with their labels: each row is a part with a separate loss.
pub struct Batch {
    /// `[rows, d_input]`
    pub inputs: Tensor<2>,
    /// `[rows]`
    pub labels: Tensor<1, Int>,
}

/// A task whose loss is the cross-entropy of rows.
pub trait CreditTask {
    type Network: Network;

    /// Steps of a sequence; a loss may depend on earlier rows of its sequence.
    const STEPS: usize = 1;

    /// The network before training.
    fn network(&self) -> Self::Network;

    /// What a step learns from.
    fn batch(&mut self, step: u64) -> Batch;

    /// Members and noise of evolution, which are good for means and parts alike by `--dev`.
    fn evolution(&self) -> EvolutionStrategyConfig;

    /// The optimizer, the same for all methods.
    fn optimizer(&self) -> OptimizerConfig;

    /// The learning rate at the beginning, which falls to 0 over the run: the best of several by `--dev`.
    fn rate(&self, method: Method) -> f64;

    /// The figure on data that is not learned from.
    fn judge(&self, network: &Self::Network) -> Result<f64, Failure>;
}
