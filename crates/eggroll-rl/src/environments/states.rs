//! Rows and columns of states, in both forms.

use super::number::Numbers;
use crate::TensorEnvironment;
use burn::tensor::kind::Basic;
use burn::tensor::{Bool, Device, Tensor};

/// The first columns of `[environments, floats]`, each `[environments, 1]`.
pub fn columns<S: Numbers<Tensor<2>>>(rows: &Tensor<2>) -> S {
    S::from_fn(|place| rows.clone().narrow(1, place, 1))
}

/// Columns `[environments, 1]` side by side.
pub fn joined(columns: impl Numbers<Tensor<2>>) -> Tensor<2> {
    Tensor::cat(columns.into(), 1)
}

/// `[environments, 1]` to `[environments]`.
pub fn flat<K: Basic>(column: Tensor<2, K>) -> Tensor<1, K> {
    column.squeeze_dim(1)
}

/// `0 .. count` as a row: `[1, count]`.
pub fn counting(count: usize, device: &Device) -> Tensor<2> {
    Tensor::arange(0..count as i64, device).float().unsqueeze()
}

/// No environment has ended: `[environments]`.
pub fn none_ended(environments: usize, device: &Device) -> Tensor<1, Bool> {
    Tensor::zeros([environments], device)
}

/// Panics unless there is a state and an action for every environment.
#[track_caller]
pub fn check(environment: &impl TensorEnvironment, state: &Tensor<2>, actions: &Tensor<2>) {
    let [environments, floats] = state.dims();
    assert!(
        floats == environment.state_size() && actions.dims() == [environments, environment.actions().size()],
        "{}: states of shape {:?} and actions of shape {:?} for states of {} and actions of {} floats",
        environment.name(),
        state.dims(),
        actions.dims(),
        environment.state_size(),
        environment.actions().size(),
    );
}

/// Panics unless a row of one environment has so many floats.
#[inline]
#[track_caller]
pub fn check_row(floats: &[f32], due: usize) {
    assert!(floats.len() == due, "a row of {} floats, where {due} are due", floats.len());
}

/// A row of one environment as an array.
///
/// # Panics
///
/// Panics if it has another number of floats.
#[inline]
#[track_caller]
pub fn row<const N: usize>(floats: &mut [f32]) -> &mut [f32; N] {
    check_row(floats, N);
    floats.try_into().expect("as long as that")
}
