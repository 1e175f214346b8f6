//! The output layer of a model.

use super::linear::{Changed, PackedLinear};
use super::noise::Noise;
use crate::values::transposed;
use burn::module::ParamId;
use eggroll_core::transformer::{Activations, MemberRow, PackedMatrix, Precision};
use eggroll_nn::Linear;

/// An output layer, packed.
#[derive(Debug)]
pub(super) enum Head {
    /// With a separate weight.
    Own(PackedLinear),
    /// With the embeddings, transposed.
    Tied(PackedMatrix),
}

impl Head {
    /// Packs the layer, whose weight has this number among the model's matrices, or the embeddings, `[vocab_size, hidden_size]`.
    pub fn new(
        layer: Option<&Linear>,
        number: usize,
        embeddings: &[f32],
        shape: [usize; 2],
        precision: Precision,
    ) -> Self {
        match layer {
            Some(layer) => Self::Own(PackedLinear::new(layer, number, precision)),
            None => Self::Tied(tied(embeddings, shape, precision)),
        }
    }

    /// Packs the layer again if it is trained, or the embeddings if they have changed.
    pub fn update(
        &mut self,
        layer: Option<&Linear>,
        trained: impl Fn(ParamId) -> bool,
        embeddings: Option<(&[f32], [usize; 2])>,
    ) -> Changed {
        match (self, layer, embeddings) {
            (Self::Own(packed), Some(layer), _) => packed.update(layer, trained),
            (Self::Tied(packed), _, Some((embeddings, shape))) => {
                *packed = tied(embeddings, shape, packed.precision());
                Changed::default()
            }
            _ => Changed::default(),
        }
    }

    /// The layer, if it has a separate weight.
    pub fn own(&self) -> Option<&PackedLinear> {
        match self {
            Self::Own(layer) => Some(layer),
            Self::Tied(_) => None,
        }
    }

    /// The weight, `[hidden_size, vocab_size]`.
    pub fn matrix(&self) -> &PackedMatrix {
        match self {
            Self::Own(layer) => layer.matrix(),
            Self::Tied(matrix) => matrix,
        }
    }

    /// Logits of rows of members, `[rows, vocab_size]`.
    pub fn forward(
        &self,
        x: &Activations,
        noise: Option<&Noise>,
        rows: &[MemberRow],
        scratch: &mut Vec<f32>,
        logits: &mut [f32],
    ) {
        match self {
            Self::Own(layer) => layer.forward(x, noise, rows, false, scratch, logits),
            Self::Tied(matrix) => matrix.multiply(x, None, false, scratch, logits),
        }
    }
}

fn tied(embeddings: &[f32], [vocabulary, hidden]: [usize; 2], precision: Precision) -> PackedMatrix {
    PackedMatrix::new(&transposed(embeddings, [vocabulary, hidden]), [hidden, vocabulary], precision)
}
