//! Rows for every member.

use burn::tensor::Tensor;
use burn::tensor::kind::Basic;

/// `rows`, repeated along the first axis: `[count · rows, ...]`.
///
/// On GPUs Burn's `repeat_dim` of a single row is a view of it. A `select` fused by Burn 0.22 reads such indices as if they were copies, past the end of
/// that row. A single value is copied here for that reason.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
///
/// let token = Tensor::<1, Int>::from_ints([7], &Device::flex());
/// assert_eq!(eggroll_core::ops::repeated(token, 3).into_data().iter::<i64>().collect::<Vec<_>>(), [7, 7, 7]);
/// ```
pub fn repeated<const D: usize, K: Basic>(rows: Tensor<D, K>, count: usize) -> Tensor<D, K> {
    if count < 2 || rows.dims() != [1; D] {
        return rows.repeat_dim(0, count);
    }
    let two = Tensor::cat(vec![rows.clone(), rows], 0);
    two.repeat_dim(0, count.div_ceil(2)).slice_dim(0, 0..count)
}
