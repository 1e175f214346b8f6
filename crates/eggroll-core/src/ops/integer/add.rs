//! Saturating addition.

use super::IntegerOps;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// `clip(a + b)`, the sum being int32.
///
/// # Panics
///
/// Panics if the shapes differ, with both.
///
/// # Example
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use eggroll_core::ops::integer::add;
///
/// let a = Tensor::<1, Int>::from_data([100i8, -5], (&Device::flex(), DType::I8));
/// assert_eq!(add(a.clone(), a).into_data().try_to_vec::<i8>().unwrap(), [127, -10]);
/// ```
#[track_caller]
pub fn add<const D: usize>(a: Tensor<D, Int>, b: Tensor<D, Int>) -> Tensor<D, Int> {
    assert!(a.dims() == b.dims(), "integer add: the shapes {:?} and {:?} differ", a.dims(), b.dims());
    Tensor::from_dispatch(Dispatch::integer_add(a.into_dispatch(), b.into_dispatch()))
}
