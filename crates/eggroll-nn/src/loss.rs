//! Losses per row. Burn's losses reduce over the batch, but a population needs them by member.

use burn::tensor::{Int, Tensor, activation::log_softmax};

/// Cross-entropy of every row: `−log softmax(logits)[target]`, in nats.
///
/// # Shapes
///
/// - logits: `[rows, classes]`, targets: `[rows]`
/// - output: `[rows]`
///
/// # Panics
///
/// Panics if the rows differ, with both shapes.
#[track_caller]
pub fn cross_entropy(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    let [rows, _] = logits.dims();
    assert!(
        targets.dims() == [rows],
        "cross-entropy: logits {:?} do not fit targets {:?}",
        logits.dims(),
        targets.dims()
    );
    let chosen = log_softmax(logits, 1).gather(1, targets.unsqueeze_dim::<2>(1)); // [rows, 1]
    -chosen.reshape([rows])
}
