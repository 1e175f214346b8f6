//! Backends whose tensors are slices of memory, and new tensors that kernels write.

use super::memo::Address;
use crate::ops::len;
use crate::scope;
use crate::work::profile;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{DType, Shape, TensorData};
use std::mem::MaybeUninit;

/// A backend whose f32 tensors are slices of memory.
pub(crate) trait SliceBackend: Backend {
    /// The same values, row after row without gaps.
    fn contiguous(tensor: FloatTensor<Self>) -> FloatTensor<Self>;

    /// Values of a contiguous f32 tensor.
    fn slice(tensor: &FloatTensor<Self>) -> &[f32];

    /// Where the elements of an f32 tensor are.
    fn address(tensor: &FloatTensor<Self>) -> Address;

    /// A tensor of these values, which are not copied.
    fn from_vec(values: Vec<f32>, shape: Shape) -> FloatTensor<Self>;

    /// Values of an integer tensor.
    fn int_data(tensor: IntTensor<Self>) -> TensorData;

    /// The same values of type I8, row after row without gaps.
    fn int8(tensor: IntTensor<Self>) -> IntTensor<Self>;

    /// Values of a contiguous I8 tensor.
    fn int8_slice(tensor: &IntTensor<Self>) -> &[i8];

    /// A tensor of these values, which are not copied.
    fn from_int8(values: Vec<i8>, shape: Shape) -> IntTensor<Self>;
}

/// The sides of an operand. Operations take tensors of as many axes ([`ops`](crate::ops)).
pub(super) fn dims<const D: usize>(operand: &impl TensorMetadata) -> [usize; D] {
    operand.shape().as_slice().try_into().expect("of as many axes as the operation takes")
}

/// An operand of an operation whose kernel takes f32, readable as a slice.
#[track_caller]
pub(super) fn readable<B: SliceBackend>(operation: &str, name: &str, operand: FloatTensor<B>) -> FloatTensor<B> {
    let found = operand.dtype();
    assert!(found == DType::F32, "{operation}: the {name} is of type {found:?}, the first operand of F32");
    B::contiguous(operand)
}

/// A new tensor that `fill` writes: it starts as zeros.
#[track_caller]
pub(super) fn filled<B: SliceBackend, const D: usize>(
    operation: &str,
    shape: [usize; D],
    fill: impl FnOnce(&mut [f32]),
) -> FloatTensor<B> {
    let mut values = vec![0.0; len(operation, &shape)];
    let waiting = profile::waiting_for_pool();
    scope::suspended(|| fill(&mut values));
    drop(waiting);
    B::from_vec(values, Shape::new(shape))
}

/// A new tensor that `write` writes, without clearing it before: for outputs as large as the activations.
///
/// # Safety
///
/// `write` must write every element.
#[track_caller]
pub(super) unsafe fn written<B: SliceBackend, const D: usize>(
    operation: &str,
    shape: [usize; D],
    write: impl FnOnce(&mut [MaybeUninit<f32>]),
) -> FloatTensor<B> {
    let len = len(operation, &shape);
    let mut values = Vec::with_capacity(len);
    let waiting = profile::waiting_for_pool();
    scope::suspended(|| write(&mut values.spare_capacity_mut()[..len]));
    drop(waiting);
    // SAFETY: the capacity is there, and `write` wrote every element by this function's contract.
    unsafe { values.set_len(len) };
    B::from_vec(values, Shape::new(shape))
}

/// Indices of an integer tensor of any type.
///
/// # Panics
///
/// Panics if an index is not below `count`, with `what` it is and `of` what.
#[track_caller]
pub(super) fn indices_below(values: TensorData, count: usize, what: &str, of: &str) -> Vec<usize> {
    let index = |value: i64| {
        let index = usize::try_from(value).ok().filter(|index| *index < count);
        index.unwrap_or_else(|| panic!("{what} {value} is not one of {count} {of}"))
    };
    values.iter::<i64>().map(index).collect()
}
