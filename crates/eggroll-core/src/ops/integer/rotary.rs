//! Heads turned by their position.

use super::IntegerOps;
use super::operands::check_heads;
use crate::arithmetic::integer::transformer::MAX_CONTEXT;
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// Every head of every row turned by its position `t`, and rescaled: for `j < d/2` of a head's `d` values
///
/// `(x_j, x_{j + d/2}) ← round((x_j·C − x_{j + d/2}·S, x_{j + d/2}·C + x_j·S) / 2¹⁴)`
///
/// with `C = round(2¹⁴·cos φ)`, `S = round(2¹⁴·sin φ)`, `φ = t·10000^(−2j/d)`; then `round(127·x / max |x|)` over the head.
///
/// # Shapes
///
/// - x and output: `[sequences · steps, heads · d]`; the positions of a sequence start with `first_position`
///
/// # Panics
///
/// Panics if shapes do not fit, with the shapes, and for positions from 2,048 on.
///
/// # References
///
/// Su et al., "RoFormer", arXiv 2104.09864, section 3.4.
#[track_caller]
pub fn rotary(x: Tensor<2, Int>, steps: usize, first_position: usize, heads: usize) -> Tensor<2, Int> {
    let name = "integer rotary";
    check_heads(name, x.dims(), steps, heads);
    assert!(
        first_position <= MAX_CONTEXT && steps <= MAX_CONTEXT - first_position,
        "{name}: {steps} positions from {first_position} on: they must be below {MAX_CONTEXT}"
    );
    counters::add_launch();
    Tensor::from_dispatch(Dispatch::integer_rotary(x.into_dispatch(), steps, first_position, heads))
}
