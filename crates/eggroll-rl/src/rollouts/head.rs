//! From outputs to actions, on tensors and on one row: the same values.

use crate::ActionSpace;
use burn::tensor::{Int, Tensor, activation};
use serde::{Deserialize, Serialize};

/// How a policy's outputs become actions.
///
/// | head | discrete actions | continuous actions |
/// |---|---|---|
/// | greedy | the one of the highest output, the first of equals | outputs, clamped to the bounds |
/// | sampled | drawn with the probabilities `softmax(outputs)` | – |
/// | tanh | – | `low + (high − low)·(tanh(output) + 1)/2` |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionHead {
    /// The best action.
    #[default]
    Greedy,
    /// A discrete action drawn by the key of its pair, episode and step (common random numbers): members of a pair whose outputs are equal
    /// act alike, in any chunk.
    Sampled,
    /// A continuous action squashed between its bounds.
    Tanh,
}

impl ActionHead {
    /// Whether it makes actions of this kind: within these bounds, if they are continuous.
    pub fn fits(&self, actions: ActionSpace) -> bool {
        match (self, actions) {
            (Self::Greedy | Self::Sampled, ActionSpace::Discrete(_)) => true,
            (Self::Greedy, ActionSpace::Continuous { .. }) => actions.has_values(),
            (Self::Tanh, ActionSpace::Continuous { .. }) => actions.has_values() && actions.is_bounded(),
            (Self::Sampled, ActionSpace::Continuous { .. }) | (Self::Tanh, ActionSpace::Discrete(_)) => false,
        }
    }

    /// Actions of all rows.
    ///
    /// # Shapes
    ///
    /// - outputs: `[rows, outputs]`, uniform: `[rows]` numbers from 0 to 1 for a sampled head
    /// - output: `[rows, action_size]`
    pub(super) fn actions(&self, outputs: Tensor<2>, uniform: Option<Tensor<1>>, space: ActionSpace) -> Tensor<2> {
        match (self, space) {
            // The only action needs no draw.
            (Self::Sampled, ActionSpace::Discrete(count)) if count > 1 => {
                let best = outputs.clone().max_dim(1); // [rows, 1]
                let sums = (outputs - best).exp().cumsum(1); // [rows, count]
                let total = sums.clone().slice_dim(1, count - 1..count);
                let uniform = uniform.expect("drawn for a sampled head").unsqueeze_dim::<2>(1);
                let below = sums.slice_dim(1, 0..count - 1).lower_equal(uniform * total); // [rows, count − 1]
                below.float().sum_dim(1)
            }
            (_, ActionSpace::Discrete(_)) => {
                let best: Tensor<2, Int> = outputs.argmax(1);
                best.float()
            }
            (Self::Tanh, ActionSpace::Continuous { low, high, .. }) => {
                let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
                activation::tanh(outputs).mul_scalar(half).add_scalar(middle)
            }
            (_, ActionSpace::Continuous { low, high, .. }) => outputs.clamp(low, high),
        }
    }
}
