//! Defaults of [`RowOps`](crate::ops::rows::RowOps).

use crate::ops::operands::{Activation, CausalAttention};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::{FloatDType, Shape, Slice, TensorData};

pub(crate) fn activation<B: Backend>(x: FloatTensor<B>, function: Activation) -> FloatTensor<B> {
    match function {
        Activation::Gelu => B::gelu(x),
        Activation::Sigmoid => B::sigmoid(x),
        Activation::Silu => B::float_mul(x.clone(), B::sigmoid(x)),
        Activation::Tanh => B::float_tanh(x),
    }
}

pub(crate) fn rms_normalized<B: Backend>(x: FloatTensor<B>, epsilon: f32) -> FloatTensor<B> {
    let (last, dtype) = (x.shape().num_dims() - 1, x.dtype());
    let wide = B::float_cast(x.clone(), FloatDType::F32);
    let mean = B::float_mean_dim(B::float_mul(wide.clone(), wide), last);
    let size = B::float_sqrt(B::float_add_scalar(mean, Scalar::from(epsilon)));
    B::float_div(x, B::float_cast(size, dtype.into()))
}

pub(crate) fn gated_recurrence<B: Backend>(
    forget: FloatTensor<B>,
    candidate: FloatTensor<B>,
    kept: FloatTensor<B>,
    state: FloatTensor<B>,
) -> FloatTensor<B> {
    let shape = forget.shape();
    let (batch, steps, width) = (shape[0], shape[1], shape[2]);
    if steps == 0 {
        return forget;
    }
    let forget = B::sigmoid(forget);
    let added = B::float_mul(forget.clone(), candidate);
    let kept = B::float_reshape(kept, Shape::new([batch, steps, 1]));
    let kept = B::float_mul(B::float_add_scalar(B::float_neg(forget), Scalar::from(1.0f32)), kept);
    let at = |x: &FloatTensor<B>, step: usize| {
        let slices = [Slice::from(0..batch), Slice::from(step..step + 1), Slice::from(0..width)];
        B::float_slice(x.clone(), &slices)
    };
    let mut state = B::float_reshape(state, Shape::new([batch, 1, width]));
    let states = (0..steps).map(|step| {
        state = B::float_add(B::float_mul(at(&kept, step), state.clone()), at(&added, step));
        state.clone()
    });
    B::float_cat(states.collect(), 1)
}

pub(crate) fn causal_attention<B: Backend>(
    query: FloatTensor<B>,
    key: FloatTensor<B>,
    value: FloatTensor<B>,
    attention: CausalAttention,
) -> FloatTensor<B> {
    let shape = query.shape();
    let (batch, steps, width, heads) = (shape[0], shape[1], shape[2], attention.heads);
    let size = width / heads;
    // [batch, heads, steps, size]
    let by_head =
        |x: FloatTensor<B>| B::float_swap_dims(B::float_reshape(x, Shape::new([batch, steps, heads, size])), 1, 2);
    let constant = |values: Vec<f32>, rows: usize| {
        let columns = values.len() / rows;
        let values = B::float_from_data(TensorData::new(values, [1, 1, rows, columns]), &query.device());
        B::float_cast(values, query.dtype().into())
    };
    if steps == 0 {
        return query;
    }
    let [mut q, mut k] = [query.clone(), key].map(by_head);
    if let Some(base) = attention.rotary {
        let [cosines, sines] = angles(steps, size, base).map(|table| constant(table, steps));
        let half = |x: &FloatTensor<B>, from: usize| {
            let sides = [batch, heads, steps].map(|side| Slice::from(0..side));
            B::float_slice(x.clone(), &[&sides[..], &[Slice::from(from..from + size / 2)]].concat())
        };
        let turned = |x: FloatTensor<B>| {
            let (a, b) = (half(&x, 0), half(&x, size / 2));
            let times = |x: &FloatTensor<B>, table: &FloatTensor<B>| B::float_mul(x.clone(), table.clone());
            let first = B::float_sub(times(&a, &cosines), times(&b, &sines));
            B::float_cat(vec![first, B::float_add(times(&b, &cosines), times(&a, &sines))], 3)
        };
        [q, k] = [q, k].map(turned);
    }
    let scores = B::float_matmul(q, B::float_swap_dims(k, 2, 3));
    let scores = B::float_mul_scalar(scores, Scalar::from(1.0 / (size as f32).sqrt()));
    let hidden = (0..steps * steps).map(|i| {
        let (step, seen) = (i / steps, i % steps);
        if seen > step || step - seen >= attention.window { -1e9 } else { 0.0f32 }
    });
    let weights = B::softmax(B::float_add(scores, constant(hidden.collect(), steps)), 3);
    let mixed = B::float_matmul(weights, by_head(value)); // [batch, heads, steps, size]
    B::float_reshape(B::float_swap_dims(mixed, 1, 2), shape)
}

/// Cosines and sines of rotary positions, `[steps, size / 2]` each.
pub(crate) fn angles(steps: usize, size: usize, base: f32) -> [Vec<f32>; 2] {
    let half = size / 2;
    let angle = |i: usize| (i / half) as f64 * f64::from(base).powf(-((i % half) as f64) / half as f64);
    [f64::cos, f64::sin].map(|function| (0..steps * half).map(|i| function(angle(i)) as f32).collect())
}
