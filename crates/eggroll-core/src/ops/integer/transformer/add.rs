//! A residual connection.

use super::IntegerTransformerOps;
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// `rescale(x + y)`, `rescale(v) = round(127·v / max |v|)` over a row: the largest magnitude of every row is 127, unless all are 0.
///
/// # Shapes
///
/// - x, y and output: `[rows, n]`
///
/// # Panics
///
/// Panics if the shapes differ, with both.
///
/// # Example
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use eggroll_core::ops::integer::transformer::add;
///
/// let row = |values: [i8; 3]| Tensor::<2, Int>::from_data([values], (&Device::flex(), DType::I8));
/// let sum = add(row([3, -2, 100]), row([1, 0, 100]));
/// assert_eq!(sum.into_data().try_to_vec::<i8>().unwrap(), [3, -1, 127]); // [4, −2, 200]·127/200
/// ```
#[track_caller]
pub fn add(x: Tensor<2, Int>, y: Tensor<2, Int>) -> Tensor<2, Int> {
    assert!(x.dims() == y.dims(), "integer transformer's add: the shapes {:?} and {:?} differ", x.dims(), y.dims());
    counters::add_launch();
    Tensor::from_dispatch(Dispatch::integer_transformer_add(x.into_dispatch(), y.into_dispatch()))
}
