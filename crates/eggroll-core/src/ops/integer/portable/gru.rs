//! The recurrence of the minimal GRU, step after step.

use super::linear::product;
use super::{PairNoise, by_member, clip, dims, floor_shift, is_nonzero, not, reshape, wide};
use crate::arithmetic::integer::{INT8_LIMIT, Rounding};
use crate::ops::integer::GatePrimitive;
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::Slice;

pub(crate) fn gru<B: Backend>(
    state: IntTensor<B>,
    starts: IntTensor<B>,
    forget: GatePrimitive<B>,
    candidate: GatePrimitive<B>,
) -> IntTensor<B> {
    let ([sequences, width], rows, dtype) = (dims::<B>(&state), starts.shape()[0], state.dtype());
    let steps = rows / sequences;
    if steps == 0 {
        return B::int_slice(state, &[Slice::from(0..0), Slice::from(0..width)]);
    }
    let keep = reshape::<B, 2>(not::<B>(is_nonzero::<B>(wide::<B>(starts))), [sequences, steps]);
    let (forget, candidate) = (WideGate::new(forget, sequences), WideGate::new(candidate, sequences));
    let mut h = wide::<B>(state);
    let mut outputs = Vec::with_capacity(steps);
    for step in 0..steps {
        let at = [Slice::from(0..sequences), Slice::from(step..step + 1)];
        h = B::int_mul(h, B::int_slice(keep.clone(), &at)); // [sequences, width] · [sequences, 1]
        let share = B::int_add_scalar(forget.at(step, h.clone()), Scalar::from(INT8_LIMIT));
        let gated = floor_shift::<B>(B::int_mul(share.clone(), h.clone()), 8);
        let change = B::int_sub(candidate.at(step, gated), h.clone());
        h = wrap::<B>(B::int_add(h, floor_shift::<B>(B::int_mul(share, change), 8)));
        outputs.push(reshape::<B, 3>(h.clone(), [sequences, 1, width]));
    }
    B::int_cast(reshape::<B, 2>(B::int_cat(outputs, 1), [rows, width]), dtype.into())
}

/// One gate with its operands in I32.
struct WideGate<B: Backend> {
    /// `[sequences, steps, width]`
    input: IntTensor<B>,
    weight: IntTensor<B>,
    noise: Option<PairNoise<B>>,
    /// `[members, width]`, or `[1, width]` without noise
    bias: IntTensor<B>,
}

impl<B: Backend> WideGate<B> {
    fn new(gate: GatePrimitive<B>, sequences: usize) -> Self {
        let [rows, width] = dims::<B>(&gate.input);
        let bias = wide::<B>(gate.bias);
        Self {
            input: reshape::<B, 3>(wide::<B>(gate.input), [sequences, rows / sequences, width]),
            weight: wide::<B>(gate.weight),
            noise: PairNoise::of(gate.weight_noise),
            bias: match PairNoise::of(gate.bias_noise) {
                None => reshape::<B, 2>(bias, [1, width]),
                Some(noise) => noise.vector(bias, Rounding::Floor),
            },
        }
    }

    /// The gate's value in a step: `[sequences, width]`.
    fn at(&self, step: usize, h: IntTensor<B>) -> IntTensor<B> {
        let [sequences, width] = dims::<B>(&h);
        let at = [Slice::from(0..sequences), Slice::from(step..step + 1), Slice::from(0..width)];
        let input = reshape::<B, 2>(B::int_slice(self.input.clone(), &at), [sequences, width]);
        let product = clip::<B>(product::<B>(h, self.weight.clone(), self.noise.as_ref(), Rounding::Floor));
        clip::<B>(by_member::<B>(B::int_add(input, product), self.bias.clone(), B::int_add))
    }
}

/// The int8 that has the low byte of `t`.
fn wrap<B: Backend>(t: IntTensor<B>) -> IntTensor<B> {
    let byte = B::bitwise_and_scalar(B::int_add_scalar(t, Scalar::from(128)), Scalar::from(255));
    B::int_sub_scalar(byte, Scalar::from(128))
}
