//! The integer kernels of [`cpu::integer`](super::cpu::integer) on a backend whose tensors are slices: for parameters of type
//! I8, the portable defaults for other types.

use super::checks;
use super::cpu::integer::{self as kernels, GateSlices, NoiseSlice, VoteSlices};
use super::slice_backend::SliceBackend;
use crate::arithmetic::integer::Votes;
use crate::ops::integer::portable;
use crate::ops::integer::{GatePrimitive, IntegerMembers, IntegerNoisePrimitive, IntegerOps};
use crate::rng::key::{NoiseKey, PairRange};
use crate::scope::suspended;
use burn::backend::TensorMetadata;
use burn::backend::tensor::IntTensor;
use burn::tensor::{DType, Shape, TensorData};

impl<B: SliceBackend> IntegerOps for B {
    fn integer_noise(like: IntTensor<B>, key: NoiseKey, pairs: PairRange, elements: usize) -> IntTensor<B> {
        checks::range("integer noise", pairs.first, pairs.count as usize);
        let len = checks::len("integer noise", &[pairs.count as usize, elements]);
        if like.dtype() != DType::I8 {
            return portable::noise::<B>(&like, key, pairs, elements);
        }
        let mut noise = vec![0; len];
        suspended(|| kernels::noise(key, pairs, elements, &mut noise));
        B::from_int8(noise, Shape::new([pairs.count as usize, elements]))
    }

    fn integer_linear(x: IntTensor<B>, weight: IntTensor<B>, noise: IntegerNoisePrimitive<B>) -> IntTensor<B> {
        let name = "integer linear";
        let [rows, d_input, d_output] = checks::integer_linear::<B>(name, &x, &weight);
        checks::matrix_noise(name, &noise, [d_input, d_output], rows);
        let len = checks::len(name, &[rows, d_output]);
        if weight.dtype() != DType::I8 {
            return portable::linear::<B>(x, weight, noise);
        }
        let (x, weight, noise) = (B::int8(x), B::int8(weight), held::<B>(noise));
        let mut y = Vec::with_capacity(len);
        let (x, weight) = (B::int8_slice(&x), B::int8_slice(&weight));
        suspended(|| {
            kernels::linear(x, weight, [d_input, d_output], on_slice::<B>(&noise), &mut y.spare_capacity_mut()[..len])
        });
        // SAFETY: the capacity is there, and the kernel writes every element.
        unsafe { y.set_len(len) };
        B::from_int8(y, Shape::new([rows, d_output]))
    }

    fn integer_embedding(tokens: IntTensor<B>, weight: IntTensor<B>, noise: IntegerNoisePrimitive<B>) -> IntTensor<B> {
        let name = "integer embedding";
        let ([rows], [vocab, width]) = (checks::dims(name, "tokens", &tokens), checks::dims(name, "weight", &weight));
        checks::matrix_noise(name, &noise, [vocab, width], rows);
        let len = checks::len(name, &[rows, width]);
        if weight.dtype() != DType::I8 {
            return portable::embedding::<B>(tokens, weight, noise);
        }
        let (weight, noise) = (B::int8(weight), held::<B>(noise));
        let tokens = checks::indices(B::int_data(tokens), vocab, "integer embedding: token", "rows");
        let mut y = vec![0; len];
        suspended(|| kernels::embedding(&tokens, B::int8_slice(&weight), width, on_slice::<B>(&noise), &mut y));
        B::from_int8(y, Shape::new([rows, width]))
    }

    fn integer_layer_norm(x: IntTensor<B>, weight: IntTensor<B>, noise: IntegerNoisePrimitive<B>) -> IntTensor<B> {
        let name = "integer layer norm";
        let (input @ [rows, n], [width]) = (checks::dims(name, "input", &x), checks::dims(name, "weight", &weight));
        assert!(width == n && n > 0, "{name}: the input {input:?} does not fit the weight [{width}]");
        checks::vector_noise(name, &noise, n, rows);
        if weight.dtype() != DType::I8 {
            return portable::layer_norm::<B>(x, weight, noise);
        }
        let (x, weight, noise) = (B::int8(x), B::int8(weight), held::<B>(noise));
        let mut y = vec![0; rows * n];
        suspended(|| kernels::layer_norm(B::int8_slice(&x), B::int8_slice(&weight), on_slice::<B>(&noise), &mut y));
        B::from_int8(y, Shape::new(input))
    }

