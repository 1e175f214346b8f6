//! Log-likelihood in sixteenths of a bit.

use super::IntegerOps;
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// `Σ q[target] − trunc(16·log2(Σ_v EXP2[q_v] / 16))`, `q = logit + 128`, over the rows of every member: the log-likelihood of
/// the targets in sixteenths of a bit, where a logit of 16 doubles a probability.
///
/// # Shapes
///
/// - logits: `[members · rows, classes]`, member-major
/// - targets: `[members · rows]`, below `classes`
/// - output: `[members]`, of type I32
///
/// # Panics
///
/// Panics if shapes do not fit, with the shapes, for more than 256 classes, and on the CPU for a target that is no class.
#[track_caller]
pub fn log_likelihood(logits: Tensor<2, Int>, targets: Tensor<1, Int>, members: usize) -> Tensor<1, Int> {
    let ([rows, classes], [targets_len]) = (logits.dims(), targets.dims());
    assert!(
        members > 0 && rows == targets_len && rows.is_multiple_of(members) && (1..=256).contains(&classes),
        "integer log-likelihood: logits [{rows}, {classes}] do not fit targets [{targets_len}] of {members} members"
    );
    counters::add_launch();
    let (logits, targets) = (logits.into_dispatch(), targets.into_dispatch());
    Tensor::from_dispatch(Dispatch::integer_log_likelihood(logits, targets, members))
}
