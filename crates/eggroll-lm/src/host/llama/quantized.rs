//! A Llama in the numbers of its file, which learn in place.

use super::HostLlama;
use super::layer::{HostLlamaLayer, LINEAR};
use crate::host::embeddings::Embeddings;
use crate::host::head::Head;
use crate::host::linear::{Changed, PackedLinear, vector};
use crate::llama::{Frequencies, LlamaLayer};
use crate::load::{Encoding, LlamaConfig, LoadError, StoredMatrix, Weights};
use burn::module::ParamId;
use eggroll_core::transformer::{PackedMatrix, Precision};
use eggroll_nn::RmsNorm;
use rayon::prelude::*;
use std::io;

/// A move of the numbers of a matrix.
pub(crate) struct Moves {
    /// Change of the weights, `[d_input, d_output]`.
    pub update: Vec<f32>,
    /// What [`PackedMatrix::nudge`] carries from move to move.
    pub carried: Vec<i16>,
}

impl HostLlama {
    /// Reads a model in bfloat16 or in blocks; `layers` has all but the matrices. Every matrix of a layer is shown to `seen`.
    pub(crate) fn as_stored(
        config: &LlamaConfig,
        weights: &Weights,
        (layers, norm): (&[LlamaLayer], &RmsNorm),
        bfloat16: bool,
        mut seen: impl FnMut(&StoredMatrix, [usize; 2]),
    ) -> Result<Self, LoadError> {
        let (hidden, vocabulary) = (config.hidden_size, config.vocab_size);
        let read =
            |name: &str, shape| if bfloat16 { weights.bfloat16(name, shape) } else { weights.blocks(name, shape) };
        // The largest matrices come first, while nothing else is in memory.
        let of_tokens = |name: &str| Ok(read(name, [vocabulary, hidden])?.packed([hidden, vocabulary]));
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
                let stored = read(&format!("model.layers.{index}.{name}.weight"), [outputs, inputs])?;
                seen(&stored, shape);
                let bias = of.bias.as_ref().map(vector);
                linear.push(PackedLinear::of(of.weight.id, LINEAR * index + k, stored.packed(shape), bias));
            }
            let linear = linear.try_into().unwrap_or_else(|_| unreachable!("as many as there are"));
            Ok(HostLlamaLayer::of(config, index, layer, linear))
        };
        let layers = layers.iter().enumerate().map(&mut of_layer).collect::<Result<_, LoadError>>()?;
        let (frequencies, window_frequencies) = Frequencies::of(config);
        Ok(Self {
            precision: if bfloat16 { Precision::Bf16 } else { Precision::Q8_0 },
            frequencies,
            window_frequencies,
            layers,
            embeddings: Embeddings::Packed(embeddings),
            norm: vector(&norm.gamma),
            head,
            config: config.clone(),
        })
    }

    /// Moves the weights of the linear layers, side by side. `moves` gives the moves of a matrix,
    /// by its number, parameter and shape; `done` gets what is carried to the next move.
    ///
    /// # Errors
    ///
    /// The error of `moves` or `done`; later matrices are then not moved.
    pub(crate) fn move_weights(
        &mut self,
        moves: impl Fn(usize, ParamId, [usize; 2]) -> io::Result<Option<Moves>> + Sync,
        done: impl Fn(usize, &[i16]) -> io::Result<()> + Sync,
    ) -> io::Result<Changed> {
        let of_linear = |linear: &mut PackedLinear| {
            let moves = moves(linear.number, linear.id, linear.shape())?;
            let Some(Moves { update, mut carried }) = moves else { return Ok(Changed::default()) };
            let changed = linear.matrix_mut().nudge(&update, &mut carried);
            done(linear.number, &carried)?;
            Ok(Changed { changed, weights: update.len() })
        };
        let linear = self.layers.par_iter_mut().flat_map(|layer| &mut layer.linear);
        let changed: io::Result<Vec<Changed>> = linear.map(of_linear).collect();
        Ok(changed?.into_iter().sum())
    }

    /// The linear layer with this number.
    pub(crate) fn matrix(&self, number: usize) -> &PackedMatrix {
        self.layers[number / LINEAR].linear[number % LINEAR].matrix()
    }

    /// Appends the bytes of one output of the linear layer with this number, as a file of this encoding has them.
    pub(crate) fn encode(&self, number: usize, output: usize, encoding: Encoding, bytes: &mut Vec<u8>) {
        let matrix = self.matrix(number);
        if encoding == Encoding::BF16 {
            return bytes.extend(matrix.column_bits(output).flat_map(u16::to_le_bytes));
        }
        let column: Vec<(i8, f32)> = matrix.column(output).collect();
        for block in column.as_chunks::<{ PackedMatrix::BLOCK }>().0 {
            encoding.encode(block[0].1, block.map(|(integer, _)| integer), bytes);
        }
    }
}
