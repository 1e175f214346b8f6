//! The integer kernels of [`cpu::integer`](super::cpu::integer) on a backend whose tensors are slices: for parameters of type
//! I8, the portable defaults for other types.

use super::cpu::integer::{self as kernels, GateSlices, NoiseSlice, VoteSlices};
use super::slice_backend::{SliceBackend, dims, indices_below};
use crate::arithmetic::integer::Votes;
use crate::ops::integer::portable;
use crate::ops::integer::{GatePrimitive, IntegerMembers, IntegerNoisePrimitive, IntegerOps};
use crate::rng::key::{NoiseKey, PairRange};
use crate::scope::suspended;
use burn::backend::TensorMetadata;
use burn::backend::tensor::IntTensor;
use burn::tensor::{DType, Shape, TensorData};
use std::mem::MaybeUninit;

impl<B: SliceBackend> IntegerOps for B {
    fn integer_noise(like: IntTensor<B>, key: NoiseKey, pairs: PairRange, elements: usize) -> IntTensor<B> {
        if like.dtype() != DType::I8 {
            return portable::noise::<B>(&like, key, pairs, elements);
        }
        let mut noise = vec![0; pairs.count as usize * elements];
        suspended(|| kernels::noise(key, pairs, elements, &mut noise));
        B::from_int8(noise, Shape::new([pairs.count as usize, elements]))
    }

    fn integer_linear(x: IntTensor<B>, weight: IntTensor<B>, noise: IntegerNoisePrimitive<B>) -> IntTensor<B> {
        if weight.dtype() != DType::I8 {
            return portable::linear::<B>(x, weight, noise);
        }
        let (x, weight, noise) = (B::int8(x), B::int8(weight), held::<B>(noise));
        let ([rows, _], shape @ [_, d_output]) = (dims(&x), dims(&weight));
        let (x, weight) = (B::int8_slice(&x), B::int8_slice(&weight));
        let run = |y: &mut [MaybeUninit<i8>]| kernels::linear(x, weight, shape, on_slice::<B>(&noise), y);
        // SAFETY: the kernel writes every element.
        let y = unsafe { written(rows * d_output, run) };
        B::from_int8(y, Shape::new([rows, d_output]))
    }

    fn integer_embedding(tokens: IntTensor<B>, weight: IntTensor<B>, noise: IntegerNoisePrimitive<B>) -> IntTensor<B> {
        if weight.dtype() != DType::I8 {
            return portable::embedding::<B>(tokens, weight, noise);
        }
        let ([vocab, width], weight, noise) = (dims(&weight), B::int8(weight), held::<B>(noise));
        let tokens = indices_below(B::int_data(tokens), vocab, "integer embedding: token", "rows");
        let mut y = vec![0; tokens.len() * width];
        suspended(|| kernels::embedding(&tokens, B::int8_slice(&weight), width, on_slice::<B>(&noise), &mut y));
        B::from_int8(y, Shape::new([tokens.len(), width]))
    }

    fn integer_layer_norm(x: IntTensor<B>, weight: IntTensor<B>, noise: IntegerNoisePrimitive<B>) -> IntTensor<B> {
        if weight.dtype() != DType::I8 {
            return portable::layer_norm::<B>(x, weight, noise);
        }
        let (shape, x, weight, noise) = (x.shape(), B::int8(x), B::int8(weight), held::<B>(noise));
        let mut y = vec![0; shape.num_elements()];
        suspended(|| kernels::layer_norm(B::int8_slice(&x), B::int8_slice(&weight), on_slice::<B>(&noise), &mut y));
        B::from_int8(y, shape)
    }

    fn integer_add(a: IntTensor<B>, b: IntTensor<B>) -> IntTensor<B> {
        if a.dtype() != DType::I8 {
            return portable::add::<B>(&[a, b]);
        }
        let (shape, a, b) = (a.shape(), B::int8(a), B::int8(b));
        let mut y = vec![0; shape.num_elements()];
        suspended(|| kernels::add(B::int8_slice(&a), B::int8_slice(&b), &mut y));
        B::from_int8(y, shape)
    }

    fn integer_gru(
        state: IntTensor<B>,
        starts: IntTensor<B>,
        forget: GatePrimitive<B>,
        candidate: GatePrimitive<B>,
    ) -> IntTensor<B> {
        if state.dtype() != DType::I8 {
            return portable::gru::<B>(state, starts, forget, candidate);
        }
        let [_, width] = dims(&state);
        let (state, gates) = (B::int8(state), [gate::<B>(forget), gate::<B>(candidate)]);
        let starts: Vec<bool> = B::int_data(starts).iter::<i64>().map(|start| start != 0).collect();
        let mut out = vec![0; starts.len() * width];
        let slices = [gate_slices::<B>(&gates[0]), gate_slices::<B>(&gates[1])];
        suspended(|| kernels::gru(B::int8_slice(&state), &starts, slices, &mut out));
        B::from_int8(out, Shape::new([starts.len(), width]))
    }

