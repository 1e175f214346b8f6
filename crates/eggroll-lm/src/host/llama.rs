//! The Llama architecture on the host.

use super::decoder::{Decoder, Sequence, append_wanted};
use super::head::Head;
use super::linear::{Changed, PackedLinear, vector};
use super::noise::Noise;
use crate::llama::{Frequencies, Llama, LlamaLayer};
use crate::load::LlamaConfig;
use crate::values::floats;
use burn::module::ParamId;
use eggroll_core::ParameterTable;
use eggroll_core::transformer::{Activations, AttentionScores, KeyValues, MemberRow, Precision, rotary};
use rayon::prelude::*;

/// A [`Llama`] on the host, its weights packed in a [`Precision`]: scores and generates for all members of a population at once.
#[derive(Debug)]
pub struct HostLlama {
    config: LlamaConfig,
    precision: Precision,
    frequencies: Frequencies,
    /// `[vocab_size, hidden_size]`
    embeddings: Vec<f32>,
    layers: Vec<HostLlamaLayer>,
    norm: Vec<f32>,
    head: Head,
}

#[derive(Debug)]
struct HostLlamaLayer {
    attention_norm: Vec<f32>,
    mlp_norm: Vec<f32>,
    /// q, k, v, o, gate, up, down.
    linear: [PackedLinear; 7],
}

/// Linear layers of one layer.
const LINEAR: usize = 7;

/// Buffers of a thread.
#[derive(Debug)]
pub struct LlamaBuffers {
    normed: Activations,
    attended: Activations,
    gated: Activations,
    x: Vec<f32>,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    up: Vec<f32>,
    gate: Vec<f32>,
    scratch: Vec<f32>,
    scores: Vec<f32>,
    cosines: Vec<f32>,
    sines: Vec<f32>,
    positions: Vec<u32>,
    rows: Vec<MemberRow>,
}

impl HostLlama {
    /// Packs a model's weights.
    pub fn new(model: &Llama, precision: Precision) -> Self {
        let config = model.config();
        let layer = |(index, layer): (usize, &LlamaLayer)| {
            let linear = layer.linear();
            let packed = |k: usize| PackedLinear::new(linear[k].1, LINEAR * index + k, precision);
            HostLlamaLayer {
                attention_norm: vector(&layer.input_layernorm.gamma),
                mlp_norm: vector(&layer.post_attention_layernorm.gamma),
                linear: std::array::from_fn(packed),
            }
        };
        let embeddings = floats(model.embed_tokens.weight.val());
        let shape = [config.vocab_size, config.hidden_size];
        let head = Head::new(model.lm_head.as_ref(), LINEAR * config.layers, &embeddings, shape, precision);
        Self {
            precision,
            frequencies: Frequencies::new(config),
            layers: model.layers.par_iter().enumerate().map(layer).collect(),
            embeddings,
            norm: vector(&model.norm.gamma),
            head,
            config: config.clone(),
        }
    }

    /// Packs the weights again that are trained, after a step; says how many of them have another packed value.
    ///
    /// # Panics
    ///
    /// Panics if the model has another number of layers.
    #[track_caller]
    pub fn update(&mut self, model: &Llama, table: &ParameterTable) -> Changed {
        let trained = |id| table.is_trained(id);
        assert!(
            model.layers.len() == self.layers.len(),
            "a model of {} layers for one of {}",
            model.layers.len(),
            self.layers.len()
        );
        let of_layer = |(packed, layer): (&mut HostLlamaLayer, &LlamaLayer)| -> Changed {
            let packed = packed.linear.iter_mut().zip(layer.linear());
            packed.map(|(packed, (_, layer))| packed.update(layer, trained)).sum()
        };
        let changed: Changed = self.layers.par_iter_mut().zip(&model.layers).map(of_layer).sum();
        let others: Vec<_> = model
            .layers
            .iter()
            .flat_map(|layer| [&layer.input_layernorm.gamma, &layer.post_attention_layernorm.gamma])
            .chain([&model.norm.gamma])
            .collect();
        if others.iter().any(|gamma| trained(gamma.id)) {
            for (packed, layer) in self.layers.iter_mut().zip(&model.layers) {
                packed.attention_norm = vector(&layer.input_layernorm.gamma);
                packed.mlp_norm = vector(&layer.post_attention_layernorm.gamma);
            }
            self.norm = vector(&model.norm.gamma);
        }
        let embeddings = trained(model.embed_tokens.weight.id);
        if embeddings {
            self.embeddings = floats(model.embed_tokens.weight.val());
        }
        let shape = [self.config.vocab_size, self.config.hidden_size];
        let changed_embeddings = embeddings.then_some((self.embeddings.as_slice(), shape));
        let head = self.head.update(model.lm_head.as_ref(), trained, changed_embeddings);
        [changed, head].into_iter().sum()
    }

