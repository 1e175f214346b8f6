//! A Llama in a file's blocks of integers, which learn in place.

use super::HostLlama;
use super::layer::{HostLlamaLayer, LINEAR};
use crate::host::embeddings::Embeddings;
use crate::host::head::Head;
use crate::host::linear::{Changed, PackedLinear, vector};
use crate::llama::{Frequencies, LlamaLayer};
use crate::load::{LlamaConfig, LoadError, WeightBlocks, Weights};
use burn::module::ParamId;
use eggroll_core::transformer::{PackedMatrix, Precision};
use eggroll_nn::RmsNorm;
use rayon::prelude::*;
use std::io;
use std::ops::RangeInclusive;

/// A move of the integers of a matrix.
pub(crate) struct Moves {
    /// Change of the weights, `[d_input, d_output]`.
    pub update: Vec<f32>,
    /// The carried rounding error of earlier moves, in 2⁻¹⁶ steps.
    pub carried: Vec<i16>,
    /// The range of the integers.
    pub range: RangeInclusive<i8>,
}

impl HostLlama {
    /// Reads a model in blocks; `layers` has all but the matrices. Every matrix of a layer is shown to `seen`.
    pub(crate) fn in_blocks(
        config: &LlamaConfig,
        weights: &Weights,
        (layers, norm): (&[LlamaLayer], &RmsNorm),
        mut seen: impl FnMut(&WeightBlocks),
    ) -> Result<Self, LoadError> {
        let (hidden, vocabulary) = (config.hidden_size, config.vocab_size);
        // The largest matrices come first, while nothing else is in memory.
        let of_tokens = |name: &str| Ok(packed(&weights.blocks(name, [vocabulary, hidden])?, [hidden, vocabulary]));
        let embeddings = of_tokens("model.embed_tokens.weight")?;
        let (embeddings, head) = match config.tied_head {
            true => (None, Head::Tied(embeddings)),
            false => {
                let head = of_tokens("lm_head.weight")?;
                (Some(embeddings), Head::Own(PackedLinear::of(ParamId::new(), LINEAR * config.layers, head, None)))
            }
        };
        let mut of_layer = |(index, layer): (usize, &LlamaLayer)| {
            let mut linear = Vec::with_capacity(LINEAR);
            for (k, (name, of)) in layer.linear().into_iter().enumerate() {
                let shape @ [inputs, outputs] = of.weight.lazy_shape().dims();
                let blocks = weights.blocks(&format!("model.layers.{index}.{name}.weight"), [outputs, inputs])?;
                seen(&blocks);
                let bias = of.bias.as_ref().map(vector);
                linear.push(PackedLinear::of(of.weight.id, LINEAR * index + k, packed(&blocks, shape), bias));
            }
            let linear = linear.try_into().unwrap_or_else(|_| unreachable!("as many as there are"));
            Ok(HostLlamaLayer::of(config, index, layer, linear))
        };
        let layers = layers.iter().enumerate().map(&mut of_layer).collect::<Result<_, LoadError>>()?;
        let (frequencies, window_frequencies) = Frequencies::of(config);
        Ok(Self {
            precision: Precision::Q8_0,
            frequencies,
            window_frequencies,
            layers,
            embeddings: Embeddings::Blocks(embeddings),
            norm: vector(&norm.gamma),
            head,
            config: config.clone(),
        })
    }

    /// Moves the integers of the linear layers, side by side. `moves` gives the moves of a matrix,
    /// by its number, parameter and shape; `done` gets the carried rounding errors.
    ///
    /// # Errors
    ///
    /// The error of `moves` or `done`; later matrices are then not moved.
    pub(crate) fn move_blocks(
        &mut self,
        moves: impl Fn(usize, ParamId, [usize; 2]) -> io::Result<Option<Moves>> + Sync,
        done: impl Fn(usize, &[i16]) -> io::Result<()> + Sync,
    ) -> io::Result<Changed> {
        let of_linear = |linear: &mut PackedLinear| {
            let moves = moves(linear.number, linear.id, linear.shape())?;
            let Some(Moves { update, mut carried, range }) = moves else { return Ok(Changed::default()) };
            let changed = linear.matrix_mut().nudge(&update, &mut carried, range);
            done(linear.number, &carried)?;
            Ok(Changed { changed, weights: update.len() })
        };
        let linear = self.layers.par_iter_mut().flat_map(|layer| &mut layer.linear);
        let changed: io::Result<Vec<Changed>> = linear.map(of_linear).collect();
        Ok(changed?.into_iter().sum())
    }

    /// The integers of one output of the linear layer with this number, each with its scale.
    pub(crate) fn column(&self, number: usize, output: usize) -> impl Iterator<Item = (i8, f32)> {
        self.layers[number / LINEAR].linear[number % LINEAR].matrix().column(output)
    }
}

fn packed(WeightBlocks { integers, scales, .. }: &WeightBlocks, shape: [usize; 2]) -> PackedMatrix {
    PackedMatrix::of_blocks(integers, scales, shape)
}
