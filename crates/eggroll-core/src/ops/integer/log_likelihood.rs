//! Log-likelihood of targets.

use super::{IntegerOps, Rounding};
use crate::arithmetic::integer::transformer::MAX_ROWS;
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// The log-likelihood of the targets, summed over the rows of every member.
///
/// | rounding | logits | unit | a row's summand |
/// |---|---|---|---|
/// | [`Floor`](Rounding::Floor) | int8, 16 doubles a probability | 1/16 bit | `q[target] − trunc(16·log2(Σ_v EXP2[q_v] / 16))`, `q = logit + 128` |
/// | [`Nearest`](Rounding::Nearest) | I32 within ±32767, 256 doubles a probability | 1/256 bit | `q[target] − G − L(Σ_v e_v)` |
///
/// `G` is a row's largest logit, `e_v = round(2¹⁶·2^(−(G − q_v)/256))` by two tables of 16 entries, and 0 from 17 bits on. `L(S) = 256·log2(S / 2¹⁶)`
/// by the 8 leading bits of `S`. With either rounding, 256 equal logits cost exactly 8 bits.
///
/// # Shapes
///
/// - logits: `[members · rows, classes]`, member-major
/// - targets: `[members · rows]`, below `classes`
/// - output: `[members]`, of type I32
///
/// # Panics
///
/// Panics, with the shapes, if they do not fit, and for more than 256 classes. With [`Rounding::Nearest`], also for more than 16,384 rows of
/// a member. On the CPU, also for a target outside the classes or a logit beyond ±32767.
#[track_caller]
pub fn log_likelihood(
    logits: Tensor<2, Int>,
    targets: Tensor<1, Int>,
    members: usize,
    rounding: Rounding,
) -> Tensor<1, Int> {
    let (name, [rows, classes], [targets_len]) = ("integer log-likelihood", logits.dims(), targets.dims());
    assert!(
        members > 0 && rows == targets_len && rows.is_multiple_of(members) && (1..=256).contains(&classes),
        "{name}: logits [{rows}, {classes}] do not fit targets [{targets_len}] of {members} members"
    );
    assert!(
        rounding == Rounding::Floor || rows / members <= MAX_ROWS,
        "{name}: {} rows of a member are more than {MAX_ROWS}",
        rows / members
    );
    counters::add_launch();
    let (logits, targets) = (logits.into_dispatch(), targets.into_dispatch());
    Tensor::from_dispatch(Dispatch::integer_log_likelihood(logits, targets, members, rounding))
}
