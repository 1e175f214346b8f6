//! Cross-entropy of every member, and of every row.

use super::PerturbedOps;
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// Mean cross-entropy of every member over rows with the same targets for all, in nats:
///
/// `−1/rows · Σ_i log softmax(logits[m·rows + i])[targets[i]]`
///
/// One pass over the logits; the targets are not expanded.
///
/// # Shapes
///
/// - logits: `[members · rows, classes]`, member-major
/// - targets: `[rows]`, each below `classes`
/// - output: `[members]`
///
/// # Panics
///
/// Panics if the logits' rows are not `members` times the targets, with both shapes. A target outside the classes
/// panics on the CPU and gives NaN or a wrong value elsewhere, as in Burn's gather.
#[track_caller]
pub fn member_cross_entropy(logits: Tensor<2>, targets: Tensor<1, Int>, members: usize) -> Tensor<1> {
    check(&logits, &targets, members);
    counters::add_launch();
    Tensor::from_dispatch(Dispatch::member_cross_entropy(logits.into_dispatch(), targets.into_dispatch(), members))
}

/// Cross-entropy of every row of every member, with the same targets for all, in nats: the terms of [`member_cross_entropy`], for
/// fitness by row.
///
/// # Shapes
///
/// - logits: `[members · rows, classes]`, member-major
/// - targets: `[rows]`, each below `classes`
/// - output: `[members, rows]`
///
/// # Panics
///
/// As [`member_cross_entropy`].
#[track_caller]
pub fn row_cross_entropy(logits: Tensor<2>, targets: Tensor<1, Int>, members: usize) -> Tensor<2> {
    check(&logits, &targets, members);
    counters::add_launch();
    Tensor::from_dispatch(Dispatch::row_cross_entropy(logits.into_dispatch(), targets.into_dispatch(), members))
}

#[track_caller]
fn check(logits: &Tensor<2>, targets: &Tensor<1, Int>, members: usize) {
    let ([rows, classes], [targets_len]) = (logits.dims(), targets.dims());
    assert!(
        members > 0 && classes > 0 && targets_len > 0 && members.checked_mul(targets_len) == Some(rows),
        "cross-entropy: logits [{rows}, {classes}] do not fit {members} members with targets [{targets_len}]: \
         expected [members · rows, classes] and targets [rows], which are not repeated"
    );
}
