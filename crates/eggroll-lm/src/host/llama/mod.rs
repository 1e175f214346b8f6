//! The Llama architecture on the host.

mod forward;
mod layer;
mod quantized;

pub(crate) use quantized::Moves;

use super::decoder::Sequence;
use super::embeddings::Embeddings;
use super::head::Head;
use super::linear::{Changed, vector};
use crate::llama::{Frequencies, Llama};
use crate::load::LlamaConfig;
use crate::values::floats;
use eggroll_core::ParameterTable;
use eggroll_core::transformer::{Activations, KeyValues, MemberRow, Precision};
use layer::{HostLlamaLayer, LINEAR};
use rayon::prelude::*;

/// A [`Llama`] on the host, its weights packed in a [`Precision`]: scores and generates for all members of a population at once.
#[derive(Debug)]
pub struct HostLlama {
    config: LlamaConfig,
    precision: Precision,
    frequencies: Frequencies,
    /// Frequencies of layers with a window, if they differ.
    window_frequencies: Option<Frequencies>,
    embeddings: Embeddings,
    layers: Vec<HostLlamaLayer>,
    norm: Vec<f32>,
    head: Head,
}

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
    product: Vec<f32>,
    normalized: Vec<f32>,
    angles: Angles,
    window_angles: Angles,
    positions: Vec<u32>,
    rows: Vec<MemberRow>,
}

/// Cosines and sines of the positions of all rows.
#[derive(Debug, Default)]
struct Angles {
    cosines: Vec<f32>,
    sines: Vec<f32>,
}

impl Angles {
    fn clear(&mut self) {
        self.cosines.clear();
        self.sines.clear();
    }

    fn push(&mut self, frequencies: &Frequencies, position: usize) {
        frequencies.push(position, &mut self.cosines, &mut self.sines);
    }
}

impl HostLlama {
    /// Packs a model's weights.
    pub fn new(model: &Llama, precision: Precision) -> Self {
        let config = model.config();
        let embeddings = floats(model.embed_tokens.weight.val());
        let shape = [config.vocab_size, config.hidden_size];
        let head = Head::new(model.lm_head.as_ref(), LINEAR * config.layers, &embeddings, shape, precision);
        let layers = model.layers.par_iter().enumerate();
        let layers = layers.map(|(index, layer)| HostLlamaLayer::new(config, index, layer, precision)).collect();
        let (frequencies, window_frequencies) = Frequencies::of(config);
        Self {
            precision,
            frequencies,
            window_frequencies,
            layers,
            embeddings: Embeddings::Floats(embeddings),
            norm: vector(&model.norm.gamma),
            head,
            config: config.clone(),
        }
    }

    /// Packs the trained weights again after a step; returns how many packed values have changed.
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
        let layers = self.layers.par_iter_mut().zip(&model.layers);
        let changed: Changed = layers.map(|(packed, layer)| packed.update(layer, trained)).sum();
        if trained(model.norm.gamma.id) {
            self.norm = vector(&model.norm.gamma);
        }
        let embeddings = trained(model.embed_tokens.weight.id).then(|| floats(model.embed_tokens.weight.val()));
        let shape = [self.config.vocab_size, self.config.hidden_size];
        let of_head = embeddings.as_deref().map(|embeddings| (embeddings, shape));
        let head = self.head.update(model.lm_head.as_ref(), trained, of_head);
        if let Some(embeddings) = embeddings {
            self.embeddings = Embeddings::Floats(embeddings);
        }
        [changed, head].into_iter().sum()
    }

    /// The configuration.
    pub fn config(&self) -> &LlamaConfig {
        &self.config
    }

    /// Rows, positions and embeddings of new tokens.
    fn begin(&self, sequences: &[Sequence<'_, KeyValues>], buffers: &mut LlamaBuffers) {
        let LlamaBuffers { x, rows, positions, angles, window_angles, .. } = buffers;
        x.clear();
        rows.clear();
        positions.clear();
        angles.clear();
        window_angles.clear();
        for sequence in sequences {
            for (offset, token) in sequence.tokens.iter().enumerate() {
                let token = *token as usize;
                assert!(token < self.config.vocab_size, "token {token} of {}", self.config.vocab_size);
                self.embeddings.push(token, self.config.hidden_size, &self.head, x);
                positions.push(rows.len() as u32);
                rows.push(sequence.member);
                let position = sequence.state.len() + offset;
                angles.push(&self.frequencies, position);
                if let Some(frequencies) = &self.window_frequencies {
                    window_angles.push(frequencies, position);
                }
            }
        }
        if self.config.gemma.is_some() {
            let scale = (self.config.hidden_size as f32).sqrt();
            x.iter_mut().for_each(|x| *x *= scale);
        }
    }
}
