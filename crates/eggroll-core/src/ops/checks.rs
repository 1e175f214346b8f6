//! Checks of operands. The public functions of [`ops`](crate::ops) check their operands once, before they call a backend. Nothing else
//! calls a backend: the extension traits cannot be named outside of this crate. Kernels rely on the checks.

use super::operands::{InputRows, LinearBias, LinearMembers};
use crate::rng::key::PairRange;
use burn::tensor::Tensor;

/// More elements than any memory holds; products of a few constants with smaller numbers do not overflow.
pub(super) const TOO_MANY: usize = 1 << if usize::BITS > 32 { 40 } else { 28 };
/// Number of all pairs.
const PAIRS: u64 = 1 << 32;

/// Elements of these sides.
#[track_caller]
pub(crate) fn len(operation: &str, sides: &[usize]) -> usize {
    let len = sides.iter().try_fold(1usize, |len, side| len.checked_mul(*side)).filter(|len| *len < TOO_MANY);
    len.unwrap_or_else(|| panic!("{operation}: an output of {sides:?} elements is larger than any memory"))
}

/// Panics if there are no such pairs.
#[track_caller]
pub(in crate::ops) fn check_range(operation: &str, pairs: PairRange) {
    let PairRange { first, count } = pairs;
    assert!(
        u64::from(first) + u64::from(count) <= PAIRS,
        "{operation}: {count} pairs from {first} on end beyond the last, 2^32 - 1"
    );
}

/// Panics if there are no such pairs, or no pairs at all.
#[track_caller]
pub(in crate::ops) fn check_pairs(operation: &str, pairs: PairRange) {
    check_range(operation, pairs);
    assert!(pairs.count > 0, "{operation}: no pairs, and so no members");
}

/// Elements of one pair's low-rank noise of a matrix.
#[track_caller]
pub(in crate::ops) fn low_rank_elements(operation: &str, rank: usize, shape: [usize; 2]) -> usize {
    let elements = shape[0].checked_add(shape[1]).and_then(|sides| sides.checked_mul(rank));
    let elements = elements.filter(|elements| rank > 0 && *elements < TOO_MANY);
    elements.unwrap_or_else(|| panic!("{operation}: the noise of a matrix {shape:?} cannot have rank {rank}"))
}

/// Panics unless members have `rows` rows; each becomes `width` values.
#[track_caller]
pub(super) fn check_rows(operation: &str, rows: usize, width: usize, members: &LinearMembers) {
    check_pairs(operation, members.pairs);
    let count = members.pairs.members();
    match members.input {
        InputRows::Shared => _ = len(operation, &[count, rows, width]),
        InputRows::PerMember => assert!(
            rows.is_multiple_of(count),
            "{operation}: {rows} rows are not a multiple of {count} members; expand shared rows to every member, or use the \
             shared form"
        ),
    }
}

/// Panics with the shapes if the operands of a perturbed linear do not fit.
#[track_caller]
pub(super) fn check_linear(x: &Tensor<2>, weight: &Tensor<2>, bias: &LinearBias, members: &LinearMembers) {
    let (input @ [rows, width], shape @ [d_input, d_output]) = (x.dims(), weight.dims());
    assert!(
        width == d_input,
        "perturbed linear: the input {input:?} does not fit the weight {shape:?}: {width} columns, but {d_input} rows"
    );
    if let Some(bias) = bias.dims() {
        assert!(bias == [d_output], "perturbed linear: the bias {bias:?} does not fit the weight {shape:?}");
    }
    check_rows("perturbed linear", rows, d_output, members);
    if let LinearBias::Perturbed(_, _, source) = bias {
        source.check(members.pairs, d_output);
    }
}
