//! Rows of sequences through a layer.

use super::super::decoder::Sequence;
use super::super::linear::PackedLinear;
use super::super::noise::Noise;
use super::layer::HostRwkv7Layer;
use super::rows::{Own, keys, mixed, shift};
use super::state::Rwkv7State;
use crate::load::Rwkv7Config;
use eggroll_core::transformer::{Activations, MemberRow, Precision, Wkv7, sigmoid, tanh, wkv7_decay};

/// Buffers of a thread. Rows are `[rows, hidden_size]` unless stated otherwise.
#[derive(Debug)]
pub struct Rwkv7Buffers {
    pub(super) x: Vec<f32>,
    pub(super) rows: Vec<MemberRow>,
    /// Inputs of products in the precision of the model, and of products in float32.
    pub(super) input: Activations,
    input_f32: Activations,
    /// Between the two products of a low-rank pair.
    inner: Activations,
    pub(super) scratch: Vec<f32>,
    pub(super) normed: Vec<f32>,
    /// The row before, minus the row.
    difference: Vec<f32>,
    r: Vec<f32>,
    w: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    a: Vec<f32>,
    g: Vec<f32>,
    removal: Vec<f32>,
    y: Vec<f32>,
    /// The first layer's values.
    first: Vec<f32>,
    /// Of channel mixing, `[rows, intermediate_size]`.
    hidden: Activations,
}

/// The sequences and what all their rows share.
pub(super) struct Pass<'a, 'b, 'c> {
    pub config: &'a Rwkv7Config,
    pub noise: Option<&'a Noise>,
    pub sequences: &'a mut [Sequence<'b, Rwkv7State>],
    pub buffers: &'c mut Rwkv7Buffers,
}

impl Rwkv7Buffers {
    pub(super) fn new(precision: Precision) -> Self {
        let [input_f32, inner] = [(); 2].map(|()| Activations::new(Precision::F32));
        let [x, scratch, normed, difference, r, w, k, v, a, g, removal, y, first] = [const { Vec::new() }; 13];
        let [input, hidden] = [(); 2].map(|()| Activations::new(precision));
        let rows = Vec::new();
        Self {
            x,
            rows,
            input,
            input_f32,
            inner,
            scratch,
            normed,
            difference,
            r,
            w,
            k,
            v,
            a,
            g,
            removal,
            y,
            first,
            hidden,
        }
    }
}

