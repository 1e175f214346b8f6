//! The kernels of the integer transformer on a backend whose tensors are slices: for parameters of type I8, the portable defaults for other
//! types.

use super::checks;
use super::cpu::integer::transformer::{self as kernels, AttentionSizes, LinearSlices, VectorSlices};
use super::integer_slices::{Held, held, on_slice};
use super::slice_backend::SliceBackend;
use crate::arithmetic::integer::transformer::MAX_ROWS;
use crate::ops::integer::IntegerNoisePrimitive;
use crate::ops::integer::transformer::portable;
use crate::ops::integer::transformer::{IntegerBias, IntegerTransformerOps, VectorPrimitive, check_heads};
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
        let name = "integer transformer's linear";
        let [rows, d_input, d_output] = checks::integer_linear::<B>(name, &x, &weight);
        checks::matrix_noise(name, &noise, [d_input, d_output], rows);
        checks::noise_depth(name, &noise, d_input);
        let bias = bias.into_vector();
        if let Some(VectorPrimitive { values, noise: of_bias }) = &bias {
            checks::integer_vector(name, "bias", (values, of_bias), d_output, rows);
            checks::same_members(name, [&noise, of_bias]);
        }
        if weight.dtype() != DType::I8 {
            return portable::linear::<B>(x, weight, noise, bias, activate);
        }
        let shape = [d_input, d_output];
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
        let y = unsafe { written(checks::len(name, &[rows, d_output]), |y| kernels::linear(&op, y)) };
        B::from_int8(y, Shape::new([rows, d_output]))
    }

    fn integer_transformer_head(
        x: IntTensor<B>,
        embedding: IntTensor<B>,
        noise: IntegerNoisePrimitive<B>,
    ) -> IntTensor<B> {
        let name = "integer transformer's head";
        let (input @ [rows, depth], shape @ [vocab, width]) =
            (checks::dims(name, "input", &x), checks::dims(name, "embedding", &embedding));
        assert!(
            depth == width && (1..=crate::ops::integer::MAX_DEPTH).contains(&width),
            "{name}: the input {input:?} does not fit the embedding {shape:?}"
        );
        checks::matrix_noise(name, &noise, shape, rows);
        checks::noise_depth(name, &noise, width);
        if embedding.dtype() != DType::I8 {
            return portable::head::<B>(x, embedding, noise);
        }
        let (x, embedding, noise) = (B::int8(x), B::int8(embedding), held::<B>(noise));
        let (x, embedding) = (B::int8_slice(&x), B::int8_slice(&embedding));
        let run = |y: &mut [MaybeUninit<i32>]| kernels::head(x, embedding, shape, on_slice::<B>(&noise), y);
        // SAFETY: the kernel writes every element.
        let y = unsafe { written(checks::len(name, &[rows, vocab]), run) };
        B::int_from_data(TensorData::new(y, [rows, vocab]), &Default::default())
    }

    fn integer_transformer_embedding(
        tokens: IntTensor<B>,
        weight: IntTensor<B>,
        noise: IntegerNoisePrimitive<B>,
        bias: VectorPrimitive<B>,
    ) -> IntTensor<B> {
        let name = "integer transformer's embedding";
        let ([rows], [vocab, width]) = (checks::dims(name, "tokens", &tokens), checks::dims(name, "weight", &weight));
        checks::matrix_noise(name, &noise, [vocab, width], rows);
        checks::integer_vector(name, "bias", (&bias.values, &bias.noise), width, rows);
        checks::same_members(name, [&noise, &bias.noise]);
        checks::noise_depth(name, &noise, 1);
        assert!(width > 0, "{name}: rows of no values");
        if weight.dtype() != DType::I8 {
            return portable::embedding::<B>(tokens, weight, noise, bias);
        }
        let (weight, noise, bias) = (B::int8(weight), held::<B>(noise), vector::<B>(bias));
        let tokens = checks::indices(B::int_data(tokens), vocab, "integer transformer's embedding: token", "rows");
        let mut y = vec![0; checks::len(name, &[rows, width])];
        let (noise, bias) = (on_slice::<B>(&noise), vector_slices::<B>(&bias));
        suspended(|| kernels::embedding(&tokens, B::int8_slice(&weight), noise, bias, &mut y));
        B::from_int8(y, Shape::new([rows, width]))
    }

    fn integer_transformer_norm(x: IntTensor<B>, gain: VectorPrimitive<B>, bias: VectorPrimitive<B>) -> IntTensor<B> {
        let name = "integer transformer's norm";
        let shape @ [rows, n] = checks::dims(name, "input", &x);
        assert!((1..=crate::ops::integer::MAX_DEPTH).contains(&n), "{name}: rows of {n} values");
        for (of, vector) in [("gain", &gain), ("bias", &bias)] {
            checks::integer_vector(name, of, (&vector.values, &vector.noise), n, rows);
        }
        checks::same_members(name, [&gain.noise, &bias.noise]);
        if x.dtype() != DType::I8 {
            return portable::norm::<B>(x, gain, bias);
        }
        let (x, gain, bias) = (B::int8(x), vector::<B>(gain), vector::<B>(bias));
        let mut y = vec![0; rows * n];
        let (gain, bias) = (vector_slices::<B>(&gain), vector_slices::<B>(&bias));
        suspended(|| kernels::norm(B::int8_slice(&x), gain, bias, &mut y));
        B::from_int8(y, Shape::new(shape))
    }

    fn integer_transformer_add(x: IntTensor<B>, y: IntTensor<B>) -> IntTensor<B> {
        let name = "integer transformer's add";
        let (a, b): ([usize; 2], [usize; 2]) = (checks::dims(name, "first term", &x), checks::dims(name, "second", &y));
        assert!(a == b, "{name}: the shapes {a:?} and {b:?} differ");
        if x.dtype() != DType::I8 {
            return portable::add::<B>(x, y);
        }
        let (x, y) = (B::int8(x), B::int8(y));
        let mut sum = vec![0; a[0] * a[1]];
        suspended(|| kernels::add(B::int8_slice(&x), B::int8_slice(&y), a[1], &mut sum));
        B::from_int8(sum, Shape::new(a))
    }

    fn integer_transformer_rotary(x: IntTensor<B>, steps: usize, first_position: usize, heads: usize) -> IntTensor<B> {
        let name = "integer transformer's rotary";
        let shape @ [_, width] = checks::dims(name, "input", &x);
        check_heads(name, shape, steps, heads);
        checks::positions(name, first_position, steps);
        if x.dtype() != DType::I8 {
            return portable::rotary::<B>(x, steps, first_position, heads);
        }
        let x = B::int8(x);
        let mut y = vec![0; shape[0] * width];
        suspended(|| kernels::rotary(B::int8_slice(&x), width, steps, first_position, width / heads, &mut y));
        B::from_int8(y, Shape::new(shape))
    }

    fn integer_transformer_attention(
        query: IntTensor<B>,
        keys: IntTensor<B>,
        values: IntTensor<B>,
        heads: usize,
    ) -> IntTensor<B> {
        let name = "integer transformer's attention";
        let (shape @ [rows, width], held @ [sequences, context, of_keys]) =
            (checks::dims(name, "queries", &query), checks::dims(name, "keys", &keys));
        let of_values: [usize; 3] = checks::dims(name, "values", &values);
        assert!(
            of_keys == width && of_values == held && sequences > 0 && rows.is_multiple_of(sequences),
            "{name}: the queries {shape:?}, keys {held:?} and values {of_values:?} do not fit"
        );
        let steps = rows / sequences;
        check_heads(name, shape, steps, heads);
        checks::positions(name, 0, context);
        assert!(steps <= context, "{name}: a context of {context} positions for {steps} queries");
        if query.dtype() != DType::I8 {
            return portable::attention::<B>(query, keys, values, heads);
        }
        let (query, keys, values) = (B::int8(query), B::int8(keys), B::int8(values));
        let mut y = vec![0; rows * width];
        let sizes = AttentionSizes { steps, context, heads, d: width / heads };
        let (query, keys, values) = (B::int8_slice(&query), B::int8_slice(&keys), B::int8_slice(&values));
        suspended(|| kernels::attention(query, keys, values, sizes, &mut y));
        B::from_int8(y, Shape::new(shape))
    }

    fn integer_transformer_log_likelihood(logits: IntTensor<B>, targets: IntTensor<B>, members: usize) -> IntTensor<B> {
        let name = "integer transformer's log-likelihood";
        let ([rows, classes], [count]) =
            (checks::dims(name, "logits", &logits), checks::dims(name, "targets", &targets));
        assert!(
            members > 0 && rows == count && rows.is_multiple_of(members) && (1..=256).contains(&classes),
            "{name}: logits [{rows}, {classes}] do not fit targets [{count}] of {members} members"
        );
        assert!(rows / members <= MAX_ROWS, "{name}: {} rows of a member are more than {MAX_ROWS}", rows / members);
        let targets =
            checks::indices(B::int_data(targets), classes, "integer transformer's log-likelihood: target", "classes");
        let logits = B::int_data(B::int_cast(logits, IntDType::I32));
        let mut sums = vec![0; members];
        let logits = logits.as_slice::<i32>().expect("of type I32");
        suspended(|| kernels::log_likelihood(logits, &targets, classes, &mut sums));
        B::int_from_data(TensorData::new(sums, [members]), &Default::default())
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

/// A vector that is readable as a slice.
struct HeldVector<B: SliceBackend> {
    values: IntTensor<B>,
    noise: Held<B>,
}

fn vector<B: SliceBackend>(vector: VectorPrimitive<B>) -> HeldVector<B> {
    HeldVector { values: B::int8(vector.values), noise: held::<B>(vector.noise) }
}

fn vector_slices<B: SliceBackend>(vector: &HeldVector<B>) -> VectorSlices<'_> {
    VectorSlices { values: B::int8_slice(&vector.values), noise: on_slice::<B>(&vector.noise) }
}