    fn integer_add(a: IntTensor<B>, b: IntTensor<B>) -> IntTensor<B> {
        let (of_a, of_b) = (a.shape(), b.shape());
        let same = of_a == of_b;
        assert!(same, "integer add: the shapes {:?} and {:?} differ", of_a.as_slice(), of_b.as_slice());
        if a.dtype() != DType::I8 {
            return portable::add::<B>(&[a, b]);
        }
        let (a, b) = (B::int8(a), B::int8(b));
        let mut y = vec![0; of_a.num_elements()];
        suspended(|| kernels::add(B::int8_slice(&a), B::int8_slice(&b), &mut y));
        B::from_int8(y, of_a)
    }

    fn integer_gru(
        state: IntTensor<B>,
        starts: IntTensor<B>,
        forget: GatePrimitive<B>,
        candidate: GatePrimitive<B>,
    ) -> IntTensor<B> {
        let gates = [("forget", &forget), ("candidate", &candidate)];
        let ([_, width], rows) = checks::gru("integer GRU", &state, &starts, gates);
        if state.dtype() != DType::I8 {
            return portable::gru::<B>(state, starts, forget, candidate);
        }
        let (state, gates) = (B::int8(state), [gate::<B>(forget), gate::<B>(candidate)]);
        let starts: Vec<bool> = B::int_data(starts).iter::<i64>().map(|start| start != 0).collect();
        let mut out = vec![0; rows * width];
        let slices = [gate_slices::<B>(&gates[0]), gate_slices::<B>(&gates[1])];
        suspended(|| kernels::gru(B::int8_slice(&state), &starts, slices, &mut out));
        B::from_int8(out, Shape::new([rows, width]))
    }

    fn integer_log_likelihood(logits: IntTensor<B>, targets: IntTensor<B>, members: usize) -> IntTensor<B> {
        let name = "integer log-likelihood";
        let ([rows, classes], [count]) =
            (checks::dims(name, "logits", &logits), checks::dims(name, "targets", &targets));
        assert!(
            members > 0 && rows == count && rows.is_multiple_of(members) && (1..=256).contains(&classes),
            "{name}: logits [{rows}, {classes}] do not fit targets [{count}] of {members} members"
        );
        if logits.dtype() != DType::I8 {
            return portable::log_likelihood::<B>(logits, targets, members);
        }
        let logits = B::int8(logits);
        let targets = checks::indices(B::int_data(targets), classes, "integer log-likelihood: target", "classes");
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
        let (name, shape) = ("sum of votes", [d_input, d_output]);
        checks::votes::<B>(name, &noise, &scores, rank, &shape);
        let found = noise.shape();
        assert!(
            rank > 0 || d_input == 1,
            "{name}: the noise {:?} of a vector is for one row, not for {shape:?}",
            found.as_slice()
        );
        if noise.dtype() != DType::I8 {
            return portable::sum_votes::<B>(noise, scores, rank, votes, shape);
        }
        let (noise, scores) = (B::int8(noise), B::int8(scores));
        let mut sums = vec![0; checks::len(name, &shape)];
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
        let shape = parameter.shape();
        checks::votes::<B>("integer update", &noise, &scores, rank, &shape);
        if parameter.dtype() != DType::I8 {
            return portable::update::<B>(parameter, noise, scores, rank, votes, limit);
        }
        let (parameter, noise, scores) = (B::int8(parameter), B::int8(noise), B::int8(scores));
        let matrix = if rank > 0 { [shape[0], shape[1]] } else { [1, shape.num_elements()] };
        let mut moved = B::int8_slice(&parameter).to_vec();
        let op = VoteSlices { noise: B::int8_slice(&noise), scores: B::int8_slice(&scores), rank, votes };
        suspended(|| kernels::update(&op, limit, matrix, &mut moved));
        B::from_int8(moved, shape)
    }
}

/// Noise that is readable as a slice.
pub(super) type Held<B> = Option<(IntTensor<B>, IntegerMembers)>;

pub(super) fn held<B: SliceBackend>(noise: IntegerNoisePrimitive<B>) -> Held<B> {
    match noise {
        IntegerNoisePrimitive::None => None,
        IntegerNoisePrimitive::Held(noise, members) => Some((B::int8(noise), members)),
    }
}

pub(super) fn on_slice<B: SliceBackend>(noise: &Held<B>) -> Option<NoiseSlice<'_>> {
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