    fn integer_log_likelihood(logits: IntTensor<B>, targets: IntTensor<B>, members: usize) -> IntTensor<B> {
        if logits.dtype() != DType::I8 {
            return portable::log_likelihood::<B>(logits, targets, members);
        }
        let ([_, classes], logits) = (dims(&logits), B::int8(logits));
        let targets = indices_below(B::int_data(targets), classes, "integer log-likelihood: target", "classes");
        let mut sums = vec![0; members];
        suspended(|| kernels::log_likelihood(B::int8_slice(&logits), &targets, classes, &mut sums));
        B::int_from_data(TensorData::new(sums, [members]), &Default::default())
    }

    fn integer_sum_votes(
        noise: IntTensor<B>,
        scores: IntTensor<B>,
        rank: usize,
        votes: Votes,
        d_input: usize,
        d_output: usize,
    ) -> IntTensor<B> {
        let shape = [d_input, d_output];
        if noise.dtype() != DType::I8 {
            return portable::sum_votes::<B>(noise, scores, rank, votes, shape);
        }
        let (noise, scores) = (B::int8(noise), B::int8(scores));
        let mut sums = vec![0; d_input * d_output];
        let op = VoteSlices { noise: B::int8_slice(&noise), scores: B::int8_slice(&scores), rank, votes };
        suspended(|| kernels::sum_votes(&op, shape, &mut sums));
        B::int_from_data(TensorData::new(sums, shape), &Default::default())
    }

    fn integer_update(
        parameter: IntTensor<B>,
        noise: IntTensor<B>,
        scores: IntTensor<B>,
        rank: usize,
        votes: Votes,
        limit: i32,
    ) -> IntTensor<B> {
        if parameter.dtype() != DType::I8 {
            return portable::update::<B>(parameter, noise, scores, rank, votes, limit);
        }
        let shape = parameter.shape();
        let (parameter, noise, scores) = (B::int8(parameter), B::int8(noise), B::int8(scores));
        let matrix = if rank > 0 { [shape[0], shape[1]] } else { [1, shape.num_elements()] };
        let mut moved = B::int8_slice(&parameter).to_vec();
        let op = VoteSlices { noise: B::int8_slice(&noise), scores: B::int8_slice(&scores), rank, votes };
        suspended(|| kernels::update(&op, limit, matrix, &mut moved));
        B::from_int8(moved, shape)
    }
}

/// A new buffer that `write` writes.
///
/// # Safety
///
/// `write` must write every element.
pub(super) unsafe fn written<T>(len: usize, write: impl FnOnce(&mut [MaybeUninit<T>])) -> Vec<T> {
    let mut y = Vec::with_capacity(len);
    suspended(|| write(&mut y.spare_capacity_mut()[..len]));
    // SAFETY: the capacity is there, and every element was written by this function's contract.
    unsafe { y.set_len(len) };
    y
}

/// Noise that is readable as a slice.
pub(super) type HeldNoise<B> = Option<(IntTensor<B>, IntegerMembers)>;

pub(super) fn held<B: SliceBackend>(noise: IntegerNoisePrimitive<B>) -> HeldNoise<B> {
    match noise {
        IntegerNoisePrimitive::None => None,
        IntegerNoisePrimitive::Held(noise, members) => Some((B::int8(noise), members)),
    }
}

pub(super) fn on_slice<B: SliceBackend>(noise: &HeldNoise<B>) -> Option<NoiseSlice<'_>> {
    noise.as_ref().map(|(noise, members)| NoiseSlice::new(B::int8_slice(noise), noise.shape()[1], *members))
}

/// A gate whose tensors are readable as slices.
struct HeldGate<B: SliceBackend> {
    input: IntTensor<B>,
    weight: IntTensor<B>,
    weight_noise: HeldNoise<B>,
    bias: IntTensor<B>,
    bias_noise: HeldNoise<B>,
}

fn gate<B: SliceBackend>(gate: GatePrimitive<B>) -> HeldGate<B> {
    HeldGate {
        input: B::int8(gate.input),
        weight: B::int8(gate.weight),
        weight_noise: held::<B>(gate.weight_noise),
        bias: B::int8(gate.bias),
        bias_noise: held::<B>(gate.bias_noise),
    }
}

fn gate_slices<B: SliceBackend>(gate: &HeldGate<B>) -> GateSlices<'_> {
    GateSlices {
        input: B::int8_slice(&gate.input),
        weight: B::int8_slice(&gate.weight),
        weight_noise: on_slice::<B>(&gate.weight_noise),
        bias: B::int8_slice(&gate.bias),
        bias_noise: on_slice::<B>(&gate.bias_noise),
    }
}
