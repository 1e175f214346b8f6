//! The forward pass of the Llama architecture on the host.

use super::layer::HostLlamaLayer;
use super::{Angles, HostLlama, LlamaBuffers};
use crate::host::decoder::{Decoder, Sequence, append_wanted};
use crate::host::linear::PackedLinear;
use crate::host::noise::Noise;
use crate::load::LlamaConfig;
use burn::module::ParamId;
use eggroll_core::transformer::{Activations, KeyValues, MemberRow, rms_norm, rotary, tanh};

impl Decoder for HostLlama {
    type State = KeyValues;
    type Buffers = LlamaBuffers;

    fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    fn hidden_size(&self) -> usize {
        self.config.hidden_size
    }

    fn context_length(&self) -> usize {
        self.config.context_length
    }

    fn state(&self, capacity: usize) -> KeyValues {
        let LlamaConfig { layers, kv_heads, head_dim, .. } = self.config;
        KeyValues::new(layers, kv_heads, head_dim, capacity)
    }

    fn fork(&self, state: &KeyValues, capacity: usize) -> KeyValues {
        state.fork(capacity)
    }

    fn state_bytes(&self, capacity: usize) -> usize {
        let LlamaConfig { layers, kv_heads, head_dim, .. } = self.config;
        KeyValues::bytes(layers, kv_heads, head_dim, capacity)
    }

    fn buffers(&self) -> LlamaBuffers {
        let [normed, attended, gated] = [(); 3].map(|()| Activations::new(self.precision));
        let [x, q, k, v, up, gate, scratch, scores, product, normalized] = [const { Vec::new() }; 10];
        let [angles, window_angles] = [(); 2].map(|()| Angles::default());
        let (positions, rows) = (Vec::new(), Vec::new());
        LlamaBuffers {
            normed,
            attended,
            gated,
            x,
            q,
            k,
            v,
            up,
            gate,
            scratch,
            scores,
            product,
            normalized,
            angles,
            window_angles,
            positions,
            rows,
        }
    }

    fn matrices(&self) -> Vec<(ParamId, [usize; 2])> {
        let layers = self.layers.iter().flat_map(|layer| &layer.linear);
        layers.chain(self.head.own()).map(|linear| (linear.id, linear.shape())).collect()
    }

