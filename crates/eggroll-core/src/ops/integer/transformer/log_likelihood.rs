//! Log-likelihood in 1/256 bit.

use super::IntegerTransformerOps;
use crate::arithmetic::integer::transformer::MAX_ROWS;
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// `Σ q[target] − G − L(Σ_v e_v)` over the rows of every member: the log-likelihood of the targets in 1/256 bit. `G` is a row's largest
/// logit, `e_v = round(2¹⁶·2^(−(G − q_v)/256))` by two tables of 16 entries, and 0 from 17 bits on; `L(S) = 256·log2(S / 2¹⁶)` by the 8
/// leading bits of `S`. 256 equal logits cost exactly 8 bits.
///
/// # Shapes
///
/// - logits: `[members · rows, classes]`, member-major, of type I32 and within ±32767
/// - targets: `[members · rows]`, below `classes`
/// - output: `[members]`, of type I32
///
/// # Panics
///
/// Panics if shapes do not fit, with the shapes, for more than 256 classes or 16,384 rows of a member, and on the CPU for a target that is no
/// class or a logit beyond ±32767.
#[track_caller]
pub fn log_likelihood(logits: Tensor<2, Int>, targets: Tensor<1, Int>, members: usize) -> Tensor<1, Int> {
    let ([rows, classes], [targets_len]) = (logits.dims(), targets.dims());
    assert!(
        members > 0 && rows == targets_len && rows.is_multiple_of(members) && (1..=256).contains(&classes),
        "integer transformer's log-likelihood: logits [{rows}, {classes}] do not fit targets [{targets_len}] of {members} members"
    );
    assert!(
        rows / members <= MAX_ROWS,
        "integer transformer's log-likelihood: {} rows of a member are more than {MAX_ROWS}",
        rows / members
    );
    counters::add_launch();
    let (logits, targets) = (logits.into_dispatch(), targets.into_dispatch());
    Tensor::from_dispatch(Dispatch::integer_transformer_log_likelihood(logits, targets, members))
}
