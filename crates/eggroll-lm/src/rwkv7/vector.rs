//! Vectors of parameters by row.

use burn::module::{Initializer, Param};
use burn::tensor::{Device, Tensor};
use eggroll_core::scope;

/// A vector for rows, `[1, 1, n]`; inside `evaluate` the vector of each row's member, `[rows, 1, n]`.
///
/// # Panics
///
/// Panics inside `evaluate` if the rows are not a multiple of the members.
#[track_caller]
pub(super) fn of_rows(vector: &Param<Tensor<1>>, rows: usize) -> Tensor<3> {
    let Some(parameter) = scope::active(vector) else {
        return vector.val().unsqueeze();
    };
    let vectors = parameter.vector(vector); // [members, n]
    let [members, n] = vectors.dims();
    assert!(rows.is_multiple_of(members), "{rows} rows are not a multiple of {members} members");
    vectors.unsqueeze_dim::<3>(1).repeat_dim(1, rows / members).reshape([rows, 1, n])
}

/// A vector of random numbers of a range.
pub(super) fn uniform(n: usize, (min, max): (f64, f64), device: &Device) -> Param<Tensor<1>> {
    Initializer::Uniform { min, max }.init([n], device)
}
