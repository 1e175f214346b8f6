//! Vectors of parameters by member.

use burn::module::Param;
use burn::tensor::Tensor;
use eggroll_core::scope::{self, ActiveParameter};

/// The perturbation of a layer, by its first parameter. `None` if all its parameters have `no_grad()` in the model, like a frozen teacher.
#[track_caller]
pub(crate) fn active<const D: usize>(
    first: &Param<Tensor<D>>,
    bias: Option<&Param<Tensor<1>>>,
) -> Option<ActiveParameter> {
    let is_inactive = |bias: &Param<Tensor<1>>| scope::active(bias).is_none_or(|bias| bias.is_inactive());
    scope::active(first).filter(|first| !first.is_inactive() || !bias.is_none_or(is_inactive))
}

/// A vector under every member's noise, `[members, n]`; plain if it does not belong to the model.
#[track_caller]
pub(crate) fn vector(vector: &Param<Tensor<1>>, members: usize) -> Tensor<2> {
    match scope::active(vector) {
        Some(parameter) => parameter.vector(vector),
        None => vector.val().unsqueeze::<2>().repeat_dim(0, members),
    }
}

/// `y[m·rows + i, …, c, …] = gain[m, c]·x[m·rows + i, …, c, …] + bias[m, c]`, with `c` along `axis`.
///
/// # Shapes
///
/// - x: `[members · rows, ..., n, ...]`; gain, bias: `[members, n]`
///
/// # Panics
///
/// Panics if the first axis of `x` is not a multiple of the members.
#[track_caller]
pub(crate) fn scale_and_shift<const D: usize>(
    x: Tensor<D>,
    axis: usize,
    gain: Tensor<2>,
    bias: Option<Tensor<2>>,
) -> Tensor<D> {
    let (dims, [members, width]) = (x.dims(), gain.dims());
    check_leading(&dims, members);
    let before = dims[..axis].iter().product::<usize>() / members;
    let after = dims[axis + 1..].iter().product();
    let of_members = |values: Tensor<2>| values.reshape([members, 1, width, 1]);
    let y = x.reshape([members, before, width, after]) * of_members(gain);
    match bias {
        Some(bias) => (y + of_members(bias)).reshape(dims),
        None => y.reshape(dims),
    }
}

/// Panics if an input has no values, or if its first axis is not `members` times a number of rows.
#[track_caller]
pub(crate) fn check_rows(parameter: &ActiveParameter, dims: &[usize]) {
    parameter.refuse_empty(dims);
    check_leading(dims, parameter.pairs().members());
    parameter.check_rows(dims[0]);
}

/// Panics if the first axis of an input is not `members` times a number of rows.
#[track_caller]
pub(crate) fn check_leading(dims: &[usize], members: usize) {
    assert!(
        dims.len() > 1 && dims[0].is_multiple_of(members),
        "the first axis of the input {dims:?} is not a multiple of {members} members"
    );
}
