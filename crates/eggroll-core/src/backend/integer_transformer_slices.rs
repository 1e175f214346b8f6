//! The kernels of the integer transformer on a backend whose tensors are slices: for parameters of type I8, the portable defaults for other
//! types.

use super::cpu::integer::transformer::{self as kernels, AttentionSizes, LinearSlices, VectorSlices};
use super::integer_slices::{HeldNoise, held, on_slice, written};
use super::slice_backend::{SliceBackend, dims, indices_below};
use crate::ops::integer::IntegerNoisePrimitive;
use crate::ops::integer::transformer::portable;
use crate::ops::integer::transformer::{IntegerBias, IntegerTransformerOps, VectorPrimitive};
use crate::scope::suspended;
use burn::backend::TensorMetadata;
use burn::backend::tensor::IntTensor;
use burn::tensor::{DType, IntDType, Shape, TensorData};
use std::mem::MaybeUninit;

impl<B: SliceBackend> IntegerTransformerOps for B {
    fn integer_transformer_linear(
        x: IntTensor<B>,
        weight: IntTensor<B>,
        noise: IntegerNoisePrimitive<B>,
        bias: IntegerBias<B>,
        activate: bool,
    ) -> IntTensor<B> {
        let bias = bias.into_vector();
        if weight.dtype() != DType::I8 {
            return portable::linear::<B>(x, weight, noise, bias, activate);
        }
        let ([rows, _], shape @ [_, d_output]) = (dims(&x), dims(&weight));
        let (x, weight, noise) = (B::int8(x), B::int8(weight), held::<B>(noise));
        let bias = bias.map(vector::<B>);
        let op = LinearSlices {
            x: B::int8_slice(&x),
            weight: B::int8_slice(&weight),
            shape,
            noise: on_slice::<B>(&noise),
            bias: bias.as_ref().map(vector_slices::<B>),
            activate,
        };
        // SAFETY: the kernel writes every element.
        let y = unsafe { written(rows * d_output, |y| kernels::linear(&op, y)) };
        B::from_int8(y, Shape::new([rows, d_output]))
    }

    fn integer_transformer_head(
        x: IntTensor<B>,
        embedding: IntTensor<B>,
        noise: IntegerNoisePrimitive<B>,
    ) -> IntTensor<B> {
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

    fn integer_transformer_embedding(
        tokens: IntTensor<B>,
        weight: IntTensor<B>,
        noise: IntegerNoisePrimitive<B>,
        bias: VectorPrimitive<B>,
    ) -> IntTensor<B> {
        if weight.dtype() != DType::I8 {
            return portable::embedding::<B>(tokens, weight, noise, bias);
        }
        let [vocab, width] = dims(&weight);
        let (weight, noise, bias) = (B::int8(weight), held::<B>(noise), vector::<B>(bias));
        let tokens = indices_below(B::int_data(tokens), vocab, "integer transformer's embedding: token", "rows");
        let mut y = vec![0; tokens.len() * width];
        let (noise, bias) = (on_slice::<B>(&noise), vector_slices::<B>(&bias));
        suspended(|| kernels::embedding(&tokens, B::int8_slice(&weight), noise, bias, &mut y));
        B::from_int8(y, Shape::new([tokens.len(), width]))
    }

    fn integer_transformer_norm(x: IntTensor<B>, gain: VectorPrimitive<B>, bias: VectorPrimitive<B>) -> IntTensor<B> {
        if x.dtype() != DType::I8 {
            return portable::norm::<B>(x, gain, bias);
        }
        let (shape, x, gain, bias) = (x.shape(), B::int8(x), vector::<B>(gain), vector::<B>(bias));
        let mut y = vec![0; shape.num_elements()];
        let (gain, bias) = (vector_slices::<B>(&gain), vector_slices::<B>(&bias));
        suspended(|| kernels::norm(B::int8_slice(&x), gain, bias, &mut y));
        B::from_int8(y, shape)
    }

    fn integer_transformer_add(x: IntTensor<B>, y: IntTensor<B>) -> IntTensor<B> {
        if x.dtype() != DType::I8 {
            return portable::add::<B>(x, y);
        }
        let (shape @ [rows, width], x, y) = (dims(&x), B::int8(x), B::int8(y));
        let mut sum = vec![0; rows * width];
        suspended(|| kernels::add(B::int8_slice(&x), B::int8_slice(&y), width, &mut sum));
        B::from_int8(sum, Shape::new(shape))
    }

    fn integer_transformer_rotary(x: IntTensor<B>, steps: usize, first_position: usize, heads: usize) -> IntTensor<B> {
        if x.dtype() != DType::I8 {
            return portable::rotary::<B>(x, steps, first_position, heads);
        }
        let (shape @ [rows, width], x) = (dims(&x), B::int8(x));
        let mut y = vec![0; rows * width];
        suspended(|| kernels::rotary(B::int8_slice(&x), width, steps, first_position, width / heads, &mut y));
        B::from_int8(y, Shape::new(shape))
    }

    fn integer_transformer_attention(
        query: IntTensor<B>,
        keys: IntTensor<B>,
        values: IntTensor<B>,
        heads: usize,
    ) -> IntTensor<B> {
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

    fn integer_transformer_log_likelihood(logits: IntTensor<B>, targets: IntTensor<B>, members: usize) -> IntTensor<B> {
        let [_, classes] = dims(&logits);
        let targets =
            indices_below(B::int_data(targets), classes, "integer transformer's log-likelihood: target", "classes");
        let logits = B::int_data(B::int_cast(logits, IntDType::I32));
        let mut sums = vec![0; members];
        let logits = logits.as_slice::<i32>().expect("of type I32");
        suspended(|| kernels::log_likelihood(logits, &targets, classes, &mut sums));
        B::int_from_data(TensorData::new(sums, [members]), &Default::default())
    }
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
