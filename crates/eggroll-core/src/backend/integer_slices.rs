//! The integer kernels of [`cpu::integer`](super::cpu::integer) on a backend whose tensors are slices: for parameters of type
//! I8, the portable defaults for other types.

use super::cpu::integer::{self as kernels, GateSlices, NoiseSlice, VoteSlices};
use super::slices::SliceBackend;
use crate::integer::Votes;
use crate::key::{NoiseKey, PairRange};
use crate::ops::integer::{GatePrimitive, IntegerMembers, IntegerNoisePrimitive};
use crate::ops::portable::integer as portable;
use crate::scope::suspended;
use burn::backend::TensorMetadata;
use burn::backend::tensor::IntTensor;
use burn::tensor::{DType, Shape, TensorData};

/// Implements [`IntegerOps`](crate::ops::integer::IntegerOps) for a [`SliceBackend`] by the functions of this module.
macro_rules! integer_ops_on_slices {
    ($backend:ty) => {
        impl $crate::ops::integer::IntegerOps for $backend {
            fn integer_noise(
                like: IntTensor<Self>,
                key: NoiseKey,
                pairs: PairRange,
                elements: usize,
            ) -> IntTensor<Self> {
                integer_slices::noise::<Self>(like, key, pairs, elements)
            }

            fn integer_linear(
                x: IntTensor<Self>,
                weight: IntTensor<Self>,
                noise: IntegerNoisePrimitive<Self>,
            ) -> IntTensor<Self> {
                integer_slices::linear::<Self>(x, weight, noise)
            }

            fn integer_embedding(
                tokens: IntTensor<Self>,
                weight: IntTensor<Self>,
                noise: IntegerNoisePrimitive<Self>,
            ) -> IntTensor<Self> {
                integer_slices::embedding::<Self>(tokens, weight, noise)
            }

            fn integer_layer_norm(
                x: IntTensor<Self>,
                weight: IntTensor<Self>,
                noise: IntegerNoisePrimitive<Self>,
            ) -> IntTensor<Self> {
                integer_slices::layer_norm::<Self>(x, weight, noise)
            }

            fn integer_add(a: IntTensor<Self>, b: IntTensor<Self>) -> IntTensor<Self> {
                integer_slices::add::<Self>(a, b)
            }

            fn integer_gru(
                state: IntTensor<Self>,
                starts: IntTensor<Self>,
                forget: GatePrimitive<Self>,
                candidate: GatePrimitive<Self>,
            ) -> IntTensor<Self> {
                integer_slices::gru::<Self>(state, starts, forget, candidate)
            }

            fn integer_log_likelihood(
                logits: IntTensor<Self>,
                targets: IntTensor<Self>,
                members: usize,
            ) -> IntTensor<Self> {
                integer_slices::log_likelihood::<Self>(logits, targets, members)
            }

            fn integer_sum_votes(
                noise: IntTensor<Self>,
                scores: IntTensor<Self>,
                rank: usize,
                votes: Votes,
                d_input: usize,
                d_output: usize,
            ) -> IntTensor<Self> {
                integer_slices::sum_votes::<Self>(noise, scores, rank, votes, [d_input, d_output])
            }

            fn integer_update(
                parameter: IntTensor<Self>,
                noise: IntTensor<Self>,
                scores: IntTensor<Self>,
                rank: usize,
                votes: Votes,
                limit: i32,
            ) -> IntTensor<Self> {
                integer_slices::update::<Self>(parameter, noise, scores, rank, votes, limit)
            }
        }
    };
}
pub(crate) use integer_ops_on_slices;

pub(crate) fn noise<B: SliceBackend>(
    like: IntTensor<B>,
    key: NoiseKey,
    pairs: PairRange,
    elements: usize,
) -> IntTensor<B> {
    if like.dtype() != DType::I8 {
        return portable::noise::<B>(&like, key, pairs, elements);
    }
    let mut noise = vec![0; pairs.count as usize * elements];
    suspended(|| kernels::noise(key, pairs, elements, &mut noise));
    B::from_int8(noise, Shape::new([pairs.count as usize, elements]))
}

pub(crate) fn linear<B: SliceBackend>(
    x: IntTensor<B>,
    weight: IntTensor<B>,
    noise: IntegerNoisePrimitive<B>,
) -> IntTensor<B> {
    if weight.dtype() != DType::I8 {
        return portable::linear::<B>(x, weight, noise);
    }
    let (x, weight, noise) = (B::int8(x), B::int8(weight), held::<B>(noise));
    let (rows, d_input, d_output) = (x.shape()[0], weight.shape()[0], weight.shape()[1]);
    let mut y = Vec::with_capacity(rows * d_output);
    let (x, weight) = (B::int8_slice(&x), B::int8_slice(&weight));
    let (shape, noise, to) =
        ([d_input, d_output], on_slice::<B>(&noise), &mut y.spare_capacity_mut()[..rows * d_output]);
    suspended(|| kernels::linear(x, weight, shape, noise, to));
    // SAFETY: the capacity is there, and the kernel writes every element.
    unsafe { y.set_len(rows * d_output) };
    B::from_int8(y, Shape::new([rows, d_output]))
}

pub(crate) fn embedding<B: SliceBackend>(
    tokens: IntTensor<B>,
    weight: IntTensor<B>,
    noise: IntegerNoisePrimitive<B>,
) -> IntTensor<B> {
    if weight.dtype() != DType::I8 {
        return portable::embedding::<B>(tokens, weight, noise);
    }
    let (weight, noise) = (B::int8(weight), held::<B>(noise));
    let (vocab, width) = (weight.shape()[0], weight.shape()[1]);
    let tokens = indices(B::int_data(tokens), vocab, "token", "embedding");
    let mut y = vec![0; tokens.len() * width];
    suspended(|| kernels::embedding(&tokens, B::int8_slice(&weight), width, on_slice::<B>(&noise), &mut y));
    B::from_int8(y, Shape::new([tokens.len(), width]))
}