    fn forward(
        &self,
        noise: Option<&Noise>,
        sequences: &mut [Sequence<'_, KeyValues>],
        buffers: &mut LlamaBuffers,
        hidden: &mut Vec<f32>,
    ) {
        self.begin(sequences, buffers);
        for (index, layer) in self.layers.iter().enumerate() {
            self.attention(index, layer, noise, sequences, buffers);
            self.feed_forward(layer, noise, buffers);
        }
        for sequence in &mut *sequences {
            sequence.state.advance(sequence.tokens.len());
        }
        append_wanted(sequences, &buffers.x, self.config.hidden_size, hidden);
    }

    fn logits(
        &self,
        noise: Option<&Noise>,
        rows: &[MemberRow],
        hidden: &[f32],
        buffers: &mut LlamaBuffers,
        logits: &mut Vec<f32>,
    ) {
        let LlamaBuffers { normed, scratch, .. } = buffers;
        logits.resize(rows.len() * self.config.vocab_size, 0.0);
        normed.rms_norm(hidden, &self.norm, self.config.rms_norm_eps as f32);
        self.head.forward(normed, noise, rows, scratch, logits);
        if let Some(cap) = self.config.gemma.and_then(|gemma| gemma.logit_cap) {
            let cap = cap as f32;
            logits.iter_mut().for_each(|logit| *logit /= cap);
            tanh(logits);
            logits.iter_mut().for_each(|logit| *logit *= cap);
        }
    }
}

impl HostLlama {
    /// Adds the attention of a layer to the residual stream, and writes its keys and values.
    fn attention(
        &self,
        index: usize,
        layer: &HostLlamaLayer,
        noise: Option<&Noise>,
        sequences: &mut [Sequence<'_, KeyValues>],
        buffers: &mut LlamaBuffers,
    ) {
        let LlamaConfig { heads, kv_heads, head_dim, rms_norm_eps, .. } = self.config;
        let LlamaBuffers {
            normed,
            attended,
            x,
            q,
            k,
            v,
            scratch,
            scores,
            product,
            normalized,
            angles,
            window_angles,
            positions,
            rows,
            ..
        } = buffers;
        let epsilon = rms_norm_eps as f32;
        let [queries, keys] = [heads, kv_heads].map(|heads| heads * head_dim);
        q.resize(rows.len() * queries, 0.0);
        k.resize(rows.len() * keys, 0.0);
        v.resize(rows.len() * keys, 0.0);
        let [to_q, to_k, to_v, to_o, ..] = &layer.linear;
        normed.rms_norm(x, &layer.norms.attention, epsilon);
        to_q.forward(normed, noise, rows, false, scratch, q);
        to_k.forward(normed, noise, rows, false, scratch, k);
        to_v.forward(normed, noise, rows, false, scratch, v);
        if let Some(gains) = &layer.norms.heads {
            for (heads, gains) in [&mut *q, &mut *k].into_iter().zip(gains) {
                normalized.resize(heads.len(), 0.0);
                rms_norm(heads, gains, epsilon, normalized);
                std::mem::swap(heads, normalized);
            }
        }
        if layer.attention.rotary {
            let own = layer.attention.windowed && self.window_frequencies.is_some();
            let Angles { cosines, sines } = if own { window_angles } else { angles };
            rotary(q, heads, positions, cosines, sines, head_dim / 2);
            rotary(k, kv_heads, positions, cosines, sines, head_dim / 2);
        }
        attended.fill(rows.len(), queries, |out| {
            let mut row = 0;
            for sequence in &mut *sequences {
                let count = sequence.tokens.len();
                let part = |width: usize| row * width..(row + count) * width;
                let (state, out) = (&mut *sequence.state, &mut out[part(queries)]);
                state.write(index, &k[part(keys)], &v[part(keys)]);
                state.attend(index, heads, &q[part(queries)], layer.scores, scores, out);
                row += count;
            }
        });
        let gains = layer.norms.behind.as_ref().map(|[gains, _]| gains.as_slice());
        self.add(to_o, gains, attended, (noise, rows), [scratch, product, normalized], x);
    }

    /// Adds the feed-forward part of a layer to the residual stream.
    fn feed_forward(&self, layer: &HostLlamaLayer, noise: Option<&Noise>, buffers: &mut LlamaBuffers) {
        let LlamaConfig { intermediate_size, rms_norm_eps, .. } = self.config;
        let LlamaBuffers { normed, gated, x, up, gate, scratch, product, normalized, rows, .. } = buffers;
        let epsilon = rms_norm_eps as f32;
        let [.., to_gate, to_up, to_down] = &layer.linear;
        up.resize(rows.len() * intermediate_size, 0.0);
        gate.resize(rows.len() * intermediate_size, 0.0);
        normed.rms_norm(x, &layer.norms.mlp, epsilon);
        to_gate.forward(normed, noise, rows, false, scratch, gate);
        to_up.forward(normed, noise, rows, false, scratch, up);
        match self.config.gemma {
            None => gated.swiglu(gate, up, intermediate_size),
            Some(_) => gated.geglu(gate, up, intermediate_size),
        }
        let gains = layer.norms.behind.as_ref().map(|[_, gains]| gains.as_slice());
        self.add(to_down, gains, gated, (noise, rows), [scratch, product, normalized], x);
    }

    /// `x ← x + linear(input)`, normalized before it is added if there are gains for that.
    fn add(
        &self,
        linear: &PackedLinear,
        gains: Option<&[f32]>,
        input: &Activations,
        (noise, rows): (Option<&Noise>, &[MemberRow]),
        [scratch, product, normalized]: [&mut Vec<f32>; 3],
        x: &mut [f32],
    ) {
        let Some(gains) = gains else { return linear.forward(input, noise, rows, true, scratch, x) };
        product.resize(x.len(), 0.0);
        normalized.resize(x.len(), 0.0);
        linear.forward(input, noise, rows, false, scratch, product);
        rms_norm(product, gains, self.config.rms_norm_eps as f32, normalized);
        x.iter_mut().zip(normalized).for_each(|(x, y)| *x += *y);
    }
}
