//! The slice kernels of operations between layers: for f32, the portable defaults for other types.

use super::cpu;
use super::slice_backend::{SliceBackend, dims, filled, readable, written};
use crate::ops::portable::rows as portable;
use crate::ops::rows::{Activation, CausalAttention, RowOps};
use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::DType;

impl<B: SliceBackend> RowOps for B {
    fn activation(x: FloatTensor<B>, function: Activation) -> FloatTensor<B> {
        if x.dtype() != DType::F32 {
            return portable::activation::<B>(x, function);
        }
        let (x, shape) = (B::contiguous(x.clone()), x.shape());
        // SAFETY: the kernel writes every element.
        let y = unsafe {
            written::<B, 1>("activation", [shape.num_elements()], |y| cpu::activation(B::slice(&x), function, y))
        };
        B::float_reshape(y, shape)
    }

    fn rms_normalized(x: FloatTensor<B>, epsilon: f32) -> FloatTensor<B> {
        if x.dtype() != DType::F32 {
            return portable::rms_normalized::<B>(x, epsilon);
        }
        let (x, shape) = (B::contiguous(x.clone()), x.shape());
        let width = shape.as_slice().last().copied().unwrap_or(1);
        // SAFETY: the kernel writes every element.
        let y = unsafe {
            written::<B, 1>("RMS norm", [shape.num_elements()], |y| {
                cpu::rms_normalized(B::slice(&x), width, epsilon, y)
            })
        };
        B::float_reshape(y, shape)
    }

    fn gated_recurrence(
        forget: FloatTensor<B>,
        candidate: FloatTensor<B>,
        kept: FloatTensor<B>,
        state: FloatTensor<B>,
    ) -> FloatTensor<B> {
        let name = "gated recurrence";
        let shape @ [_, steps, width] = dims(&forget);
        if forget.dtype() != DType::F32 {
            return portable::gated_recurrence::<B>(forget, candidate, kept, state);
        }
        let forget = B::contiguous(forget);
        let [candidate, kept, state] = [("candidates", candidate), ("factors", kept), ("state", state)]
            .map(|(what, operand)| readable::<B>(name, what, operand));
        let slices = [&forget, &candidate, &kept, &state].map(B::slice);
        // SAFETY: the kernel writes every element.
        unsafe { written::<B, 3>(name, shape, |states| cpu::gated_recurrence(slices, [steps, width], states)) }
    }

    fn causal_attention(
        query: FloatTensor<B>,
        key: FloatTensor<B>,
        value: FloatTensor<B>,
        attention: CausalAttention,
    ) -> FloatTensor<B> {
        let name = "causal attention";
        if query.dtype() != DType::F32 {
            return portable::causal_attention::<B>(query, key, value, attention);
        }
        let query = B::contiguous(query);
        let [key, value] = [("keys", key), ("values", value)].map(|(what, operand)| readable::<B>(name, what, operand));
        let slices = [&query, &key, &value].map(B::slice);
        let shape @ [_, steps, width] = dims(&query);
        filled::<B, 3>(name, shape, |out| cpu::causal_attention(slices, [steps, width], &attention, out))
    }
}
