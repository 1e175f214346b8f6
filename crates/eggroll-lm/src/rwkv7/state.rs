//! What is kept of sequences, on tensors.

use burn::tensor::Tensor;

/// What a block keeps of the rows of sequences so far.
#[derive(Clone, Debug)]
pub struct LayerState {
    /// The last row that time mixing was given, `[rows, hidden_size]`.
    pub attention: Tensor<2>,
    /// The last row that channel mixing was given, `[rows, hidden_size]`.
    pub feed_forward: Tensor<2>,
    /// The state of the recurrence, `[rows, heads, head_dim of keys, head_dim of values]`.
    pub wkv: Tensor<4>,
}
