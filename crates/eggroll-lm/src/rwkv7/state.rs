//! The state of sequences, on tensors.

use burn::tensor::Tensor;

/// A block's state of sequences so far.
#[derive(Clone, Debug)]
pub struct LayerState {
    /// The last input row of time mixing, `[rows, hidden_size]`.
    pub attention: Tensor<2>,
    /// The last input row of channel mixing, `[rows, hidden_size]`.
    pub feed_forward: Tensor<2>,
    /// The state of the recurrence, `[rows, heads, head_dim of keys, head_dim of values]`.
    pub wkv: Tensor<4>,
}