pub(crate) fn layer_norm<B: SliceBackend>(
    x: IntTensor<B>,
    weight: IntTensor<B>,
    noise: IntegerNoisePrimitive<B>,
) -> IntTensor<B> {
    if weight.dtype() != DType::I8 {
        return portable::layer_norm::<B>(x, weight, noise);
    }
    let (x, weight, noise) = (B::int8(x), B::int8(weight), held::<B>(noise));
    let mut y = vec![0; x.shape().num_elements()];
    suspended(|| kernels::layer_norm(B::int8_slice(&x), B::int8_slice(&weight), on_slice::<B>(&noise), &mut y));
    B::from_int8(y, x.shape())
}

pub(crate) fn add<B: SliceBackend>(a: IntTensor<B>, b: IntTensor<B>) -> IntTensor<B> {
    if a.dtype() != DType::I8 {
        return portable::add::<B>(&[a, b]);
    }
    let (a, b) = (B::int8(a), B::int8(b));
    let mut y = vec![0; a.shape().num_elements()];
    suspended(|| kernels::add(B::int8_slice(&a), B::int8_slice(&b), &mut y));
    B::from_int8(y, a.shape())
}

pub(crate) fn gru<B: SliceBackend>(
    state: IntTensor<B>,
    starts: IntTensor<B>,
    forget: GatePrimitive<B>,
    candidate: GatePrimitive<B>,
) -> IntTensor<B> {
    if state.dtype() != DType::I8 {
        return portable::gru::<B>(state, starts, forget, candidate);
    }
    let (state, gates) = (B::int8(state), [gate::<B>(forget), gate::<B>(candidate)]);
    let starts: Vec<bool> = B::int_data(starts).iter::<i64>().map(|start| start != 0).collect();
    let mut out = vec![0; starts.len() * state.shape()[1]];
    let slices = [gate_slices::<B>(&gates[0]), gate_slices::<B>(&gates[1])];
    suspended(|| kernels::gru(B::int8_slice(&state), &starts, slices, &mut out));
    B::from_int8(out, Shape::new([starts.len(), state.shape()[1]]))
}

pub(crate) fn log_likelihood<B: SliceBackend>(
    logits: IntTensor<B>,
    targets: IntTensor<B>,
    members: usize,
) -> IntTensor<B> {
    if logits.dtype() != DType::I8 {
        return portable::log_likelihood::<B>(logits, targets, members);
    }
    let logits = B::int8(logits);
    let classes = logits.shape()[1];
    let targets = indices(B::int_data(targets), classes, "target", "log-likelihood");
    let mut sums = vec![0; members];
    suspended(|| kernels::log_likelihood(B::int8_slice(&logits), &targets, classes, &mut sums));
    B::int_from_data(TensorData::new(sums, [members]), &Default::default())
}

pub(crate) fn update<B: SliceBackend>(
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
    let (parameter, noise, scores) = (B::int8(parameter), B::int8(noise), B::int8(scores));
    let shape = parameter.shape();
    let matrix = if rank > 0 { [shape[0], shape[1]] } else { [1, shape.num_elements()] };
    let mut moved = B::int8_slice(&parameter).to_vec();
    let op = VoteSlices { noise: B::int8_slice(&noise), scores: B::int8_slice(&scores), rank, votes };
    suspended(|| kernels::update(&op, limit, matrix, &mut moved));
    B::from_int8(moved, shape)
}

pub(crate) fn sum_votes<B: SliceBackend>(
    noise: IntTensor<B>,
    scores: IntTensor<B>,
    rank: usize,
    votes: Votes,
    shape: [usize; 2],
) -> IntTensor<B> {
    if noise.dtype() != DType::I8 {
        return portable::sum_votes::<B>(noise, scores, rank, votes, shape);
    }
    let (noise, scores) = (B::int8(noise), B::int8(scores));
    let mut sums = vec![0; shape[0] * shape[1]];
    let op = VoteSlices { noise: B::int8_slice(&noise), scores: B::int8_slice(&scores), rank, votes };
    suspended(|| kernels::sum_votes(&op, shape, &mut sums));
    B::int_from_data(TensorData::new(sums, shape), &Default::default())
}

/// Noise that is readable as a slice.
type Held<B> = Option<(IntTensor<B>, IntegerMembers)>;

fn held<B: SliceBackend>(noise: IntegerNoisePrimitive<B>) -> Held<B> {
    match noise {
        IntegerNoisePrimitive::None => None,
        IntegerNoisePrimitive::Held(noise, members) => Some((B::int8(noise), members)),
    }
}

fn on_slice<B: SliceBackend>(noise: &Held<B>) -> Option<NoiseSlice<'_>> {
    noise.as_ref().map(|(noise, members)| NoiseSlice::new(B::int8_slice(noise), noise.shape()[1], *members))
}

/// A gate whose tensors are readable as slices.
struct HeldGate<B: SliceBackend> {
    input: IntTensor<B>,
    weight: IntTensor<B>,
    weight_noise: Held<B>,
    bias: IntTensor<B>,
    bias_noise: Held<B>,
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

/// Indices of an integer tensor of any type.
///
/// # Panics
///
/// Panics if an index is not below `count`.
fn indices(values: TensorData, count: usize, name: &str, operation: &str) -> Vec<usize> {
    let index = |value: i64| {
        let index = usize::try_from(value).ok().filter(|index| *index < count);
        index.unwrap_or_else(|| panic!("integer {operation}: {name} {value} is not below {count}"))
    };
    values.iter::<i64>().map(index).collect()
}