    /// The configuration.
    pub fn config(&self) -> &LlamaConfig {
        &self.config
    }

    /// Rows, positions and embeddings of new tokens.
    fn begin(&self, sequences: &[Sequence<'_, KeyValues>], buffers: &mut LlamaBuffers) {
        let LlamaBuffers { x, rows, positions, cosines, sines, .. } = buffers;
        x.clear();
        rows.clear();
        positions.clear();
        cosines.clear();
        sines.clear();
        for sequence in sequences {
            for (offset, token) in sequence.tokens.iter().enumerate() {
                let token = *token as usize;
                assert!(token < self.config.vocab_size, "token {token} of {}", self.config.vocab_size);
                x.extend_from_slice(&self.embeddings[token * self.config.hidden_size..][..self.config.hidden_size]);
                positions.push(rows.len() as u32);
                rows.push(sequence.member);
                self.frequencies.push(sequence.state.len() + offset, cosines, sines);
            }
        }
    }
}

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
        let [x, q, k, v, up, gate, scratch, scores, cosines, sines] = [const { Vec::new() }; 10];
        let (positions, rows) = (Vec::new(), Vec::new());
        LlamaBuffers { normed, attended, gated, x, q, k, v, up, gate, scratch, scores, cosines, sines, positions, rows }
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
        let LlamaConfig { hidden_size, intermediate_size, heads, kv_heads, head_dim, rms_norm_eps, .. } = self.config;
        let LlamaBuffers {
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
            cosines,
            sines,
            positions,
            rows,
        } = buffers;
        let epsilon = rms_norm_eps as f32;
        let half = head_dim / 2;
        let plain = AttentionScores::of_dimension(head_dim);
        let [queries, keys] = [heads, kv_heads].map(|heads| heads * head_dim);
        q.resize(rows.len() * queries, 0.0);
        k.resize(rows.len() * keys, 0.0);
        v.resize(rows.len() * keys, 0.0);
        up.resize(rows.len() * intermediate_size, 0.0);
        for (index, layer) in self.layers.iter().enumerate() {
            let [to_q, to_k, to_v, to_o, to_gate, to_up, to_down] = &layer.linear;
            normed.rms_norm(x, &layer.attention_norm, epsilon);
            to_q.forward(normed, noise, rows, false, scratch, q);
            to_k.forward(normed, noise, rows, false, scratch, k);
            to_v.forward(normed, noise, rows, false, scratch, v);
            rotary(q, heads, positions, cosines, sines, half);
            rotary(k, kv_heads, positions, cosines, sines, half);
            attended.fill(rows.len(), queries, |out| {
                let mut row = 0;
                for sequence in &mut *sequences {
                    let count = sequence.tokens.len();
                    let part = |width: usize| row * width..(row + count) * width;
                    sequence.state.write(index, &k[part(keys)], &v[part(keys)]);
                    let (state, out) = (&mut *sequence.state, &mut out[part(queries)]);
                    state.attend(index, heads, &q[part(queries)], plain, scores, out);
                    row += count;
                }
            });
            to_o.forward(attended, noise, rows, true, scratch, x);
            normed.rms_norm(x, &layer.mlp_norm, epsilon);
            gate.resize(rows.len() * intermediate_size, 0.0);
            to_gate.forward(normed, noise, rows, false, scratch, gate);
            to_up.forward(normed, noise, rows, false, scratch, up);
            gated.swiglu(gate, up, intermediate_size);
            to_down.forward(gated, noise, rows, true, scratch, x);
        }
        for sequence in &mut *sequences {
            sequence.state.advance(sequence.tokens.len());
        }
        append_wanted(sequences, x, hidden_size, hidden);
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
    }
}
