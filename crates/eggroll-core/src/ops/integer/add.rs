//! Addition of activations.

use super::{IntegerOps, Rounding};
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// The sum of two tensors in int32, converted back to int8.
///
/// | rounding | output |
/// |---|---|
/// | [`Floor`](Rounding::Floor) | `clip(a + b)` |
/// | [`Nearest`](Rounding::Nearest) | `rescale(a + b)`, `rescale(v) = round(127·v / max \|v\|)` over the last axis: the largest magnitude of every row is 127, unless all are 0 |
///
/// # Shapes
///
/// - a, b and output: the same, of one dimension at least
///
/// # Panics
///
/// Panics if the shapes differ, with both.
///
/// # Example
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use eggroll_core::integer::Rounding;
/// use eggroll_core::ops::integer::add;
///
/// let row = |values: [i8; 3]| Tensor::<1, Int>::from_data(values, (&Device::flex(), DType::I8));
/// let sum = |rounding| add(row([3, -2, 100]), row([1, 0, 100]), rounding).into_data().try_to_vec::<i8>().unwrap();
/// assert_eq!(sum(Rounding::Floor), [4, -2, 127]);
/// assert_eq!(sum(Rounding::Nearest), [3, -1, 127]); // [4, −2, 200]·127/200
/// ```
#[track_caller]
pub fn add<const D: usize>(a: Tensor<D, Int>, b: Tensor<D, Int>, rounding: Rounding) -> Tensor<D, Int> {
    assert!(a.dims() == b.dims(), "integer add: the shapes {:?} and {:?} differ", a.dims(), b.dims());
    counters::add_launch();
    Tensor::from_dispatch(Dispatch::integer_add(a.into_dispatch(), b.into_dispatch(), rounding))
}
