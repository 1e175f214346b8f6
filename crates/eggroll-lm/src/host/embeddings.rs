//! Embeddings of tokens.

use super::head::Head;
use eggroll_core::transformer::PackedMatrix;

/// The embeddings of a model.
#[derive(Debug)]
pub(super) enum Embeddings {
    /// `[vocab_size, hidden_size]`
    Floats(Vec<f32>),
    /// In blocks, `[hidden_size, vocab_size]`; `None` to use the tied output layer's matrix.
    Blocks(Option<PackedMatrix>),
}

impl Embeddings {
    /// Appends the embedding of a token.
    ///
    /// # Panics
    ///
    /// Panics if there is no such token.
    pub fn push(&self, token: usize, hidden_size: usize, head: &Head, x: &mut Vec<f32>) {
        match self {
            Self::Floats(values) => x.extend_from_slice(&values[token * hidden_size..][..hidden_size]),
            Self::Blocks(own) => {
                let matrix = own.as_ref().unwrap_or_else(|| head.matrix());
                x.extend(matrix.column(token).map(|(integer, scale)| f32::from(integer) * scale));
            }
        }
    }
}