impl Pass<'_, '_, '_> {
    /// Adds the output of time mixing to the rows.
    pub fn time_mix(&mut self, index: usize, layer: &HostRwkv7Layer) {
        let Rwkv7Config { hidden_size: hidden, head_dim, .. } = *self.config;
        let heads = hidden / head_dim;
        let HostRwkv7Layer { vectors, linear } = layer;
        let [receptance, key, value, output, _, _, w1, w2, a1, a2, g1, g2, residual @ ..] = linear.as_slice() else {
            unreachable!("{} matrices of a layer", linear.len());
        };
        let Rwkv7Buffers {
            x,
            rows,
            input,
            input_f32,
            inner,
            scratch,
            normed,
            difference,
            r,
            w,
            k,
            v,
            a,
            g,
            removal,
            y,
            first,
            hidden: _,
        } = &mut *self.buffers;
        for target in [&mut *normed, r, w, k, v, a, g, removal, y] {
            target.resize(x.len(), 0.0);
        }
        vectors.ln1.apply(x, 1, normed);
        shift(normed, hidden, self.sequences, |state| &mut state.layers[index].attention, difference);
        let [mix_r, mix_w, mix_k, mix_v, mix_a, mix_g] = &vectors.mixes;
        let mut products = Products { noise: self.noise, rows, scratch, inner };
        mixed(input, normed, difference, mix_r);
        products.linear(receptance, input, false, r);
        mixed(input, normed, difference, mix_k);
        products.linear(key, input, false, k);
        mixed(input, normed, difference, mix_v);
        products.linear(value, input, false, v);
        match (residual, &vectors.v0) {
            ([v1, v2], Some(v0)) => {
                products.pair([v1, v2], input, |_| {}, Some(v0), y);
                sigmoid(y);
                v.iter_mut().zip(&*first).zip(&*y).for_each(|((v, first), share)| *v += (first - *v) * share);
            }
            _ => first.clone_from(v),
        }
        mixed(input_f32, normed, difference, mix_w);
        products.pair([w1, w2], input_f32, tanh, Some(&vectors.w0), w);
        wkv7_decay(w);
        mixed(input_f32, normed, difference, mix_a);
        products.pair([a1, a2], input_f32, |_| {}, Some(&vectors.a0), a);
        sigmoid(a);
        mixed(input_f32, normed, difference, mix_g);
        products.pair([g1, g2], input_f32, sigmoid, None, g);
        keys(k, a, &vectors.k_k, &vectors.k_a, head_dim, removal);
        let mut row = 0;
        for sequence in &mut *self.sequences {
            let part = row * hidden..(row + sequence.tokens.len()) * hidden;
            row += sequence.tokens.len();
            let [decay, receptance, key, value, removal, rate] =
                [&*w, r, k, v, removal, a].map(|rows| &rows[part.clone()]);
            let wkv = Wkv7 { heads, head_dim, decay, receptance, key, value, removal, rate };
            wkv.run(&mut sequence.state.layers[index].wkv, &mut y[part]);
        }
        input.fill(products.rows.len(), hidden, |out| {
            vectors.ln_x.apply(y, heads, out);
            Own { r, k, v, r_k: &vectors.r_k, g, head_dim }.add(out);
        });
        products.linear(output, input, true, x);
    }

    /// Adds the output of channel mixing to the rows.
    pub fn channel_mix(&mut self, index: usize, layer: &HostRwkv7Layer) {
        let Rwkv7Config { hidden_size, intermediate_size, .. } = *self.config;
        let HostRwkv7Layer { vectors, linear } = layer;
        let [_, _, _, _, key, value, ..] = linear.as_slice() else {
            unreachable!("{} matrices of a layer", linear.len());
        };
        let Rwkv7Buffers { x, rows, input, inner, scratch, normed, difference, hidden, .. } = &mut *self.buffers;
        vectors.ln2.apply(x, 1, normed);
        shift(normed, hidden_size, self.sequences, |state| &mut state.layers[index].feed_forward, difference);
        mixed(input, normed, difference, &vectors.ffn_mix);
        let mut products = Products { noise: self.noise, rows, scratch, inner };
        hidden.fill(products.rows.len(), intermediate_size, |hidden| {
            products.linear(key, input, false, hidden);
            // The square of the positive part; NaN stays NaN.
            hidden.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.0 } else { *x * *x });
        });
        products.linear(value, hidden, true, x);
    }
}

/// Products of the rows of members.
struct Products<'a> {
    noise: Option<&'a Noise>,
    rows: &'a [MemberRow],
    scratch: &'a mut Vec<f32>,
    inner: &'a mut Activations,
}

impl Products<'_> {
    fn linear(&mut self, layer: &PackedLinear, x: &Activations, add: bool, y: &mut [f32]) {
        layer.forward(x, self.noise, self.rows, add, self.scratch, y);
    }

    /// `y = activation(x·first)·second + bias`
    fn pair(
        &mut self,
        [first, second]: [&PackedLinear; 2],
        x: &Activations,
        activation: impl Fn(&mut [f32]),
        bias: Option<&[f32]>,
        y: &mut [f32],
    ) {
        let Self { noise, rows, scratch, inner } = self;
        inner.fill(rows.len(), first.shape()[1], |inner| {
            first.forward(x, *noise, rows, false, scratch, inner);
            activation(inner);
        });
        if let Some(bias) = bias {
            y.chunks_exact_mut(bias.len()).for_each(|y| y.copy_from_slice(bias));
        }
        second.forward(inner, *noise, rows, bias.is_some(), scratch, y);
    }
}
