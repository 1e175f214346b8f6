//! Addition of activations.

use super::{clip, rescale, reshape, wide};
use crate::arithmetic::integer::Rounding;
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, TensorMetadata};

pub(crate) fn add<B: Backend>(a: IntTensor<B>, b: IntTensor<B>, rounding: Rounding) -> IntTensor<B> {
    let (shape, dtype) = (a.shape(), a.dtype());
    let sum = B::int_add(wide::<B>(a), wide::<B>(b));
    let sum = match rounding {
        Rounding::Floor => clip::<B>(sum),
        Rounding::Nearest => {
            let width = shape[shape.num_dims() - 1];
            let rows = shape.num_elements().checked_div(width).unwrap_or(0);
            B::int_reshape(rescale::<B>(reshape::<B, 2>(sum, [rows, width])), shape)
        }
    };
    B::int_cast(sum, dtype.into())
}
