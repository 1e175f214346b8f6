//! Saturating addition.

use super::arithmetic::clip;
use cubecl::prelude::*;

/// A unit adds one element.
#[cube(launch)]
pub(crate) fn add_kernel<I: Int>(a: &[I], b: &[I], y: &mut [I], elements: usize, #[define(I)] _dtype: ElemType) {
    let at = ABSOLUTE_POS;
    if at < elements {
        y[at] = I::cast_from(clip(i32::cast_from(a[at]) + i32::cast_from(b[at])));
    }
}
