//! The RWKV-7 architecture on the host.

mod forward;
mod layer;
mod rows;
mod state;

pub use forward::Rwkv7Buffers;
pub use state::{Rwkv7LayerState, Rwkv7State};

use super::decoder::{Decoder, Sequence, append_wanted};
use super::head::Head;
use super::linear::Changed;
use super::noise::Noise;
use crate::load::Rwkv7Config;
use crate::rwkv7::{Rwkv7, Rwkv7Block};
use crate::values::floats;
use burn::module::ParamId;
use eggroll_core::ParameterTable;
use eggroll_core::transformer::{MemberRow, Precision};
use forward::Pass;
use layer::{HostRwkv7Layer, Norm, first_matrix, norm_vectors};
use rayon::prelude::*;

/// An [`Rwkv7`] on the host, its weights packed in a [`Precision`]: scores and generates for all members of a population at once.
///
/// The large matrices are in that precision; the low-rank pairs and the recurrence are float32. The state of a
/// sequence, [`Rwkv7State`], has the same size for any length.
#[derive(Debug)]
pub struct HostRwkv7 {
    config: Rwkv7Config,
    precision: Precision,
    /// `[vocab_size, hidden_size]`
    embeddings: Vec<f32>,
    ln0: Norm,
    layers: Vec<HostRwkv7Layer>,
    ln_out: Norm,
    head: Head,
}

impl HostRwkv7 {
    /// Packs a model's weights.
    pub fn new(model: &Rwkv7, precision: Precision) -> Self {
        let config = model.config();
        let embeddings = floats(model.emb.weight.val());
        let shape = [config.vocab_size, config.hidden_size];
        let layer =
            |(index, block): (usize, &Rwkv7Block)| HostRwkv7Layer::new(block, index, config.norm_eps, precision);
        Self {
            precision,
            ln0: Norm::of_rows(&model.ln0, config.norm_eps),
            layers: model.blocks.par_iter().enumerate().map(layer).collect(),
            ln_out: Norm::of_rows(&model.ln_out, config.norm_eps),
            head: Head::new(model.head.as_ref(), first_matrix(config.layers), &embeddings, shape, precision),
            embeddings,
            config: config.clone(),
        }
    }

    /// Packs the trained weights again after a step; returns how many packed values have changed.
    ///
    /// # Panics
    ///
    /// Panics if the model has another number of layers.
    #[track_caller]
    pub fn update(&mut self, model: &Rwkv7, table: &ParameterTable) -> Changed {
        let trained = |id| table.is_trained(id);
        let (blocks, layers) = (model.blocks.len(), self.layers.len());
        assert!(blocks == layers, "a model of {blocks} layers for one of {layers}");
        let layers = self.layers.par_iter_mut().zip(&model.blocks);
        let changed: Changed = layers.map(|(layer, block)| layer.update(block, self.config.norm_eps, trained)).sum();
        for (packed, norm) in [(&mut self.ln0, &model.ln0), (&mut self.ln_out, &model.ln_out)] {
            if norm_vectors(norm).any(|vector| trained(vector.id)) {
                *packed = Norm::of_rows(norm, self.config.norm_eps);
            }
        }
        let embeddings = trained(model.emb.weight.id);
        if embeddings {
            self.embeddings = floats(model.emb.weight.val());
        }
        let shape = [self.config.vocab_size, self.config.hidden_size];
        let changed_embeddings = embeddings.then_some((self.embeddings.as_slice(), shape));
        let head = self.head.update(model.head.as_ref(), trained, changed_embeddings);
        [changed, head].into_iter().sum()
    }

    /// The configuration.
    pub fn config(&self) -> &Rwkv7Config {
        &self.config
    }

    /// Rows and embeddings of new tokens.
    #[track_caller]
    fn begin(&self, sequences: &[Sequence<'_, Rwkv7State>], buffers: &mut Rwkv7Buffers) {
        let Rwkv7Config { vocab_size, hidden_size, .. } = self.config;
        let Rwkv7Buffers { x, rows, normed, .. } = buffers;
        rows.clear();
        for sequence in sequences {
            assert!(sequence.state.fits(&self.config), "the state of a sequence is that of another model");
            rows.extend(sequence.tokens.iter().map(|_| sequence.member));
        }
        normed.clear();
        for token in sequences.iter().flat_map(|sequence| sequence.tokens) {
            let token = *token as usize;
            assert!(token < vocab_size, "token {token} of {vocab_size}");
            normed.extend_from_slice(&self.embeddings[token * hidden_size..][..hidden_size]);
        }
        x.resize(normed.len(), 0.0);
        self.ln0.apply(normed, 1, x);
    }
}

impl Decoder for HostRwkv7 {
    type State = Rwkv7State;
    type Buffers = Rwkv7Buffers;

    fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    fn hidden_size(&self) -> usize {
        self.config.hidden_size
    }

    /// Sequences may be of any length.
    fn context_length(&self) -> usize {
        usize::MAX
    }

    fn state(&self, _capacity: usize) -> Rwkv7State {
        Rwkv7State::empty(&self.config)
    }

    fn fork(&self, state: &Rwkv7State, _capacity: usize) -> Rwkv7State {
        state.clone()
    }

    fn state_bytes(&self, _capacity: usize) -> usize {
        Rwkv7State::bytes(&self.config)
    }

    fn buffers(&self) -> Rwkv7Buffers {
        Rwkv7Buffers::new(self.precision)
    }

    fn matrices(&self) -> Vec<(ParamId, [usize; 2])> {
        let layers = self.layers.iter().flat_map(|layer| &layer.linear);
        let matrices: Vec<_> = layers.chain(self.head.own()).collect();
        debug_assert!(matrices.iter().enumerate().all(|(number, linear)| linear.number == number));
        matrices.into_iter().map(|linear| (linear.id, linear.shape())).collect()
    }

    fn forward(
        &self,
        noise: Option<&Noise>,
        sequences: &mut [Sequence<'_, Rwkv7State>],
        buffers: &mut Rwkv7Buffers,
        hidden: &mut Vec<f32>,
    ) {
        self.begin(sequences, buffers);
        let mut pass = Pass { config: &self.config, noise, sequences, buffers };
        for (index, layer) in self.layers.iter().enumerate() {
            pass.time_mix(index, layer);
            pass.channel_mix(index, layer);
        }
        append_wanted(pass.sequences, &pass.buffers.x, self.config.hidden_size, hidden);
    }

    fn logits(
        &self,
        noise: Option<&Noise>,
        rows: &[MemberRow],
        hidden: &[f32],
        buffers: &mut Rwkv7Buffers,
        logits: &mut Vec<f32>,
    ) {
        let Rwkv7Buffers { input, scratch, .. } = buffers;
        logits.resize(rows.len() * self.config.vocab_size, 0.0);
        input.fill(rows.len(), self.config.hidden_size, |out| self.ln_out.apply(hidden, 1, out));
        self.head.forward(input, noise, rows, scratch, logits);
    }
}
