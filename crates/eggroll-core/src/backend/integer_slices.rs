//! The integer kernels of [`cpu::integer`](super::cpu::integer) on a backend whose tensors are slices: for parameters of type
//! I8, the portable defaults for other types.

use super::cpu::integer::{
    self as kernels, AttentionSizes, EmbeddingSlices, GateSlices, LinearSlices, LogitSlice, NoiseSlice, VectorSlices,
    VoteSlices,
};
use super::slice_backend::{SliceBackend, dims, indices_below};
use crate::arithmetic::integer::{Rounding, Votes};
use crate::ops::integer::portable;
use crate::ops::integer::{
    GatePrimitive, IntegerBias, IntegerMembers, IntegerNoisePrimitive, IntegerOps, VectorPrimitive,
};
use crate::rng::key::{NoiseKey, PairRange};
use crate::scope::suspended;
use burn::backend::TensorMetadata;
use burn::backend::tensor::IntTensor;
use burn::tensor::{DType, IntDType, Shape, TensorData};
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

    fn integer_linear(
        x: IntTensor<B>,
        weight: IntTensor<B>,
        noise: IntegerNoisePrimitive<B>,
        bias: IntegerBias<B>,
        activate: bool,
        rounding: Rounding,
    ) -> IntTensor<B> {
        if weight.dtype() != DType::I8 {
            return portable::linear::<B>(x, weight, noise, bias, activate, rounding);
        }
        let ([rows, _], shape @ [_, d_output]) = (dims(&x), dims(&weight));
        let (x, weight, noise) = (B::int8(x), B::int8(weight), held::<B>(noise));
        let bias = bias.into_vector().map(vector::<B>);
        let op = LinearSlices {
            x: B::int8_slice(&x),
            weight: B::int8_slice(&weight),
            shape,
            noise: on_slice::<B>(&noise),
            bias: bias.as_ref().map(vector_slices::<B>),
            activate,
            rounding,
        };
        // SAFETY: the kernel writes every element.
        let y = unsafe { written(rows * d_output, |y| kernels::linear(&op, y)) };
        B::from_int8(y, Shape::new([rows, d_output]))
    }

    fn integer_head(x: IntTensor<B>, embedding: IntTensor<B>, noise: IntegerNoisePrimitive<B>) -> IntTensor<B> {
        if embedding.dtype() != DType::I8 {
            return portable::head::<B>(x, embedding, noise);
        }
        let ([rows, _], shape @ [vocab, _]) = (dims(&x), dims(&embedding));
        let (x, embedding, noise) = (B::int8(x), B::int8(embedding), held::<B>(noise));
        let (x, embedding) = (B::int8_slice(&x), B::int8_slice(&embedding));
        let run = |y: &mut [MaybeUninit<i32>]| kernels::head(x, embedding, shape, on_slice::<B>(&noise), y);
        // SAFETY: the kernel writes every element.
        let y = unsafe { written(rows * vocab, run) };
        B::int_from_data(TensorData::new(y, [rows, vocab]), &Default::default())
    }

    fn integer_embedding(
        tokens: IntTensor<B>,
        weight: IntTensor<B>,
        noise: IntegerNoisePrimitive<B>,
        bias: IntegerBias<B>,
        rounding: Rounding,
    ) -> IntTensor<B> {
        if weight.dtype() != DType::I8 {
            return portable::embedding::<B>(tokens, weight, noise, bias, rounding);
        }
        let ([vocab, width], weight, noise) = (dims(&weight), B::int8(weight), held::<B>(noise));
        let bias = bias.into_vector().map(vector::<B>);
        let tokens = indices_below(B::int_data(tokens), vocab, "integer embedding: token", "rows");
        let op = EmbeddingSlices {
            tokens: &tokens,
            weight: B::int8_slice(&weight),
            width,
            noise: on_slice::<B>(&noise),
            bias: bias.as_ref().map(vector_slices::<B>),
            rounding,
        };
        let mut y = vec![0; tokens.len() * width];
        suspended(|| kernels::embedding(&op, &mut y));
        B::from_int8(y, Shape::new([tokens.len(), width]))
    }

    fn integer_norm(
        x: IntTensor<B>,
        gain: VectorPrimitive<B>,
        bias: IntegerBias<B>,
        rounding: Rounding,
    ) -> IntTensor<B> {
        if x.dtype() != DType::I8 {
            return portable::norm::<B>(x, gain, bias, rounding);
        }
        let (shape, x, gain) = (x.shape(), B::int8(x), vector::<B>(gain));
        let bias = bias.into_vector().map(vector::<B>);
        let mut y = vec![0; shape.num_elements()];
        let (gain, bias) = (vector_slices::<B>(&gain), bias.as_ref().map(vector_slices::<B>));
        suspended(|| kernels::norm(B::int8_slice(&x), gain, bias, rounding, &mut y));
        B::from_int8(y, shape)
    }

    fn integer_add(a: IntTensor<B>, b: IntTensor<B>, rounding: Rounding) -> IntTensor<B> {
        if a.dtype() != DType::I8 {
            return portable::add::<B>(a, b, rounding);
        }
        let (shape, a, b) = (a.shape(), B::int8(a), B::int8(b));
        let mut y = vec![0; shape.num_elements()];
        let width = shape[shape.num_dims() - 1];
        suspended(|| kernels::add(B::int8_slice(&a), B::int8_slice(&b), width, rounding, &mut y));
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

    fn integer_rotary(x: IntTensor<B>, steps: usize, first_position: usize, heads: usize) -> IntTensor<B> {
        if x.dtype() != DType::I8 {
            return portable::rotary::<B>(x, steps, first_position, heads);
        }
        let (shape @ [rows, width], x) = (dims(&x), B::int8(x));
        let mut y = vec![0; rows * width];
        suspended(|| kernels::rotary(B::int8_slice(&x), width, steps, first_position, width / heads, &mut y));
        B::from_int8(y, Shape::new(shape))
    }

    fn integer_attention(query: IntTensor<B>, keys: IntTensor<B>, values: IntTensor<B>, heads: usize) -> IntTensor<B> {
        if query.dtype() != DType::I8 {
            return portable::attention::<B>(query, keys, values, heads);
        }
        let (shape @ [rows, width], [sequences, context, _]) = (dims(&query), dims(&keys));
        let (query, keys, values) = (B::int8(query), B::int8(keys), B::int8(values));
        let mut y = vec![0; rows * width];
        let sizes = AttentionSizes { steps: rows / sequences, context, heads, d: width / heads };
        let (query, keys, values) = (B::int8_slice(&query), B::int8_slice(&keys), B::int8_slice(&values));
        suspended(|| kernels::attention(query, keys, values, sizes, &mut y));
        B::from_int8(y, Shape::new(shape))
    }

    fn integer_log_likelihood(
        logits: IntTensor<B>,
        targets: IntTensor<B>,
        members: usize,
        rounding: Rounding,
    ) -> IntTensor<B> {
        if rounding == Rounding::Floor && logits.dtype() != DType::I8 {
            return portable::log_likelihood::<B>(logits, targets, members, rounding);
        }
        let [_, classes] = dims(&logits);
        let targets = indices_below(B::int_data(targets), classes, "integer log-likelihood: target", "classes");
        let mut sums = vec![0; members];
        let mut run = |logits: LogitSlice| suspended(|| kernels::log_likelihood(logits, &targets, classes, &mut sums));
        match rounding {
            Rounding::Floor => run(LogitSlice::Sixteenths(B::int8_slice(&B::int8(logits)))),
            Rounding::Nearest => {
                let logits = B::int_data(B::int_cast(logits, IntDType::I32));
                run(LogitSlice::In256ths(logits.as_slice().expect("of type I32")));
            }
        }
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
unsafe fn written<T>(len: usize, write: impl FnOnce(&mut [MaybeUninit<T>])) -> Vec<T> {
    let mut y = Vec::with_capacity(len);
    suspended(|| write(&mut y.spare_capacity_mut()[..len]));
    // SAFETY: the capacity is there, and every element was written by this function's contract.
    unsafe { y.set_len(len) };
    y
}

/// Noise that is readable as a slice.
type HeldNoise<B> = Option<(IntTensor<B>, IntegerMembers)>;

fn held<B: SliceBackend>(noise: IntegerNoisePrimitive<B>) -> HeldNoise<B> {
    match noise {
        IntegerNoisePrimitive::None => None,
        IntegerNoisePrimitive::Held(noise, members) => Some((B::int8(noise), members)),
    }
}

fn on_slice<B: SliceBackend>(noise: &HeldNoise<B>) -> Option<NoiseSlice<'_>> {
    noise.as_ref().map(|(noise, members)| NoiseSlice::new(B::int8_slice(noise), noise.shape()[1], *members))
}

/// A vector that is readable as a slice.
struct HeldVector<B: SliceBackend> {
    values: IntTensor<B>,
    noise: HeldNoise<B>,
}

fn vector<B: SliceBackend>(vector: VectorPrimitive<B>) -> HeldVector<B> {
    HeldVector { values: B::int8(vector.values), noise: held::<B>(vector.noise) }
}

fn vector_slices<B: SliceBackend>(vector: &HeldVector<B>) -> VectorSlices<'_> {
    VectorSlices { values: B::int8_slice(&vector.values), noise: on_slice::<B>(&vector.noise) }
}

/// A gate whose tensors are readable as slices.
struct HeldGate<B: SliceBackend> {
    input: IntTensor<B>,
    weight: IntTensor<B>,
    weight_noise: HeldNoise<B>,
    bias: HeldVector<B>,
}

fn gate<B: SliceBackend>(gate: GatePrimitive<B>) -> HeldGate<B> {
    HeldGate {
        input: B::int8(gate.input),
        weight: B::int8(gate.weight),
        weight_noise: held::<B>(gate.weight_noise),
        bias: HeldVector { values: B::int8(gate.bias), noise: held::<B>(gate.bias_noise) },
    }
}

fn gate_slices<B: SliceBackend>(gate: &HeldGate<B>) -> GateSlices<'_> {
    GateSlices {
        input: B::int8_slice(&gate.input),
        weight: B::int8_slice(&gate.weight),
        weight_noise: on_slice::<B>(&gate.weight_noise),
        bias: vector_slices::<B>(&gate.bias),
    }
}
